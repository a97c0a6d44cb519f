"""What follows from an operator's schema, computed once per operator."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from epochcast.describe.capture.torch.aten_rules import Rule
from epochcast.describe.capture.torch.aten_table import ASKS_VALUES, FREE, rule_for
from epochcast.describe.capture.torch.meta_shapes import QUICK, Quick


class CallPlan(NamedTuple):
    """An operator: its name, its rule, which arguments it writes, and how its results come about."""

    name: str
    rule: Rule | None
    writes: tuple[tuple[int, str], ...]
    is_view: bool
    is_foreach: bool
    asks_values: bool
    quick: Quick | None

    @property
    def makes_values(self) -> bool:
        """Whether its results may have values of their own: views share those of what they look at."""
        return self.rule is not None and not self.is_view and not self.is_foreach

    def written(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
        """The tensors on `meta` that a call writes into."""
        for place, name in self.writes:
            value = args[place] if place < len(args) else kwargs.get(name)
            for tensor in value if isinstance(value, list | tuple) else (value,):
                if isinstance(tensor, torch.Tensor) and tensor.device.type == "meta":
                    yield tensor


_PLANS: dict[Any, CallPlan] = {}


def plan_of(func: Any) -> CallPlan:
    """The plan of an operator."""
    plan = _PLANS.get(func)
    if plan is None:
        plan = _PLANS[func] = _plan(func)
    return plan


def _plan(func: Any) -> CallPlan:
    schema = func._schema
    full = schema.name.rpartition("::")[2]
    is_foreach = full.startswith(("_foreach_", "_fused_adam", "_fused_sgd", "_amp_foreach"))
    name = full.removesuffix("_")
    writes = tuple(
        (i, a.name) for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write
    )
    rule = None if name in FREE else rule_for(func, name)
    quick = QUICK.get(full) if schema.overload_name in ("", "Tensor", "Scalar") else None
    return CallPlan(name, rule, writes, bool(getattr(func, "is_view", False)), is_foreach, name in ASKS_VALUES, quick)
