"""The translation transformer (Vaswani et al. 2017, "Attention Is All You Need").

Layers and names are those of `torch.nn.Transformer`. Source and target have as many tokens (WMT'14 sentences average
below thirty). One table of the shared vocabulary embeds both and is the output layer (section 3.4); positions are
sines, a constant. Norms stand behind each residual (post-norm), none at the end of a stack.
"""

from epochcast.describe.capture.zoo.attention_layers import multihead_attention, sequence_length, token_ids
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def transformer(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int = 6,
    width: int = 512,
    heads: int = 8,
    ffn: int = 2048,
    vocabulary: int = 37000,
    length: int = 32,
) -> Graph:
    """`layers` on both sides. `vocabulary`: "a shared source-target vocabulary of about 37000 tokens" (section 5.1)."""
    length = sequence_length(name, input_shape, length)
    b = Builder(name, batch)
    memory = _embedded(b, "source_ids", length, vocabulary, width)
    for index in range(layers):
        with b.scope(f"encoder.layers.{index}"):
            y = multihead_attention(b, memory, None, heads, name="self_attn", dropout=True)
            memory = b.layer_norm(b.add(memory, b.dropout(y)), name="norm1")
            memory = b.layer_norm(b.add(memory, _feed_forward(b, memory, ffn)), name="norm2")
    x = _embedded(b, "target_ids", length, vocabulary, width)
    for index in range(layers):
        with b.scope(f"decoder.layers.{index}"):
            y = multihead_attention(b, x, None, heads, name="self_attn", causal=True, dropout=True)
            x = b.layer_norm(b.add(x, b.dropout(y)), name="norm1")
            y = multihead_attention(b, x, memory, heads, name="multihead_attn", dropout=True)
            x = b.layer_norm(b.add(x, b.dropout(y)), name="norm2")
            x = b.layer_norm(b.add(x, _feed_forward(b, x, ffn)), name="norm3")
    table = b.parameters["embedding.weight"].tensor
    logits = b.linear(x, vocabulary, bias=False, weight=table, name="generator")
    return b.finish(logits, units_per_sample=length)


def _embedded(b: Builder, name: str, length: int, vocabulary: int, width: int) -> Tensor:
    """Embedding · √width + sines, with dropout."""
    x = b.elementwise("scale", b.embedding(token_ids(b, length, name), vocabulary, width, name="embedding"))
    positions = b.constant(f"{name}.positions", (1, length, width))
    return b.dropout(b.add(x, positions))


def _feed_forward(b: Builder, x: Tensor, ffn: int) -> Tensor:
    y = b.dropout(b.relu(b.linear(x, ffn, name="linear1")))
    return b.dropout(b.linear(y, x.shape[-1], name="linear2"))
