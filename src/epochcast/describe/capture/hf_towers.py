"""What a vision-language model of transformers does with equal images, as one batch.

transformers unpads, splits and packs the images of a batch one by one in Python, because they may differ; flash
attention takes them all in one call. A forecast has images of one size, so here they stay one tensor: the same towers,
projector and attention run, without a loop over samples, whose ops would grow in number with the batch.

A model is changed by giving a part of it a class of its own, which `deepcopy` keeps.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from epochcast.describe.capture.hf_images import ImageTokens

FLASH = "flash_attention_of_equal_images"
# Patches in a window of Qwen2.5-VL: 112 pixels of 14, squared.
_WINDOW = 64


def as_one_batch(model: Any, tokens: ImageTokens) -> None:
    """Change a model in place so that images come as (samples, images, …) in `pixel_values`."""
    model.register_forward_pre_hook(_flattened, with_kwargs=True)
    body = model.model if hasattr(model, "model") else model
    change = _FAMILIES.get(model.config.model_type)
    if change is not None:
        change(body, tokens)


def tower_name(model: Any) -> str:
    """The module that sees."""
    body = model.model if hasattr(model, "model") else model
    return next((name for name in ("vision_tower", "visual", "vision_model") if hasattr(body, name)), "")


def _flattened(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The images of all samples in a row; positions with their three axes in front."""
    kwargs = dict(kwargs)
    if kwargs.get("pixel_values") is not None and kwargs.get("aspect_ratio_ids") is None:  # Llama 3.2 takes them apart
        kwargs["pixel_values"] = kwargs["pixel_values"].flatten(0, 1)
    if kwargs.get("position_ids") is not None:
        kwargs["position_ids"] = kwargs["position_ids"].transpose(0, 1)
    return args, kwargs


def _as(part: Any, **methods: Callable[..., Any]) -> None:
    """Give an object a subclass of its class that has these methods."""
    part.__class__ = type(type(part).__name__, (type(part),), methods)


class _Features(dict[str, Any]):
    """What `get_image_features` returns: all images in one tensor."""

    def __init__(self, pooled: torch.Tensor, deepstack: Any = ()) -> None:
        super().__init__()
        self.pooler_output = (pooled,)
        self.deepstack_features = [(features,) for features in deepstack]
        self.last_hidden_state = self.hidden_states = self.attentions = None


# ---- tiles (LLaVA-NeXT, OneVision, InternVL) ----------------------------------------------------


def _tiled(body: Any, tokens: ImageTokens) -> None:
    def get_image_features(self: Any, pixel_values: torch.Tensor, *_: Any, **__: Any) -> _Features:
        layer = self.config.vision_feature_layer
        layers = [layer] if isinstance(layer, int) else list(layer)
        states = self.vision_tower(pixel_values.flatten(0, 1), output_hidden_states=True).hidden_states
        chosen = torch.cat([states[each] for each in layers], -1) if len(layers) > 1 else states[layers[0]]
        if self.config.vision_feature_select_strategy == "default":
            chosen = chosen[:, 1:]
        features = self.multi_modal_projector(chosen)
        each = features.unflatten(0, (-1, tokens.pixels[0])).flatten(1, 2)
        if each.shape[1] < tokens.each:  # a token ends each row
            more = self.image_newline.expand(each.shape[0], tokens.each - each.shape[1], -1)
            each = torch.cat((each, more.to(each.dtype)), 1)
        return _Features(each[:, : tokens.each].flatten(0, 1))

    _as(body, get_image_features=get_image_features)


