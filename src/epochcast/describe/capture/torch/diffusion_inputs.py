"""What networks of diffusers are fed: a noisy latent, the time of the noise, and the states of a prompt.

Two samples of each. Shapes follow from the arguments of a network and the latent. A network that takes tokens rather
than a latent (FLUX, LTX) gets the tokens that its pipeline makes of one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from epochcast.describe.capture.torch.example_arguments import Example

SAMPLES = 2
FPS, FLUX_PATCH = 24, 2
_NO_SIZES: Mapping[str, torch.Tensor | None] = {"resolution": None, "aspect_ratio": None}


@dataclass(frozen=True)
class _Fed:
    """The arguments of a network, the shape of its latent, and how many tokens a prompt has."""

    config: Any
    latent: tuple[int, ...]
    text_tokens: int

    def text(self, width: int) -> torch.Tensor:
        return _floats(self.text_tokens, width)

    def fed(self, text_width: int | None, **others: Any) -> dict[str, Any]:
        """What most take: the latent, its time and the prompt's states."""
        states = {} if text_width is None else {"encoder_hidden_states": self.text(text_width)}
        return {"hidden_states": _floats(*self.latent), "timestep": _floats(), **states, **others}


def diffusion_example(class_name: str, config: Any, latent: tuple[int, ...], text_tokens: int) -> Example:
    """The arguments of `forward`, by the class of the network."""
    return Example((), {**_ARGUMENTS[class_name](_Fed(config, latent, text_tokens)), "return_dict": False})


def forget_between_passes(network: torch.nn.Module) -> None:
    """Methods of its modules that keep their results compute them in every pass, so that all passes run the same
    operators (Qwen-Image's positions).
    """
    for module in network.modules():
        for name, method in vars(type(module)).items():
            if hasattr(method, "__wrapped__") and name.startswith("_compute"):
                setattr(module, name, partial(method.__wrapped__, module))


def squared_error(result: Any) -> torch.Tensor:
    """The mean squared error of a prediction, in float32 as trainers compute it."""
    (predicted, *_) = result
    return torch.nn.functional.mse_loss(predicted.float(), torch.zeros_like(predicted, dtype=torch.float32))


def _floats(*shape: int) -> torch.Tensor:
    return torch.empty((SAMPLES, *shape), device="meta")


def _unet(fed: _Fed) -> dict[str, Any]:
    """Stable Diffusion; XL also takes the pooled states of a prompt, and six sizes of the picture and its crop."""
    is_xl = fed.config.addition_embed_type == "text_time"
    pooled = (fed.config.projection_class_embeddings_input_dim or 0) - 6 * (fed.config.addition_time_embed_dim or 0)
    added = {"added_cond_kwargs": {"text_embeds": _floats(pooled), "time_ids": _floats(6)}} if is_xl else {}
    rest = {name: value for name, value in fed.fed(fed.config.cross_attention_dim).items() if name != "hidden_states"}
    return {"sample": _floats(*fed.latent), **rest, **added}


def _dit(fed: _Fed) -> dict[str, Any]:
    classes = torch.zeros(SAMPLES, dtype=torch.int64, device="meta")
    return fed.fed(None, class_labels=classes, timestep=classes)


def _pixart(fed: _Fed) -> dict[str, Any]:
    has_sizes = fed.config.use_additional_conditions or (
        fed.config.use_additional_conditions is None and fed.config.sample_size == 128
    )
    added: Mapping[str, torch.Tensor | None] = (
        {"resolution": _floats(2), "aspect_ratio": _floats(1)} if has_sizes else _NO_SIZES
    )
    return fed.fed(fed.config.caption_channels, added_cond_kwargs=added)


def _sd3(fed: _Fed) -> dict[str, Any]:
    pooled = _floats(fed.config.pooled_projection_dim)
    return fed.fed(fed.config.joint_attention_dim, pooled_projections=pooled)


