"""Decoders whose attention and feed-forward layer stand side by side.

    x + attention(norm(x)) + feed_forward(norm′(x))          norm′ = norm where there is one for both

Black et al. 2022 (GPT-NeoX), Biderman et al. 2023 (Pythia), Stability AI 2023 (StableLM base alpha), Microsoft 2023
(Phi-2), Almazrouei et al. 2023 (Falcon). Layer norms, gelu, rotary positions over a part of every head, the three
projections packed into one; Phi's run apart (`is_phi`), and its gelu is written out. Names are those of Hugging Face's
`GPTNeoXForCausalLM`, for all of them.
"""

from epochcast.describe.capture.zoo.attention_layers import (
    in_float32,
    join_heads,
    sequence_length,
    split_heads,
    token_ids,
)
from epochcast.describe.capture.zoo.gpt import gelu_new
from epochcast.describe.capture.zoo.rotary import rotated, rotations
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def parallel_decoder(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    vocabulary: int,
    ffn: int | None = None,
    kv_heads: int | None = None,
    rotary_width: int | None = None,
    context: int = 2048,
    shared_norm: bool = False,
    bias: bool = True,
    output_bias: bool = False,
    tied: bool = False,
    is_phi: bool = False,
) -> Graph:
    """Any such decoder; `ffn` defaults to four widths, `rotary_width` to whole heads."""
    each = width // heads
    groups = heads if kv_heads is None else kv_heads
    length = sequence_length(name, input_shape, context)
    b = Builder(name, batch)
    with b.scope("gpt_neox"):
        x = b.embedding(token_ids(b, length), vocabulary, width, name="embed_in")
        cos, sin = rotations(b, length, rotary_width or each)
        for index in range(layers):
            with b.scope(f"layers.{index}"):
                first = b.layer_norm(x, name="input_layernorm")
                second = first if shared_norm else b.layer_norm(x, name="post_attention_layernorm")
                with b.scope("attention"):
                    parts = _projected(b, first, heads, groups, bias, is_phi)
                    y = _attended(b, parts, cos, sin, bias)
                x = b.add(b.add(_feed_forward(b, second, ffn or 4 * width, bias, is_phi), y), x)
        x = b.layer_norm(x, name="final_layer_norm")
    table = b.parameters["gpt_neox.embed_in.weight"].tensor if tied else None
    logits = b.linear(x, vocabulary, bias=output_bias, weight=table, name="embed_out")
    return b.finish(in_float32(b, logits), units_per_sample=length)


def _projected(b: Builder, x: Tensor, heads: int, groups: int, bias: bool, is_phi: bool) -> tuple[Tensor, ...]:
    """Queries, keys and values by head. A single head of keys and values is picked by an index, which copies it."""
    each = x.shape[-1] // heads
    counts = (heads, groups, groups)
    if is_phi:
        parts = tuple(
            b.linear(x, count * each, bias=bias, name=name)
            for name, count in zip(("q_proj", "k_proj", "v_proj"), counts, strict=True)
        )
    else:
        packed = b.linear(x, sum(counts) * each, bias=bias, name="query_key_value")
        parts = b.split(packed, [count * each for count in counts])
        if groups == 1:
            parts = (parts[0], *(b.copy("index", part, part.shape) for part in parts[1:]))
    return tuple(split_heads(b, part, count) for part, count in zip(parts, counts, strict=True))


def _attended(b: Builder, parts: tuple[Tensor, ...], cos: Tensor, sin: Tensor, bias: bool) -> Tensor:
    """Heads that turn in part are joined again by a copy, head by head, and so is what attention makes of them."""
    q, k, v = parts
    y = b.attention(rotated(b, q, cos, sin), rotated(b, k, cos, sin), v, causal=True)
    if cos.shape[-1] < q.shape[-1]:
        y = b.copy("contiguous", y, y.shape)
    y = join_heads(b, y)
    return b.linear(y, y.shape[-1], bias=bias, name="dense")


def _feed_forward(b: Builder, x: Tensor, ffn: int, bias: bool, is_phi: bool) -> Tensor:
    with b.scope("mlp"):
        y = b.linear(x, ffn, bias=bias, name="dense_h_to_4h")
        y = gelu_new(b, y) if is_phi else b.elementwise("gelu", y, name="act")
        return b.linear(y, x.shape[-1], bias=bias, name="dense_4h_to_h")
