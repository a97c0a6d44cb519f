"""Options of a job that say one thing in different ways."""

from collections.abc import Mapping
from typing import Any

INSTEAD: Mapping[str, tuple[str, ...]] = {
    "batch": ("global_batch",),
    "global_batch": ("batch",),
    "tokens": ("samples", "epochs"),
    "samples": ("tokens",),
    "epochs": ("tokens",),
    "lengths": ("input_shape",),
    "input_shape": ("lengths",),
}
"""Options that say one thing in different ways: what is said later takes the others back."""


def without_replaced(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """What was said before, without what later options say in another way."""
    replaced = {other for name, value in later.items() if value is not None for other in INSTEAD.get(name, ())}
    return {name: value for name, value in before.items() if name not in replaced}
