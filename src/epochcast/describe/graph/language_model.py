"""Whether a network is a language model: it reads tokens and scores every word of its vocabulary.

Tokens are looked up in a table with a row for each word; a causal, masked or sequence-to-sequence head multiplies into
one score per row. A classifier of texts or a recommender looks rows up as well, and scores something else.
"""

from collections.abc import Iterable

from epochcast.describe.graph.op import Graph, Op, Phase
from epochcast.describe.graph.op_kinds import Embedding, Loss, Matmul, Softmax, View

_TOKEN_SIZES = 2  # (samples, positions)
# Rows without a score: tokens that stand for images are never predicted (Llama 3.2 has 8 of 128,264).
_UNSCORED_FRACTION = 0.001


def vocabulary_size(graph: Graph) -> int | None:
    """Rows of the largest table that tokens are looked up in, if a product scores nearly all of them; else None."""
    rows = [
        op.weights[0].shape[0]
        for op in graph.ops
        if isinstance(op.kind, Embedding) and op.weights and len(op.inputs[0].shape) >= _TOKEN_SIZES
    ]
    size = max(rows, default=0)
    least = size - int(_UNSCORED_FRACTION * size)
    widths = (op.output.shape[-1] for op in graph.ops if isinstance(op.kind, Matmul) and op.output.shape)
    return size if size and any(least <= width <= size for width in widths) else None


def is_language_model(graph: Graph) -> bool:
    """Whether it reads tokens and scores a vocabulary."""
    return vocabulary_size(graph) is not None


def head_weights(ops: Iterable[Op]) -> frozenset[str]:
    """Names of weights whose product the loss reads, also through views; without a loss, that of the last product."""
    source: dict[str, str] = {}
    product: dict[str, str] = {}
    names: set[str] = set()
    for op in ops:
        if op.phase is not Phase.FORWARD:
            break
        if isinstance(op.kind, View):
            viewed = op.inputs[0].name if op.inputs else ""  # a constant is a view of nothing
            source |= {t.name: source.get(viewed, viewed) for t in op.outputs if viewed}
        elif isinstance(op.kind, Matmul) and op.weights:
            product[op.output.name] = op.weights[0].name
        elif isinstance(op.kind, Loss) or op.kind == Softmax(log=True):
            names |= {product.get(source.get(t.name, t.name), "") for t in op.inputs}
    return frozenset(names - {""} or list(product.values())[-1:])


def is_head(op: Op, heads: frozenset[str]) -> bool:
    """Whether it is the product with a head's weight, or with a copy of it."""
    reads = ({t.name, t.relation.copy_of} & heads for t in (*op.inputs, *op.weights))
    return isinstance(op.kind, Matmul) and not op.is_gradient and any(reads)