def _flux(fed: _Fed) -> dict[str, Any]:
    channels, height, width = fed.latent
    tokens = (height // FLUX_PATCH) * (width // FLUX_PATCH)
    return fed.fed(
        fed.config.joint_attention_dim,
        hidden_states=_floats(tokens, channels * FLUX_PATCH**2),
        pooled_projections=_floats(fed.config.pooled_projection_dim),
        img_ids=torch.empty((tokens, 3), device="meta"),
        txt_ids=torch.empty((fed.text_tokens, 3), device="meta"),
        guidance=_floats() if fed.config.guidance_embeds else None,
    )


def _flux2(fed: _Fed) -> dict[str, Any]:
    """The latent is packed already: a value of 128 channels is a token, and a position has four numbers."""
    channels, height, width = fed.latent
    return fed.fed(
        fed.config.joint_attention_dim,
        hidden_states=_floats(height * width, channels),
        img_ids=torch.empty((height * width, 4), device="meta"),
        txt_ids=torch.empty((fed.text_tokens, 4), device="meta"),
        guidance=_floats() if fed.config.guidance_embeds else None,
    )


def _packed(fed: _Fed) -> dict[str, Any]:
    """As FLUX, without pooled states and guidance (LongCat-Image, Chroma)."""
    tokens, channels = _tokens(fed)
    return fed.fed(
        fed.config.joint_attention_dim,
        hidden_states=_floats(tokens, channels),
        img_ids=torch.empty((tokens, 3), device="meta"),
        txt_ids=torch.empty((fed.text_tokens, 3), device="meta"),
    )


def _qwen(fed: _Fed) -> dict[str, Any]:
    tokens, channels = _tokens(fed)
    _, height, width = fed.latent
    sides = [(1, height // FLUX_PATCH, width // FLUX_PATCH)]
    return fed.fed(
        fed.config.joint_attention_dim, hidden_states=_floats(tokens, channels), img_shapes=[sides] * SAMPLES
    )


def _tokens(fed: _Fed) -> tuple[int, int]:
    """How many tokens a latent is, and how many values each has: two by two of every channel."""
    channels, height, width = fed.latent
    return (height // FLUX_PATCH) * (width // FLUX_PATCH), channels * FLUX_PATCH**2


def _hunyuan(fed: _Fed) -> dict[str, Any]:
    mask = torch.ones((SAMPLES, fed.text_tokens), dtype=torch.int64, device="cpu")
    return fed.fed(
        fed.config.text_embed_dim,
        encoder_attention_mask=mask,
        pooled_projections=_floats(fed.config.pooled_projection_dim),
        guidance=_floats() if fed.config.guidance_embeds else None,
    )


def _cog(fed: _Fed) -> dict[str, Any]:
    channels, frames, height, width = fed.latent
    patch, head = fed.config.patch_size, fed.config.attention_head_dim
    turned = torch.empty((frames * (height // patch) * (width // patch), head), device="meta")
    rotary = (turned, turned) if fed.config.use_rotary_positional_embeddings else None
    return fed.fed(
        fed.config.text_embed_dim, hidden_states=_floats(frames, channels, height, width), image_rotary_emb=rotary
    )


def _ltx(fed: _Fed) -> dict[str, Any]:
    channels, frames, height, width = fed.latent
    mask = torch.ones((SAMPLES, fed.text_tokens), dtype=torch.int64, device="cpu")
    return fed.fed(
        fed.config.caption_channels,
        hidden_states=_floats(frames * height * width, channels),
        encoder_attention_mask=mask,
        num_frames=frames,
        height=height,
        width=width,
    )


def _cosmos(fed: _Fed) -> dict[str, Any]:
    sides = [8 * side for side in fed.latent[-2:]]
    padding = torch.zeros((1, 1, *sides), device="meta")
    return fed.fed(fed.config.text_embed_dim, padding_mask=padding, fps=FPS)


_ARGUMENTS: Mapping[str, Callable[[_Fed], dict[str, Any]]] = {
    "UNet2DConditionModel": _unet,
    "DiTTransformer2DModel": _dit,
    "PixArtTransformer2DModel": _pixart,
    "SD3Transformer2DModel": _sd3,
    "FluxTransformer2DModel": _flux,
    "Flux2Transformer2DModel": _flux2,
    "ChromaTransformer2DModel": _packed,
    "LongCatImageTransformer2DModel": _packed,
    "QwenImageTransformer2DModel": _qwen,
    "HunyuanVideoTransformer3DModel": _hunyuan,
    "AuraFlowTransformer2DModel": lambda fed: fed.fed(fed.config.joint_attention_dim),
    "SanaTransformer2DModel": lambda fed: fed.fed(fed.config.caption_channels),
    "WanTransformer3DModel": lambda fed: fed.fed(fed.config.text_dim),
    "CogVideoXTransformer3DModel": _cog,
    "LTXVideoTransformer3DModel": _ltx,
    "CosmosTransformer3DModel": _cosmos,
}
