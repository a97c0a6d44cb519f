"""The network of Stable Diffusion: a U-Net of residual blocks and transformers over a picture's latent, fed the time of
the noise and the text it shows.

Rombach et al. 2022; Podell et al. 2024 (SDXL). Names and layers are those of diffusers' `UNet2DConditionModel`. The
input is the latent: (4, 64, 64) is a picture of 512×512. Text encoder and autoencoder are frozen and not part of it
(`frozen_encoders` puts them in front): their results are inputs (77 tokens), as where they are computed beforehand. The
loss is the squared error of the noise.
"""

from dataclasses import dataclass

from epochcast.describe.capture.zoo.attention_layers import join_heads, split_heads
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

TOKENS = 77
LEVEL_BLOCKS = 2


@dataclass(frozen=True, slots=True)
class _Text:
    """What pictures are conditioned on: the text's states, and the width of attention's heads (0: eight heads)."""

    states: Tensor
    head_width: int

    def heads(self, width: int) -> int:
        return width // self.head_width if self.head_width else 8


def diffusion_unet(
    batch: int,
    input_shape: tuple[int, ...] = (4, 64, 64),
    *,
    name: str,
    widths: tuple[int, ...] = (320, 640, 1280, 1280),
    depths: tuple[int, ...] = (1, 1, 1, 0),
    text_width: int = 768,
    head_width: int = 0,
    added_width: int = 0,
) -> Graph:
    """`depths` are the transformer layers behind each residual block, level by level; `added_width` is that of
    SDXL's other inputs (the size of a picture, the whole text).
    """
    halvings = 2 ** (len(widths) - 1)
    if len(input_shape) != 3 or any(size % halvings for size in input_shape[1:]):
        raise BadInput(f"{name} takes a latent whose sides are multiples of {halvings}, such as 4x64x64")
    b = Builder(name, batch)
    x = b.input("latent", input_shape)
    text = _Text(b.input("encoder_hidden_states", (TOKENS, text_width)), head_width)
    time = _embedded(b, b.input("timestep_waves", (widths[0],)), 4 * widths[0], "time_embedding")
    if added_width:
        time = b.add(time, _embedded(b, b.input("added_conditions", (added_width,)), 4 * widths[0], "add_embedding"))
    x = b.conv(x, widths[0], 3, padding=1, name="conv_in")
    x, skips = _down(b, x, time, text, widths, depths)
    with b.scope("mid_block"):
        depth = depths[-1] or 1
        x = _transformer(b, _residual(b, x, widths[-1], time, "resnets.0"), text, depth, "attentions.0")
        x = _residual(b, x, widths[-1], time, "resnets.1")
    x = _up(b, x, time, text, widths, depths, skips)
    x = b.elementwise("silu", _group_norm(b, x, "conv_norm_out"))
    return b.finish(b.conv(x, input_shape[0], 3, padding=1, name="conv_out"), loss="mse")


def _embedded(b: Builder, x: Tensor, width: int, name: str) -> Tensor:
    with b.scope(name):
        return b.linear(b.elementwise("silu", b.linear(x, width, name="linear_1")), width, name="linear_2")


def _down(
    b: Builder, x: Tensor, time: Tensor, text: _Text, widths: tuple[int, ...], depths: tuple[int, ...]
) -> tuple[Tensor, list[Tensor]]:
    skips = [x]
    for level, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        with b.scope(f"down_blocks.{level}"):
            for index in range(LEVEL_BLOCKS):
                x = _residual(b, x, width, time, f"resnets.{index}")
                x = _transformer(b, x, text, depth, f"attentions.{index}")
                skips.append(x)
            if level < len(widths) - 1:
                x = b.conv(x, width, 3, stride=2, padding=1, name="downsamplers.0.conv")
                skips.append(x)
    return x, skips


def _up(
    b: Builder,
    x: Tensor,
    time: Tensor,
    text: _Text,
    widths: tuple[int, ...],
    depths: tuple[int, ...],
    skips: list[Tensor],
) -> Tensor:
    """The levels upward; every residual block also sees what the same level made on the way down."""
    for level, (width, depth) in enumerate(zip(reversed(widths), reversed(depths), strict=True)):
        with b.scope(f"up_blocks.{level}"):
            for index in range(LEVEL_BLOCKS + 1):
                x = _residual(b, b.concatenate([x, skips.pop()]), width, time, f"resnets.{index}")
                x = _transformer(b, x, text, depth, f"attentions.{index}")
            if level < len(widths) - 1:
                sides = tuple(2 * size for size in x.shape[2:])
                x = b.copy("repeat", x, (*x.shape[:2], *sides), name="upsamplers.0")
                x = b.conv(x, width, 3, padding=1, name="upsamplers.0.conv")
    return x


def _residual(b: Builder, x: Tensor, width: int, time: Tensor, name: str) -> Tensor:
    with b.scope(name):
        y = b.elementwise("silu", _group_norm(b, x, "norm1"))
        y = b.conv(y, width, 3, padding=1, name="conv1")
        when = b.linear(b.elementwise("silu", time), width, name="time_emb_proj")
        y = b.add(y, b.view(when, (*when.shape, 1, 1)))
        y = b.elementwise("silu", _group_norm(b, y, "norm2"))
        y = b.conv(y, width, 3, padding=1, name="conv2")
        return b.add(x if x.shape[1] == width else b.conv(x, width, 1, name="conv_shortcut"), y)


def _transformer(b: Builder, x: Tensor, text: _Text, depth: int, name: str) -> Tensor:
    """`depth` layers over the picture's positions: attention to each other, to the text, a gated layer."""
    if not depth:
        return x
    batch, width, height, breadth = x.shape
    with b.scope(name):
        y = b.conv(_group_norm(b, x, "norm"), width, 1, name="proj_in")
        y = b.copy("contiguous", y, (batch, height * breadth, width), name="tokens")
        for index in range(depth):
            with b.scope(f"transformer_blocks.{index}"):
                z = b.layer_norm(y, name="norm1")
                y = b.add(_attention(b, z, z, text.heads(width), "attn1"), y)
                y = b.add(_attention(b, b.layer_norm(y, name="norm2"), text.states, text.heads(width), "attn2"), y)
                y = b.add(_gated(b, b.layer_norm(y, name="norm3")), y)
        y = b.copy("contiguous", y, x.shape, name="picture")
        return b.add(b.conv(y, width, 1, name="proj_out"), x)


def _attention(b: Builder, x: Tensor, memory: Tensor, heads: int, name: str) -> Tensor:
    width = x.shape[-1]
    with b.scope(name):
        q = split_heads(b, b.linear(x, width, bias=False, name="to_q"), heads)
        k, v = (split_heads(b, b.linear(memory, width, bias=False, name=part), heads) for part in ("to_k", "to_v"))
        return b.linear(join_heads(b, b.attention(q, k, v)), width, name="to_out.0")


def _gated(b: Builder, x: Tensor) -> Tensor:
    """W₂(a · gelu(g)), a and g the halves of W₁x."""
    width = x.shape[-1]
    with b.scope("ff.net"):
        half, gate = b.split(b.linear(x, 8 * width, name="0.proj"), 2)
        return b.linear(b.mul(half, b.elementwise("gelu", gate)), width, name="2")


def _group_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    return b.norm(x, "group", x.shape[1], name=name)