def _cropped(body: Any, _: ImageTokens) -> None:
    inner = type(body).get_image_features

    def get_image_features(self: Any, pixel_values: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return inner(self, pixel_values.flatten(0, 1) if pixel_values.dim() > 4 else pixel_values, *args, **kwargs)

    _as(body, get_image_features=get_image_features)


# ---- split (Idefics) ----------------------------------------------------------------------------


def _split(body: Any, tokens: ImageTokens) -> None:
    sides = tuple(side // int(body.config.vision_config.patch_size) for side in tokens.pixels[-2:])

    def get_image_features(self: Any, pixel_values: torch.Tensor, *_: Any, **__: Any) -> _Features:
        pixels = pixel_values.flatten(0, 1) if pixel_values.dim() > 4 else pixel_values
        mask = torch.ones((pixels.shape[0], *sides), dtype=torch.bool, device=pixels.device)
        states = self.vision_model(pixel_values=pixels.to(self.dtype), patch_attention_mask=mask).last_hidden_state
        if hasattr(self.config, "perceiver_config"):
            features = self.connector(states, attention_mask=mask.flatten(1))
        else:
            features = self.connector(states)
        return _Features(features.flatten(0, 1))

    def inputs_merger(
        self: Any, input_ids: torch.Tensor, inputs_embeds: torch.Tensor, image_hidden_states: torch.Tensor
    ) -> torch.Tensor:
        mask = (input_ids == self.config.image_token_id).unsqueeze(-1)
        return inputs_embeds.masked_scatter(mask, image_hidden_states.to(inputs_embeds.dtype))

    _as(body, get_image_features=get_image_features, inputs_merger=inputs_merger)


# ---- patches in a row (Qwen) --------------------------------------------------------------------


def _packed(body: Any, tokens: ImageTokens) -> None:
    """Patches of all images in a row; attention within each image, or within its windows (`cu_seqlens`)."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(FLASH, _within_segments)
    body.visual.config._attn_implementation_internal = FLASH
    time, height, width = tokens.grid or (1, 1, 1)
    patches = time * height * width
    windows = min((n for n in range(1, patches + 1) if patches % n == 0), key=lambda n: abs(n - patches / _WINDOW))

    def with_places(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        images = args[0].shape[0] // patches

        def ids(*shape: int) -> torch.Tensor:
            return torch.empty(shape, dtype=torch.int64, device=args[0].device)

        def ends(parts: int) -> torch.Tensor:
            return torch.empty(images * parts + 1, dtype=torch.int32, device=args[0].device)

        return (args[0], None), {
            **{name: value for name, value in kwargs.items() if name != "grid_thw"},
            "position_ids": ids(images * patches, 2),
            **{"cu_seqlens": ends(time), "max_seqlen": height * width},
            **{"window_index": ids(images * patches // 4), "cu_window_seqlens": ends(windows)},
            **{"max_window_seqlen": patches // windows, "interp_indices": ids(images * patches, 4)},
            "interp_weights": torch.empty((images * patches, 4), device=args[0].device),
        }

    body.visual.register_forward_pre_hook(with_places, with_kwargs=True)

    def get_image_features(self: Any, pixel_values: torch.Tensor, *_: Any, **__: Any) -> _Features:
        rows = pixel_values.flatten(0, 1) if pixel_values.dim() > 2 else pixel_values
        result = self.visual(rows.type(self.visual.dtype), return_dict=True)
        return _Features(result.pooler_output, getattr(result, "deepstack_features", None) or ())

    _as(body, get_image_features=get_image_features)


def _within_segments(
    _: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    *,
    cu_seq_lens_q: torch.Tensor,
    **__: Any,
) -> tuple[torch.Tensor, None]:
    """Fused attention in segments of one length; (1, heads, patches, width) to (1, patches, heads, width)."""
    segments = cu_seq_lens_q.numel() - 1
    parts = (
        each[0].unflatten(1, (segments, -1)).transpose(0, 1)  # type: ignore[no-untyped-call]
        for each in (query, key, value)
    )
    result = scaled_dot_product_attention(*parts)
    return result.transpose(1, 2).flatten(0, 1).unsqueeze(0), None


_FAMILIES: Mapping[str, Callable[[Any, ImageTokens], None]] = {
    "llava_next": _tiled,
    "llava_next_video": _tiled,
    "llava_onevision": _tiled,
    "internvl": _cropped,
    "idefics2": _split,
    "idefics3": _split,
    "smolvlm": _split,
    "qwen2_vl": _packed,
    "qwen2_5_vl": _packed,
    "qwen3_vl": _packed,
    "qwen3_vl_moe": _packed,
}
"""How a family's model is changed, by its model_type; others take one tensor as they are."""
