"""A short text that changes when a model does: a digest of the shapes of its parameters.

It tells whether what a reference makes today is what it made when a job was written down. Sizes count, not values and
not the order of dimensions, in which front ends differ; a change that keeps every parameter's size is not seen.
"""

from collections.abc import Iterable
from hashlib import sha256


def fingerprint(model: object) -> str:
    """Of a live `nn.Module`, a Keras model, or whatever `find_model` understands."""
    parameters = getattr(model, "named_parameters", None)
    if callable(parameters) and not hasattr(model, "get_config"):
        return _digest(tuple(parameter.shape) for _, parameter in parameters())
    from epochcast.capture.resolve import find_model
    from epochcast.graph.trace import SMALL_BATCH

    return _digest(parameter.tensor.shape for parameter in find_model(model).graph(SMALL_BATCH).parameters)


def _digest(shapes: Iterable[tuple[int, ...]]) -> str:
    return sha256(repr(sorted(sorted(shape) for shape in shapes)).encode()).hexdigest()[:16]
