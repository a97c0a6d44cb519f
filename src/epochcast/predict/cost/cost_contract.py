"""The contract of cost models, as a check that anyone can run on their own model.

`check_op_cost` costs a trace twice, and at twice the batch, and checks: the trace was not changed; both results are
equal; every result is finite, ordered and, if the op has work, positive; a model that claims to be monotone does not
get cheaper when every op has more work.
"""

import numpy as np

from epochcast.describe.graph.trace import COLUMN_NAMES, Trace
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import CostModel, Costs, describe_op
from epochcast.predict.cost.software_setting import TODAY


class BrokenCostContract(AssertionError):
    """A cost model that breaks the contract; the message says which part, and for which op."""


def check_op_cost(model: CostModel, trace: Trace, device: Device) -> None:
    """Raise `BrokenCostContract` unless the model keeps the contract on this trace and device."""
    before = [array.copy() for array in _arrays(trace)]
    first, second = (model.costs(trace.columns, device, TODAY) for _ in range(2))
    for old, new in zip(before, _arrays(trace), strict=True):
        if not np.array_equal(old, new):
            raise BrokenCostContract(f"{model.name} changes the trace")
    if len(first) != len(trace.columns):
        raise BrokenCostContract(f"{model.name} answers for {len(first)} ops of {len(trace.columns)}")
    for end in ("low", "mid", "high"):
        if not np.array_equal(getattr(first, end), getattr(second, end), equal_nan=True):
            raise BrokenCostContract(f"{model.name} gives different results for the same trace")
    _check_values(model, first, trace)
    if model.is_monotone:
        _check_monotone(model, first, trace, device)


def _check_values(model: CostModel, costs: Costs, trace: Trace) -> None:
    """Finite, not below zero, above zero where there is work, ordered, where there is an answer at all."""
    columns = trace.columns
    answered = costs.answered >= 0
    has_work = (columns.flops > 0) | (columns.bytes > 0)
    with np.errstate(invalid="ignore"):
        checks = {
            "finite": np.isfinite(costs.low) & np.isfinite(costs.mid) & np.isfinite(costs.high),
            "positive": np.where(has_work, costs.low > 0, costs.low >= 0),
            "ordered": (costs.low <= costs.mid) & (costs.mid <= costs.high),
        }
    for word, holds in checks.items():
        wrong = np.flatnonzero(answered & ~holds)
        if len(wrong):
            i = int(wrong[0])
            ends = f"{costs.low[i]:.3g}, {costs.mid[i]:.3g}, {costs.high[i]:.3g}"
            raise BrokenCostContract(f"{model.name} is not {word} for {_described(trace, i)}: {ends}")


def _check_monotone(model: CostModel, costs: Costs, trace: Trace, device: Device) -> None:
    larger_trace = trace.rebatch(2 * trace.batch)
    larger_costs = model.costs(larger_trace.columns, device, TODAY)
    with np.errstate(invalid="ignore"):
        cheaper = larger_costs.mid < costs.mid * (1 - 1e-9)
    wrong = np.flatnonzero(cheaper & (larger_trace.columns.flops >= trace.columns.flops))
    if len(wrong):
        raise BrokenCostContract(f"{model.name} gets cheaper with more work for {_described(trace, int(wrong[0]))}")
    for end in ("low", "high"):  # of all ops together: how sure an op is depends on the step it is in
        if np.nansum(getattr(larger_costs, end)) < np.nansum(getattr(costs, end)) * (1 - 1e-9):
            raise BrokenCostContract(f"{model.name} gets cheaper with more work for the {end} end of the step")


def _described(trace: Trace, index: int) -> str:
    return f"{describe_op(trace.columns, index)} of layer {trace.layers[index]!r}"


def _arrays(trace: Trace) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    return [getattr(trace.columns, name) for name in COLUMN_NAMES]
