"""Fused attention that reads a mask or a bias of the scores, on NVIDIA's Hopper and later.

PyTorch runs it by its memory-efficient kernel, which is written for Ampere's units. Such a kernel reaches 35 % of an
H100's peak in halves (FlashAttention-2, measured by Shah et al., "FlashAttention-3", 2024). A later GPU is taken to run
it as fast as an H100, multiprocessor by multiprocessor:

    seconds ≥ flops / (0.35 · peak of an H100 · multiprocessors / those of an H100)

No open measurement isolates it. Kernels of a compiled step are not bounded by it.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.ops.attention_op import OPERANDS
from epochcast.describe.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.cost_model import Costs

REACHED_FRACTION = 0.35
_AFTER_AMPERE = frozenset({"hopper", "blackwell"})
_HALF_BYTES = 2.0


def at_masked_rate(costs: Costs, trace: Trace, device: Device) -> Costs:
    """The costs of the ops of an eager step, none of masked attention below what its kernel takes."""
    if device.vendor != "NVIDIA" or device.generation not in _AFTER_AMPERE:
        return costs
    masked = masked_entries(trace)
    if not masked.any():
        return costs
    columns = trace.columns
    rate = _rate_per_unit() * device.compute_units
    least = np.where(masked & (columns.element_bytes <= _HALF_BYTES), columns.flops / rate, 0.0)
    mid = np.maximum(costs.mid, least)
    moved = mid / costs.mid
    return replace(costs, low=costs.low * moved, mid=mid, high=costs.high * moved)


def masked_entries(trace: Trace) -> NDArray[np.bool_]:
    """Which entries of the columns are attention with a mask or bias, or its gradient."""
    base = trace.template.base
    layers = {
        op.layer for op in base if isinstance(op.kind, Attention) and not op.is_gradient and len(op.inputs) > OPERANDS
    }
    is_masked = [isinstance(op.kind, Attention) and op.layer in layers for op in base]
    return np.array(is_masked, dtype=np.bool_)[trace.places]


@remembered(1)
def _rate_per_unit() -> float:
    """Flops per second of one multiprocessor."""
    h100 = find_device("H100-SXM5-80GB")
    return REACHED_FRACTION * h100.peak("fp16") / h100.compute_units
