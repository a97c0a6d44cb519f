"""A measured step split into what calibration may scale and what it does not change.

A single measured product is such a step, too, with one kernel and no launch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns, Trace
from epochcast.errors import EpochcastError
from epochcast.hardware.device import Device
from epochcast.measure.evaluate.scores import Array
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.calibrated import is_compute_bound
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.hosts import LaunchHost
from epochcast.predict.cost.launch import host_seconds
from epochcast.predict.cost.op_bounds import caps
from epochcast.predict.cost.product import Product, product_columns
from epochcast.predict.cost.roofline import peaks
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.forecast.streams import kernel_ends


@dataclass(frozen=True)
class StepPieces:
    """The parts of a row's step: kernels, launches, and the seconds that calibration does not change."""

    kernels: Array
    is_compute: NDArray[np.bool_]
    launches: Array
    is_update: NDArray[np.bool_]
    accumulate: int
    other_seconds: float
    measured_seconds: float
    prior_spread: float
    kinds: NDArray[np.int64] | None = None
    """Which of KINDS each kernel is; None where that is not told apart."""

    def seconds(self, factors: Array) -> float:
        """f(θ): both streams simulated again, with kernels and launches scaled by e^θ: arithmetic, memory, launches,
        and each of KINDS on top; those that are left out are 1.
        """
        compute, memory, launch, *by_kind = np.exp(factors)
        kernels = self.kernels * np.where(self.is_compute, compute, memory)
        if by_kind and self.kinds is not None:
            kernels = kernels * np.array(by_kind)[self.kinds]
        ends = kernel_ends(kernels, self.launches * launch)
        total = float(ends[-1]) + self.other_seconds
        if self.accumulate > 1:
            total += (self.accumulate - 1) * float(ends[~self.is_update][-1])
        return total


def op_kinds(columns: Columns) -> NDArray[np.int64]:
    """The index in KINDS of every op."""
    by_class = np.array([list(KINDS).index(next(k for k, classes in KINDS.items() if c in classes)) for c in CLASSES])
    kinds: NDArray[np.int64] = by_class[columns.op_class]
    return kinds


_GROUPED = frozenset({OpClass.CONV_GROUPED, OpClass.CONV_DEPTHWISE})
_CONV = frozenset({OpClass.CONV, OpClass.CONV_POINTWISE, OpClass.CONV_TRANSPOSED})
_PRODUCTS = frozenset(c for c in OpClass if c.is_matrix) - _CONV - _GROUPED
KINDS: Mapping[str, frozenset[OpClass]] = {
    "convolutions": _CONV,
    "grouped convolutions": _GROUPED,
    "other products": _PRODUCTS,
    "everything else": frozenset(OpClass) - _CONV - _GROUPED - _PRODUCTS,
}
"""Kinds of kernels that devices are good or bad at, with their op classes."""

# How much longer than the whole step its kernels may take before they are not one GPU's: rounding.
LEAST_REST = 0.01


def step_pieces(
    runs: Sequence[MeasuredRun], model: CostModel, allow_code: bool
) -> tuple[list[StepPieces], list[FailedRow]]:
    """The pieces of every run that can be forecast, and why the others cannot."""
    session = Session(model, with_own_profiles=False, allow_code=allow_code)
    pieces, failures = [], []
    for run in runs:
        try:
            details = forecast_job(run.job, run_placement(run), session, step_only=True).details
        except EpochcastError as error:
            failures.append(FailedRow.because(run.row_index, run.model, error))
            continue
        rank = details.placement.strategy.rank_trace(details.trace, details.placement.gpus)
        step_parts = _split(run, rank, details.step, details.placement.host)
        reason = too_fast(run, rank.columns)
        if step_parts is None and reason is None:
            reason = f"a step under {details.placement.strategy.name} is not the sum of one GPU's kernels"
        if step_parts is None or reason is not None:
            failures.append(FailedRow(run.row_index, run.model, str(reason)))
        else:
            pieces.append(step_parts)
    return pieces, failures


def too_fast(run: MeasuredRun, columns: Columns) -> str | None:
    """No step is faster than its products at the device's peak, even with fewer multiplications than are counted."""
    products = columns.at(columns.is_matrix)
    fastest = products.flops / peaks(products, run.device) * np.exp(-caps(products))
    least_seconds = float(fastest.sum()) * run.recipe.accumulate
    if run.step_seconds >= least_seconds:
        return None
    return (
        f"row {run.row_index + 1}: {run.model} cannot take {run.step_seconds:.3g} s a step: at the peak of "
        f"{run.device.name} it takes {least_seconds:.3g} s; check its batch, unit and device"
    )


def _split(run: MeasuredRun, trace: Trace, step: StepForecast, host: LaunchHost | None) -> StepPieces | None:
    """The pieces of a forecast step, which give its seconds without scaling; None where its kernels alone take longer
    (ranks divide them).
    """
    columns = trace.columns
    log_half_width = np.log(step.seconds.high / step.seconds.low) / 2
    pieces = StepPieces(
        step.costs.mid,
        is_compute_bound(columns, run.device),
        host_seconds(trace, run.device, host),
        columns.phase == PHASES.index(Phase.UPDATE),
        run.recipe.accumulate,
        0.0,
        run.step_seconds,
        float(np.exp(log_half_width)),
        op_kinds(columns),
    )
    other_seconds = step.seconds.mid - pieces.seconds(np.zeros(3))
    if other_seconds < -LEAST_REST * step.seconds.mid:
        return None
    return replace(pieces, other_seconds=max(0.0, other_seconds))


def product_pieces(product: Product, device: Device, model: CostModel) -> StepPieces:
    """A measured product as a step of one kernel."""
    columns = product_columns((product.m, product.n, product.k), product.precision)
    costs = model.costs(columns, device, SoftwareSetting())
    spread = float(np.sqrt(costs.high[0] / costs.low[0]))
    zero, is_kernel = np.zeros(1), np.ones(1, dtype=bool)
    return StepPieces(costs.mid, is_kernel, zero, ~is_kernel, 1, 0.0, product.seconds, spread, op_kinds(columns))
