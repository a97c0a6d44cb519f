"""Live objects of frameworks where a name is meant: torch.bfloat16, torch.optim.AdamW, an optimizer that exists.

Nothing is imported: an object is known by the package of its class.
"""

from functools import partial
from typing import Any

from epochcast.describe.capture.config.optimizers import match_optimizer
from epochcast.errors import BadInput

_FRAMEWORKS = frozenset({"torch", "keras", "tensorflow", "tf_keras", "transformers", "bitsandbytes", "apex", "numpy"})


def precision_name(value: object) -> str | None:
    """bfloat16 of torch.bfloat16; None for what is no dtype."""
    if type(value).__name__ in ("dtype", "DType") and _package(type(value)) in _FRAMEWORKS:
        return str(getattr(value, "name", value)).removeprefix("torch.")
    return None


def optimizer_name(value: object) -> str | None:
    """Our name of an optimizer's class, of an instance, or of a class with arguments (`functools.partial`); None for
    what is none of these.
    """
    arguments: dict[str, Any] = {}
    if isinstance(value, partial):
        arguments, value = dict(value.keywords), value.func
    kind = value if isinstance(value, type) else type(value)
    if not any(base.__name__ == "Optimizer" and _package(base) in _FRAMEWORKS for base in kind.__mro__):
        return None
    if kind is not value:
        arguments = {name: getattr(value, name) for name in ("momentum", "nesterov") if hasattr(value, name)}
        arguments |= getattr(value, "defaults", {})
    optimizer = match_optimizer(
        kind.__name__, momentum=arguments.get("momentum"), nesterov=arguments.get("nesterov") or None
    )
    if optimizer.problem:
        raise BadInput(optimizer.problem)
    return optimizer.name


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
