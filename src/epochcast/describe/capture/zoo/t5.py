"""T5 (Raffel et al. 2020) and the Switch transformer built on it (Fedus et al. 2022).

Names and layers are Hugging Face's. Encoder and decoder see as many tokens. Positions are a learned bias on the
scores, one per head and bucket of distance, made in the first layer of each stack and used in all of them: each
copies it (a decoder masks the future in its copy) and gives it to fused attention, as transformers 5 does. Attention
may be wider than the network. Scores are not scaled. With `experts`, every second feed-forward layer is a mixture
(`moe`).
"""

from epochcast.describe.capture.zoo.attention_layers import (
    chain,
    join_heads,
    rms_norm,
    sequence_length,
    split_heads,
    token_ids,
)
from epochcast.describe.capture.zoo.gpt import gelu_new
from epochcast.describe.capture.zoo.moe import switch_layer
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Attention, Copy, Embedding
from epochcast.describe.graph.tensor import DType, Tensor

# What Hugging Face runs over the (T, T) table of distances to find buckets: sign, exact ones, logarithm of the rest.
_INT, _FLOAT = DType.INT64, DType.FLOAT32
_BUCKETING = (
    *(
        ("gt", DType.BOOL),
        ("cast", _INT),
        ("mul", _INT),
        ("add", _INT),
        ("abs", _INT),
        ("lt", DType.BOOL),
        ("cast", _FLOAT),
    ),
    *(
        ("div", _FLOAT),
        ("log", _FLOAT),
        ("div", _FLOAT),
        ("mul", _FLOAT),
        ("cast", _INT),
        ("add", _INT),
        ("fill", _INT),
    ),
    *(("minimum", _INT), ("where", _INT), ("add", _INT)),
)


def t5(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int,
    width: int,
    heads: int,
    head_width: int,
    ffn: int,
    context: int = 512,
    vocabulary: int = 32128,
    experts: int = 0,
    capacity: int = 64,
    gated: bool = False,
) -> Graph:
    """`T5ForConditionalGeneration`, or `SwitchTransformersForConditionalGeneration` where there are experts. `gated` is
    version 1.1 (Flan-T5): gated feed-forward layers, and an output of its own.
    """
    length = sequence_length(name, input_shape, context)
    b = Builder(name, batch)
    table = b.parameter("shared.weight", (vocabulary, width))
    stack = _Stack(b, layers, heads, head_width, ffn, experts, capacity, gated)
    with b.scope("encoder"):
        memory = stack.run(table, token_ids(b, length), None)
    with b.scope("decoder"):
        x = stack.run(table, token_ids(b, length, "decoder_input_ids"), memory)
    if not gated:
        x = b.elementwise("scale", x)
    logits = b.linear(x, vocabulary, bias=False, weight=None if gated else table, name="lm_head")
    return b.finish(logits, units_per_sample=length)


def encoder_tower(b: Builder, table: Tensor, ids: Tensor, layers: int, heads: int, head_width: int, ffn: int) -> Tensor:
    """The encoder of version 1.1 alone: the states of all tokens."""
    return _Stack(b, layers, heads, head_width, ffn, 0, 0, gated=True).run(table, ids, None)


class _Stack:
    """What both sides of the network have in common."""

    def __init__(
        self, b: Builder, layers: int, heads: int, head_width: int, ffn: int, experts: int, capacity: int, gated: bool
    ) -> None:
        self.b, self.layers, self.heads, self.head_width = b, layers, heads, head_width
        self.ffn, self.experts, self.capacity, self.gated = ffn, experts, capacity, gated

    def run(self, table: Tensor, ids: Tensor, memory: Tensor | None) -> Tensor:
        """Embedding, blocks, norm; a decoder where there is a memory to attend to."""
        b = self.b
        length = ids.shape[1]
        x = b.dropout(_looked_up(b, ids, table))
        with b.scope("block.0.layer.0.SelfAttention"):
            bias = self._position_bias(length)
        across = None
        if memory is not None:
            across = b.op(Copy("fill"), [], [(1, self.heads, length, memory.shape[1])], name="no_bias")[0]
        for index in range(self.layers):
            with b.scope(f"block.{index}"):
                with b.scope("layer.0"):
                    y = rms_norm(b, x, casts_once=False, name="layer_norm")
                    x = b.add(x, b.dropout(self._self_attention(y, bias, is_decoder=memory is not None)))
                if memory is not None and across is not None:
                    with b.scope("layer.1"):
                        y = rms_norm(b, x, casts_once=False, name="layer_norm")
                        x = b.add(x, b.dropout(self._attend("EncDecAttention", y, memory, across)))
                with b.scope("layer.1" if memory is None else "layer.2"):
                    y = rms_norm(b, x, casts_once=False, name="layer_norm")
                    x = b.add(x, b.dropout(self._feed_forward(y, is_sparse=bool(self.experts) and index % 2 == 1)))
        return b.dropout(rms_norm(b, x, casts_once=False, name="final_layer_norm"))

    def _self_attention(self, x: Tensor, bias: Tensor, *, is_decoder: bool) -> Tensor:
        b = self.b
        with b.scope("SelfAttention"):
            bias = b.elementwise("mask", bias) if is_decoder else bias
            bias = b.copy("contiguous", bias, bias.shape)
        return self._attend("SelfAttention", x, x, bias)

    def _attend(self, name: str, x: Tensor, memory: Tensor, bias: Tensor) -> Tensor:
        b, inner = self.b, self.heads * self.head_width
        with b.scope(name):
            q = split_heads(b, b.linear(x, inner, bias=False, name="q"), self.heads)
            k, v = (split_heads(b, b.linear(memory, inner, bias=False, name=n), self.heads) for n in "kv")
            y = b.op(Attention(dropout=True), [q, k, v, bias], [q.shape], name="attention")[0]
            return b.linear(join_heads(b, y), x.shape[-1], bias=False, name="o")

    def _feed_forward(self, x: Tensor, *, is_sparse: bool) -> Tensor:
        b = self.b
        if is_sparse:
            with b.scope("mlp"):
                return switch_layer(b, x, self.experts, self.ffn, self.capacity)
        if self.gated:
            with b.scope("DenseReluDense"):
                y = gelu_new(b, b.linear(x, self.ffn, bias=False, name="wi_0"))
                y = b.dropout(b.mul(y, b.linear(x, self.ffn, bias=False, name="wi_1")))
                return b.linear(y, x.shape[-1], bias=False, name="wo")
        with b.scope("mlp" if self.experts else "DenseReluDense"):
            y = b.dropout(b.relu(b.linear(x, self.ffn, bias=False, name="wi")))
            return b.linear(y, x.shape[-1], bias=False, name="wo")

    def _position_bias(self, length: int) -> Tensor:
        """(1, H, T, T): a table of 32 buckets per head, looked up by distance."""
        b = self.b
        distances = b.constant("distances", (length, length), DType.INT64)
        bias = b.embedding(chain(b, distances, _BUCKETING), 32, self.heads, name="relative_attention_bias")
        return b.view(bias, (1, self.heads, length, length), "permute")


def _looked_up(b: Builder, ids: Tensor, table: Tensor) -> Tensor:
    return b.op(Embedding(), [ids], [(*ids.shape, table.shape[1])], weights=[table], name="embed_tokens")[0]
