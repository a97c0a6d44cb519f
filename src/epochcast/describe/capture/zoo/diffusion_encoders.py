"""What runs frozen beside a diffusion network: encoders of the prompt, and the encoder of the autoencoder.

    CLIP             causal, pre-norm layers, heads of 64 (Radford et al. 2021; OpenCLIP): the states before the last
    T5, UMT5         the encoder of version 1.1: gated layers and a bias by distance (Raffel et al. 2020)
    autoencoder      KL-f8: four levels of two residual blocks and an attention layer in the middle, an eighth of the
                     sides (Rombach et al. 2022); its decoder has weights and does not run

Names and layers are those of diffusers and transformers. UMT5 has a bias of its own in every layer, which is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epochcast.describe.capture.zoo.attention_layers import token_ids
from epochcast.describe.capture.zoo.clip import text_tower
from epochcast.describe.capture.zoo.t5 import encoder_tower
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

PIXELS = 8
"""Of a side, per position of a latent."""
_WIDTHS = (128, 256, 512, 512)
_DECODER_PARAMETERS = 49_490_179


@dataclass(frozen=True, slots=True)
class _Clip:
    layers: int
    width: int
    has_projection: bool = False

    def add(self, b: Builder, tokens: int) -> Tensor:
        """The states of a prompt."""
        states = text_tower(b, self.width, self.layers, tokens)
        return b.linear(states, self.width, bias=False, name="text_projection") if self.has_projection else states


@dataclass(frozen=True, slots=True)
class _T5:
    layers: int
    width: int
    heads: int
    ffn: int
    vocabulary: int

    def add(self, b: Builder, tokens: int) -> Tensor:
        """The states of a prompt."""
        table = b.parameter("shared.weight", (self.vocabulary, self.width))
        return encoder_tower(b, table, token_ids(b, tokens), self.layers, self.heads, 64, self.ffn)


TEXT_ENCODERS: Mapping[str, _Clip | _T5] = {
    "clip-l": _Clip(12, 768),
    "clip-h": _Clip(23, 1024),
    "clip-g": _Clip(32, 1280, has_projection=True),
    "t5-xxl": _T5(24, 4096, 64, 10240, 32128),
    "umt5-xxl": _T5(24, 4096, 64, 10240, 256384),
}
"""Encoders of prompts by name: openai/clip-vit-large-patch14 (123,060,480 parameters), laion's ViT-H and ViT-bigG
(694,659,840), google/t5-v1_1-xxl (4,762,310,656) and google/umt5-xxl.
"""


def text_encoder(batch: int, name: str, tokens: int) -> Graph:
    """The forward pass of one of them."""
    b = Builder(name, batch)
    with b.scope(name):
        states = TEXT_ENCODERS[name].add(b, tokens)
    return b.finish(states, loss="none")


def picture_encoder(batch: int, channels: int, height: int, width: int) -> Graph:
    """Pictures to latents of so many channels, with their variance; `height` and `width` are those of the latent."""
    b = Builder("vae", batch)
    with b.scope("vae.encoder"):
        x = b.conv(b.input("pixels", (3, PIXELS * height, PIXELS * width)), _WIDTHS[0], 3, padding=1, name="conv_in")
        for level, each in enumerate(_WIDTHS):
            with b.scope(f"down_blocks.{level}"):
                x = _residual(b, _residual(b, x, each, "resnets.0"), each, "resnets.1")
                if level < len(_WIDTHS) - 1:
                    x = b.conv(x, each, 3, stride=2, padding=1, name="downsamplers.0.conv")
        with b.scope("mid_block"):
            x = _residual(b, _attention(b, _residual(b, x, _WIDTHS[-1], "resnets.0")), _WIDTHS[-1], "resnets.1")
        x = b.elementwise("silu", b.norm(x, "group", x.shape[1], name="conv_norm_out"))
        x = b.conv(x, 2 * channels, 3, padding=1, name="conv_out")
    b.parameter("vae.decoder.weight", (_DECODER_PARAMETERS,))
    return b.finish(x, loss="none")


def _residual(b: Builder, x: Tensor, width: int, name: str) -> Tensor:
    with b.scope(name):
        y = b.conv(
            b.elementwise("silu", b.norm(x, "group", x.shape[1], name="norm1")), width, 3, padding=1, name="conv1"
        )
        y = b.conv(b.elementwise("silu", b.norm(y, "group", width, name="norm2")), width, 3, padding=1, name="conv2")
        return b.add(x if x.shape[1] == width else b.conv(x, width, 1, name="conv_shortcut"), y)


def _attention(b: Builder, x: Tensor) -> Tensor:
    """One head over all positions."""
    batch, width, height, breadth = x.shape
    with b.scope("attentions.0"):
        y = b.norm(x, "group", width, name="group_norm")
        y = b.copy("contiguous", y, (batch, height * breadth, width), name="tokens")
        q, k, v = (
            b.view(b.linear(y, width, name=part), (batch, 1, height * breadth, width))
            for part in ("to_q", "to_k", "to_v")
        )
        y = b.view(b.attention(q, k, v), (batch, height * breadth, width))
        y = b.copy("contiguous", b.linear(y, width, name="to_out.0"), x.shape, name="picture")
        return b.add(y, x)
