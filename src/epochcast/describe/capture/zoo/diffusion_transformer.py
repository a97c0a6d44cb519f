"""Diffusion transformers (Peebles & Xie 2023, "Scalable diffusion models with transformers"), as trained: noise and its
variance are predicted of a latent, whose patches of 2x2 are tokens.

Every block is steered by time and class (adaLN-Zero): a product makes six vectors of their embedding, which shift and
scale what its two norms give, and scale what its two branches add. DiT-XL/2 has 675 million parameters and 118.6
billion multiply-adds at 32x32 latents (table 1).
"""

from epochcast.describe.capture.zoo.attention_layers import multihead_attention
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput

CLASSES = 1000
FREQUENCIES = 256
"""Sines of the time step."""
MODULATIONS, LAST_MODULATIONS = 6, 2


def diffusion_transformer(
    batch: int,
    input_shape: tuple[int, ...] = (4, 32, 32),
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    patch: int = 2,
) -> Graph:
    """Latents in, noise and variance of every position out."""
    if len(input_shape) != 3 or input_shape[1] % patch or input_shape[2] % patch:
        raise BadInput(f"{name} cuts latents into {patch}x{patch} patches, got {'x'.join(map(str, input_shape))}")
    b = Builder(name, batch)
    latent = b.input("latent", input_shape)
    x = b.conv(latent, width, patch, stride=patch, name="x_embedder.proj")
    tokens = x.shape[2] * x.shape[3]
    x = b.copy("permute", x, (batch, tokens, width), name="x_embedder")
    x = b.add(x, b.constant("pos_embed", (1, tokens, width)))
    steering = b.elementwise("silu", b.add(_time(b, width), _label(b, width)))
    for index in range(layers):
        with b.scope(f"blocks.{index}"):
            x = _block(b, x, steering, heads)
    with b.scope("final_layer"):
        shift, scale = _modulations(b, steering, width, LAST_MODULATIONS)
        x = _modulated(b, x, shift, scale)
        x = b.linear(x, patch * patch * 2 * input_shape[0], name="linear")
    out = b.copy("permute", x, (batch, 2 * input_shape[0], *input_shape[1:]), name="unpatchify")
    return b.finish(out, loss="mse")


def _time(b: Builder, width: int) -> Tensor:
    sines = b.input("time", (FREQUENCIES,))
    with b.scope("t_embedder.mlp"):
        return b.linear(b.elementwise("silu", b.linear(sines, width, name="0")), width, name="2")


def _label(b: Builder, width: int) -> Tensor:
    """One row more than classes: that of no class."""
    return b.embedding(b.input("label", (), DType.INT64), CLASSES + 1, width, name="y_embedder.embedding_table")


def _modulations(b: Builder, steering: Tensor, width: int, count: int) -> tuple[Tensor, ...]:
    batch = steering.shape[0]
    vectors = b.split(b.linear(steering, count * width, name="adaLN_modulation.1"), count)
    return tuple(b.view(vector, (batch, 1, width)) for vector in vectors)


def _modulated(b: Builder, x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """norm(x) · (1 + scale) + shift"""
    y = b.layer_norm(x, affine=False)
    return b.add(b.mul(y, b.elementwise("add", scale)), shift)


def _block(b: Builder, x: Tensor, steering: Tensor, heads: int) -> Tensor:
    width = x.shape[-1]
    shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = _modulations(b, steering, width, MODULATIONS)
    y = _modulated(b, x, shift, scale)
    y = multihead_attention(b, y, None, heads, name="attn")
    x = b.add(x, b.mul(y, gate))
    y = b.linear(_modulated(b, x, mlp_shift, mlp_scale), 4 * width, name="mlp.fc1")
    y = b.linear(b.elementwise("gelu", y), width, name="mlp.fc2")
    return b.add(x, b.mul(y, mlp_gate))
