"""Decoders with learned positions and layer norms in front: GPT-2, GPT-3, OPT.

Radford et al. 2019, Brown et al. 2020, Zhang et al. 2022. Names and layers are Hugging Face's. The output is tied to
the token embeddings; the loss is over every token and the whole vocabulary. GPT-3 runs in GPT-2's architecture: its
alternating sparse attention was never published in detail.

Table 2.1 of the GPT-3 paper gives the XL row 24 heads of 128 but a width of 2,048, which do not fit together.
`gpt3_xl` keeps the heads and is 3,072 wide, which is what published measurements of that name ran (NeuSight, ASPLOS
2025); `gpt3_1_3b` keeps the width and has 16 heads, which gives the 1.3 billion parameters of the paper.
"""

from collections.abc import Sequence

from epochcast.describe.capture.zoo.attention_layers import (
    in_float32,
    join_heads,
    sequence_length,
    split_heads,
    token_ids,
)
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.tensor import DType, Tensor


def gpt2(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    positions: int = 1024,
    vocabulary: int = 50257,
    notes: Sequence[str] = (),
) -> Graph:
    """`GPT2LMHeadModel`: dropout 0.1, tanh-gelu written out, weights stored (in, out)."""
    length = sequence_length(name, input_shape, positions, positions)
    b = Builder(name, batch)
    with b.scope("transformer"):
        x = b.embedding(token_ids(b, length), vocabulary, width, name="wte")
        places = b.embedding(b.constant("position_ids", (1, length), DType.INT64), positions, width, name="wpe")
        x = b.dropout(b.add(x, places), name="drop")
        for index in range(layers):
            with b.scope(f"h.{index}"):
                x = b.add(_gpt2_attention(b, b.layer_norm(x, name="ln_1"), heads), x)
                x = b.add(x, _gpt2_mlp(b, b.layer_norm(x, name="ln_2")))
        x = b.layer_norm(x, name="ln_f")
    table = b.parameters["transformer.wte.weight"].tensor
    logits = b.linear(x, vocabulary, bias=False, weight=table, name="lm_head")
    return b.finish(in_float32(b, logits), units_per_sample=length, notes=notes)


def _gpt2_attention(b: Builder, x: Tensor, heads: int) -> Tensor:
    with b.scope("attn"):
        parts = b.split(_conv1d(b, x, 3 * x.shape[-1], name="c_attn"), 3)
        y = b.attention(*(split_heads(b, part, heads) for part in parts), causal=True, dropout=True)
        return b.dropout(_conv1d(b, join_heads(b, y), x.shape[-1], name="c_proj"))


def _gpt2_mlp(b: Builder, x: Tensor) -> Tensor:
    with b.scope("mlp"):
        y = gelu_new(b, _conv1d(b, x, 4 * x.shape[-1], name="c_fc"))
        return b.dropout(_conv1d(b, y, x.shape[-1], name="c_proj"))


def _conv1d(b: Builder, x: Tensor, features: int, *, name: str) -> Tensor:
    """Hugging Face's Conv1D: a linear layer whose weight is stored (in, out)."""
    with b.scope(name):
        weights = [b.parameter("weight", (x.shape[-1], features)), b.parameter("bias", (features,))]
    return b.op(Matmul(), [x], [(*x.shape[:-1], features)], weights=weights, name=name)[0]


def gelu_new(b: Builder, x: Tensor) -> Tensor:
    """½x · (1 + tanh(√(2/π) · (x + 0.044715x³))): eight kernels, one per arithmetic sign."""
    with b.scope("act"):
        half = b.elementwise("scale", x)
        cube = b.elementwise("scale", b.elementwise("pow", x))
        inside = b.elementwise("scale", b.add(x, cube))
        return b.mul(half, b.elementwise("add", b.elementwise("tanh", inside)))


def opt(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    positions: int = 2048,
    vocabulary: int = 50272,
) -> Graph:
    """`OPTForCausalLM`: relu, dropout 0.1, queries scaled before attention, positions counted from two."""
    length = sequence_length(name, input_shape, positions, positions)
    b = Builder(name, batch)
    with b.scope("model.decoder"):
        ids = token_ids(b, length)
        places = b.embedding(token_ids(b, length, "position_ids"), positions + 2, width, name="embed_positions")
        x = b.add(b.embedding(ids, vocabulary, width, name="embed_tokens"), places)
        for index in range(layers):
            with b.scope(f"layers.{index}"):
                y = b.layer_norm(x, name="self_attn_layer_norm")
                x = b.add(x, b.dropout(_opt_attention(b, y, heads)))
                y = b.relu(b.linear(b.layer_norm(x, name="final_layer_norm"), 4 * width, name="fc1"))
                x = b.add(x, b.dropout(b.linear(y, width, name="fc2")))
        x = b.layer_norm(x, name="final_layer_norm")
    table = b.parameters["model.decoder.embed_tokens.weight"].tensor
    logits = b.linear(x, vocabulary, bias=False, weight=table, name="lm_head")
    return b.finish(in_float32(b, logits), units_per_sample=length)


def _opt_attention(b: Builder, x: Tensor, heads: int) -> Tensor:
    width = x.shape[-1]
    with b.scope("self_attn"):
        q = b.elementwise("scale", b.linear(x, width, name="q_proj"))
        k, v = (b.linear(x, width, name=part) for part in ("k_proj", "v_proj"))
        y = b.attention(*(split_heads(b, part, heads) for part in (q, k, v)), causal=True)
        return b.linear(join_heads(b, y), width, name="out_proj")
