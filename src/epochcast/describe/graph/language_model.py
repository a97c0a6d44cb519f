"""Whether a network is a language model: it reads tokens and scores every word of its vocabulary.

Tokens are looked up in a table with a row for each word; a causal, masked or sequence-to-sequence head multiplies into
one score per row. A classifier of texts or a recommender looks rows up as well, and scores something else.
"""

from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Embedding, Matmul

_TOKEN_SIZES = 2  # (samples, positions)


def vocabulary_size(graph: Graph) -> int | None:
    """Rows of the largest table that tokens are looked up in, if a matrix product has as many scores; else None."""
    rows = [
        op.weights[0].shape[0]
        for op in graph.ops
        if isinstance(op.kind, Embedding) and op.weights and len(op.inputs[0].shape) >= _TOKEN_SIZES
    ]
    size = max(rows, default=None)
    has_head = any(isinstance(op.kind, Matmul) and op.output.shape[-1:] == (size,) for op in graph.ops)
    return size if has_head else None


def is_language_model(graph: Graph) -> bool:
    """Whether it reads tokens and scores a vocabulary."""
    return vocabulary_size(graph) is not None
