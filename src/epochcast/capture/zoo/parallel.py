"""Decoders whose attention and feed-forward layer stand side by side.

    x + attention(norm(x)) + feed_forward(norm′(x))          norm′ = norm where there is one for both

Black et al. 2022 (GPT-NeoX), Biderman et al. 2023 (Pythia), Stability AI 2023 (StableLM base alpha), Microsoft 2023
(Phi-2), Almazrouei et al. 2023 (Falcon). Layer norms, gelu, rotary positions over a part of every head, the three
projections packed into one. Names are those of Hugging Face's `GPTNeoXForCausalLM`, for all of them.
"""

from epochcast.capture.zoo.attention import join_heads, sequence_length, split_heads, token_ids
from epochcast.capture.zoo.rotary import rotated, rotations
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.tensor import Tensor


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
    one_norm: bool = False,
    bias: bool = True,
    output_bias: bool = False,
    tied: bool = False,
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
                second = first if one_norm else b.layer_norm(x, name="post_attention_layernorm")
                y = _attention(b, first, heads, groups, cos, sin, bias)
                x = b.add(b.add(_feed_forward(b, second, ffn or 4 * width, bias), y), x)
        x = b.layer_norm(x, name="final_layer_norm")
    table = b.parameters["gpt_neox.embed_in.weight"].tensor if tied else None
    logits = b.linear(x, vocabulary, bias=output_bias, weight=table, name="embed_out")
    return b.finish(logits, units_per_sample=length)


def _attention(b: Builder, x: Tensor, heads: int, groups: int, cos: Tensor, sin: Tensor, bias: bool) -> Tensor:
    width = x.shape[-1]
    each = width // heads
    with b.scope("attention"):
        packed = b.linear(x, (heads + 2 * groups) * each, bias=bias, name="query_key_value")
        q, k, v = b.split(packed, (heads * each, groups * each, groups * each))
        q, k, v = split_heads(b, q, heads), split_heads(b, k, groups), split_heads(b, v, groups)
        y = b.attention(rotated(b, q, cos, sin), rotated(b, k, cos, sin), v, causal=True)
        return b.linear(join_heads(b, y), width, bias=bias, name="dense")


def _feed_forward(b: Builder, x: Tensor, ffn: int, bias: bool) -> Tensor:
    with b.scope("mlp"):
        y = b.elementwise("gelu", b.linear(x, ffn, bias=bias, name="dense_h_to_4h"), name="act")
        return b.linear(y, x.shape[-1], bias=bias, name="dense_4h_to_h")
