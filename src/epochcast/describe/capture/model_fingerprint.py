"""A short text that changes when a model does: a digest of the shapes of its parameters.

It shows whether a reference still gives the same model as when a job was saved. Only sizes count: not values, and not
the order of dimensions, which differs between front ends. A change that keeps the size of every parameter is missed.
"""

from collections.abc import Iterable
from hashlib import sha256

from epochcast.describe.capture.workload import Workload


def fingerprint(model: object) -> str:
    """The fingerprint of an `nn.Module`, a Keras model, or anything `find_model` accepts."""
    model = model.model if isinstance(model, Workload) else model
    parameters = getattr(model, "named_parameters", None)
    if callable(parameters) and not hasattr(model, "get_config"):
        return _digest(tuple(parameter.shape) for _, parameter in parameters())
    from epochcast.describe.capture.resolve import find_model
    from epochcast.describe.graph.trace import SMALL_BATCH

    return _digest(parameter.tensor.shape for parameter in find_model(model).graph(SMALL_BATCH).parameters)


def _digest(shapes: Iterable[tuple[int, ...]]) -> str:
    return sha256(repr(sorted(sorted(shape) for shape in shapes)).encode()).hexdigest()[:16]
