"""Transformer-XL (Dai et al. 2019): a language model that attends to the hidden states of the segment before.

    scores = (q + u)·kᵀ + shift((q + v)·rᵀ)        r = W_r · sines of the distance, u and v learned for each head

T tokens attend to K = T + M states, M of them from the segment before, which get no gradient. Layers and names are
those of the authors' PyTorch code, which NVIDIA's examples follow: no fused attention, norms behind each residual, one
table of words that embeds them and scores them. The words are sorted by frequency and cut into clusters (adaptive
softmax, Grave et al. 2017): all tokens are scored against the first, only those that are in another against that. How
many these are depends on the text; here it follows from Zipf's law. A cluster's words may be narrower than the one
before by `narrowing`, with a projection to the model's width. Biases of the scores are left out.
"""

from itertools import pairwise
from math import log

from epochcast.describe.capture.zoo.attention_layers import join_heads, sequence_length, split_heads, token_ids
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

WORDS = 267_735
"""The words of WikiText-103."""
CUTOFFS = (0, 19_997, 39_997, 199_997, WORDS)
_EULER = 0.5772


def transformer_xl(
    batch: int,
    input_shape: tuple[int, ...] | None = None,
    *,
    name: str,
    layers: int = 16,
    width: int = 512,
    heads: int = 8,
    ffn: int = 2048,
    segment: int = 192,
    narrowing: int = 1,
    attention_dropout: bool = False,
) -> Graph:
    """As many states of the segment before as the segment has tokens."""
    length = sequence_length(name, input_shape, segment)
    b = Builder(name, batch)
    x = b.dropout(_embedded(b, length, width, narrowing))
    positions = b.dropout(b.constant("sines", (1, 2 * length, width)))
    for index in range(layers):
        memory = b.input(f"memory.{index}", (length, width))
        with b.scope(f"layers.{index}"):
            y = _relative_attention(b, x, memory, positions, heads, dropout=attention_dropout)
            x = b.layer_norm(b.add(x, b.dropout(y)), name="attention_norm")
            y = b.dropout(b.relu(b.linear(x, ffn, name="ffn.0")))
            x = b.layer_norm(b.add(x, b.dropout(b.linear(y, width, name="ffn.3"))), name="ffn_norm")
    return b.finish(_scores(b, b.dropout(x), narrowing), units_per_sample=length)


def _relative_attention(
    b: Builder, x: Tensor, memory: Tensor, positions: Tensor, heads: int, *, dropout: bool
) -> Tensor:
    batch, length, width = x.shape
    head, states = width // heads, 2 * length
    both = b.concatenate([memory, x], axis=1)
    q, k, v = b.split(b.linear(both, 3 * width, bias=False, name="qkv_net"), 3)
    q = b.view(q, x.shape, "last_tokens")
    r = split_heads(b, b.linear(positions, width, bias=False, name="r_net"), heads)
    q, k, v = (split_heads(b, t, heads) for t in (q, k, v))
    by_content = b.add(q, b.parameter("r_w_bias", (heads, 1, head)))
    by_distance = b.add(q, b.parameter("r_r_bias", (heads, 1, head)))
    content = b.matmul(by_content, b.copy("contiguous", k, k.shape), transpose_b=True, name="content")
    # One product of all samples' tokens with each head's distances.
    rows = b.view(by_distance, (1, heads, batch * length, head), "all_tokens")
    distance = b.view(b.matmul(rows, r, transpose_b=True, name="distance"), content.shape, "by_sample")
    distance = b.copy("shift", b.copy("pad", distance, (batch, heads, length, states + 1)), content.shape)
    scores = b.elementwise("masked_fill", b.elementwise("scale", b.add(content, distance)))
    weights = b.softmax(scores)
    if dropout:
        weights = b.dropout(weights)
    mixed = b.copy("contiguous", b.matmul(weights, v, name="mix"), (batch, heads, length, head))
    return b.linear(join_heads(b, mixed), width, bias=False, name="o_net")


def _embedded(b: Builder, length: int, width: int, narrowing: int) -> Tensor:
    """Rows of the table, scaled by √width; those of narrow clusters are projected, each token in its own."""
    ids = token_ids(b, length)
    if narrowing == 1:
        return b.elementwise("scale", b.embedding(ids, WORDS, width, name="word_emb"))
    parts = []
    for index, (words, tokens) in enumerate(_clusters(length)):
        mine = b.gather("index_select", ids, (b.batch, tokens))
        rows = b.embedding(mine, words, width // narrowing**index, name=f"word_emb.{index}")
        parts.append(b.linear(rows, width, bias=False, name=f"emb_projs.{index}"))
    return b.elementwise("scale", b.gather("index_copy", b.concatenate(parts, axis=1), (b.batch, length, width)))


def _scores(b: Builder, x: Tensor, narrowing: int) -> list[Tensor]:
    """Of every cluster, the tokens that are scored against it; tables and projections are those of the embedding."""
    width, scores = x.shape[-1], []
    for index, (words, tokens) in enumerate(_clusters(x.shape[1])):
        mine = x if index == 0 else b.gather("index_select", x, (b.batch, tokens, width))
        if narrowing == 1:
            table = b.parameters["word_emb.weight"].tensor
            rows = b.view(table, (words, width), "cluster")
        else:
            projection = b.parameters[f"emb_projs.{index}.weight"].tensor
            mine = b.matmul(mine, projection, name=f"crit.out_projs.{index}")
            rows = b.parameters[f"word_emb.{index}.weight"].tensor
        scores.append(b.matmul(mine, rows, transpose_b=True, name=f"crit.{index}"))
    return scores


def _clusters(length: int) -> list[tuple[int, int]]:
    """Words of each cluster and tokens of a sample that are in it, at least one: Σ 1/n ≈ ln n + γ up to word n."""

    def share(words: int) -> float:
        return (log(words) + _EULER) / (log(WORDS) + _EULER) if words else 0.0

    ends = list(pairwise(CUTOFFS))
    tails = [max(1, round(length * (share(end) - share(start)))) for start, end in ends[1:]]
    tokens = [max(1, length - sum(tails)), *tails]
    return [(end - start, count) for (start, end), count in zip(ends, tokens, strict=True)]
