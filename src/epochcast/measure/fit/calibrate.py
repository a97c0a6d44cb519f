"""A profile of the user's own device, from a few measured steps or one matrix product.

A step of row i is f_i(θ): its kernels multiplied by e^θc where arithmetic binds and e^θm where traffic binds, by the
e^θ of their kind (convolutions, grouped ones, other products, everything else), its launches by e^θl, with the two
streams simulated again. The factors are fitted in logarithms, with a ridge prior at "as forecast":

    minimise  Σ_i ρ((log y_i − log f_i(θ)) / σ)  +  Σ_j θ_j² / τ_j²

with σ = 0.1 (the scatter of rows), τ = 0.5 for a factor of all kernels (the expected error of a device's forecast) and
0.3 for others, and ρ the loss of Huber (1964): square up to σ, linear beyond, so that one odd row of five does not
decide. By Gauss–Newton with weights.

The number of factors is chosen by leave-one-out: of the corrections "none", "one scale" (θc = θm = θl), "two scales"
(θc, θm), "two scales and launch" and "a scale for each kind of kernel" (θc = θm, the kinds, θl), the one with the least
leave-one-out error is taken; "none" where no other is better. A single row cannot be left out: it gets one scale, and a
measured product the scale of arithmetic alone.

The interval afterwards: σ̂² = (ν·s² + Σ r_i²) / (ν + n) with r_i the leave-one-out log errors, s the half-width of the
interval before / 1.645 and ν = 5, the weight of the prior in rows; the spread is e^(±1.645 σ̂).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from epochcast.base.record import HIDDEN, Record, paths
from epochcast.describe.graph.precision import PRECISIONS, SINGLE_ROUNDED, find_precision
from epochcast.describe.graph.trace import CLASSES
from epochcast.errors import BadInput
from epochcast.hardware.device import Device
from epochcast.hardware.profile import Profile
from epochcast.measure.evaluate.scores import Array
from epochcast.measure.fit.device_runs import device_runs
from epochcast.measure.fit.step_pieces import KINDS, StepPieces, product_pieces, step_pieces
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.launch import launch_seconds as seconds_per_launch
from epochcast.predict.cost.product import Product, check_rate

ROW_SIGMA, PRIOR_SIGMA, SCALE_SIGMA, PRIOR_ROWS = 0.1, 0.3, 0.5, 5
# Rows whose logarithm is off by more count less (Huber 1964): one odd row of five must not decide.
ODD = 0.1
FACTORS = 3 + len(KINDS)
NINETY = 1.645
"""The normal quantile: 90 % of values lie within ± this many standard deviations."""

# The corrections to choose from: which of θc, θm, θl and the θ of the kinds each free parameter changes.
CORRECTIONS: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "none": (),
    "one scale": ((0, 1, 2),),
    "two scales": ((0,), (1,)),
    "two scales and launch": ((0,), (1,), (2,)),
    "a scale for each kind of kernel": ((0, 1), (2,), *((3 + kind,) for kind in range(len(KINDS)))),
}
# A product alone says nothing about memory and launches.
PRODUCT_CORRECTIONS: Mapping[str, tuple[tuple[int, ...], ...]] = {"none": (), "arithmetic": ((0,),)}
# A correction with more parameters must be better by this much, or noise would decide.
LEAST_GAIN = 0.02


@dataclass(frozen=True, slots=True)
class ScaleCorrection(Record):
    """A fitted correction of the model, with its error on all rows and on rows that were left out of the fit."""

    name: str
    factors: tuple[float, ...] = field(metadata=HIDDEN)
    mape: float
    loo_mape: float


@dataclass(frozen=True, slots=True)
class CorrectedError(Record):
    """Mean absolute percentage errors without correction, with the chosen one, and on rows left out of its fit."""

    before: float
    after: float
    leave_one_out: float


@dataclass(frozen=True, slots=True)
class CorrectedSpread(Record):
    """Factors low and high of the 90 % interval of a step, before and after."""

    before: tuple[float, float]
    after: tuple[float, float]


@dataclass(frozen=True)
class Calibration(Record):
    """The result: all corrections, the chosen one, its profile, and the interval before."""

    device: Device
    chosen: ScaleCorrection
    corrections: tuple[ScaleCorrection, ...]
    profile: Profile
    before_spread: tuple[float, float]
    failures: tuple[FailedRow, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def before(self) -> ScaleCorrection:
        """The model without correction."""
        return self.corrections[0]

    @property
    def mape(self) -> CorrectedError:
        """Its errors, before and after."""
        return CorrectedError(self.before.mape, self.chosen.mape, self.chosen.loo_mape)

    @property
    def interval(self) -> CorrectedSpread:
        """The interval of a step, before and after."""
        return CorrectedSpread(self.before_spread, self.profile.step_spread or self.before_spread)

    json_paths: ClassVar[Mapping[str, str]] = {
        **paths("mape", "interval", "notes", device="device.name", chosen="chosen.name"),
        **paths(failed="failures", candidates="corrections"),
        **{
            name: f"profile.{name}"
            for name in (
                *("rows", "precisions", "launch_seconds", "gemm_fraction"),
                *("compute_factor", "memory_factor", "class_factor"),
            )
        },
    }


def calibrate(
    rows: Iterable[dict[str, Any]],
    device: Device,
    cost_model: CostModel,
    *,
    date: str,
    gemm: Product | None = None,
    precision: str | None = None,
    allow_code: bool = False,
) -> Calibration:
    """A profile from measured runs, a measured product, or both; rows of other devices are ignored, and with a
    `precision` those of other precisions. A product that names none is in `precision`, or in fp32.
    """
    precision = None if precision is None else find_precision(precision).name
    notes: list[str] = []
    runs, failures = device_runs(rows, device, precision, allow_code, notes) if rows or gemm is None else ([], [])
    if gemm is not None:
        gemm = replace(gemm, precision=gemm.precision or precision or "fp32")
    return calibrate_runs(runs, failures, device, cost_model, date=date, notes=notes, gemm=gemm, allow_code=allow_code)


def calibrate_runs(
    runs: Sequence[MeasuredRun],
    failures: Sequence[FailedRow],
    device: Device,
    cost_model: CostModel,
    *,
    date: str,
    notes: Sequence[str] = (),
    gemm: Product | None = None,
    allow_code: bool = False,
) -> Calibration:
    """A profile from runs on one device; `failures` and `notes` are of the table that they were read from."""
    pieces: list[StepPieces] = []
    if runs:
        pieces, without = step_pieces(runs, cost_model, allow_code)
        failures = [*without, *failures]
        if not pieces and gemm is None:
            raise BadInput(f"no row of {device.name} can be forecast: {failures[0].reason}")
    step_count = len(pieces)
    fractions = {}
    if gemm is not None:
        math = PRECISIONS[gemm.precision].math
        fractions = {math: check_rate(device, gemm, math)}
        pieces.append(product_pieces(gemm, device, cost_model))
    corrections = fit_corrections(pieces, CORRECTIONS if step_count else PRODUCT_CORRECTIONS)
    chosen = best_correction(corrections, len(pieces))
    compute, memory, launch, *by_kind = (float(np.exp(theta)) for theta in chosen.factors)
    prior = float(np.mean([p.prior_spread for p in pieces]))
    spread = calibrated_spread(pieces, chosen, prior)
    launch_seconds = seconds_per_launch(device) * launch
    measured = [f"{step_count} measured steps"] if step_count else []
    measured += ["one measured product"] if gemm is not None else []
    errors = f"{corrections[0].mape:.1%} before, {chosen.mape:.1%} after"
    profile = Profile(
        device=device.name,
        stack=runs[0].setting.framework if runs else "pytorch",
        source=f"epochcast calibrate: {' and '.join(measured)}; {chosen.name}; MAPE {errors}",
        date=date,
        rows=len(pieces),
        relative_to=cost_model.name,
        gemm_fraction=fractions,
        launch_seconds=launch_seconds if launch != 1 else device.launch_seconds,
        compute_factor=compute,
        memory_factor=memory,
        class_factor=_class_factors(by_kind),
        step_spread=(1 / spread, spread),
        precisions=_precisions(runs, failures, gemm),
    )
    return Calibration(device, chosen, corrections, profile, (1 / prior, prior), tuple(failures), tuple(notes))


def _class_factors(by_kind: Sequence[float]) -> dict[str, float]:
    """The factor of every op class whose kind has one."""
    return {
        each.value: factor
        for classes, factor in zip(KINDS.values(), by_kind, strict=True)
        for each in CLASSES
        if each in classes and factor != 1
    }


def _precisions(runs: Sequence[MeasuredRun], failures: Sequence[FailedRow], gemm: Product | None) -> tuple[str, ...]:
    """What was measured, in the order of the table."""
    failed = {failure.row_index for failure in failures}
    forecast_runs = [run for run in runs if run.row_index not in failed]
    # fp32 of a framework that rounds all products is tf32
    names = [SINGLE_ROUNDED if run.recipe.precision == SINGLE_ROUNDED else run.job.precision for run in forecast_runs]
    return tuple(dict.fromkeys([*names, *([gemm.precision] if gemm is not None else [])]))


def fit_corrections(
    pieces: Sequence[StepPieces], corrections: Mapping[str, tuple[tuple[int, ...], ...]] = CORRECTIONS
) -> tuple[ScaleCorrection, ...]:
    """Every correction fitted to all rows, with its error on them and on each row when left out."""
    return tuple(_fit_correction(name, groups, pieces) for name, groups in corrections.items())


def _fit_correction(name: str, groups: tuple[tuple[int, ...], ...], pieces: Sequence[StepPieces]) -> ScaleCorrection:
    factors = fit_factors(pieces, groups)
    left_out = _left_out(pieces, groups)
    mape = float(np.mean([_ape(p, factors) for p in pieces]))
    loo_mape = float(np.mean([_ape(p, f) for p, f in zip(pieces, left_out, strict=True)]))
    return ScaleCorrection(name, tuple(float(factor) for factor in factors), mape, loo_mape)


def _left_out(pieces: Sequence[StepPieces], groups: tuple[tuple[int, ...], ...]) -> list[Array]:
    """For each row, the factors fitted to all other rows."""
    if not groups:
        return [np.zeros(FACTORS)] * len(pieces)
    start = fit_factors(pieces, groups)  # one row changes little, so that one or two iterations from here are enough
    return [fit_factors([p for j, p in enumerate(pieces) if j != i], groups, start) for i in range(len(pieces))]


def fit_factors(pieces: Sequence[StepPieces], groups: tuple[tuple[int, ...], ...], start: Array | None = None) -> Array:
    """θ by Gauss–Newton with numerical slopes, from `start`; zero where there is nothing to fit."""
    if not groups or not pieces:
        return np.zeros(FACTORS)
    expand = np.zeros((FACTORS, len(groups)))
    for column, members in enumerate(groups):
        expand[list(members), column] = 1.0
    log_measured = np.log([p.measured_seconds for p in pieces])

    def log_seconds(free: Array) -> Array:
        return np.log([p.seconds(expand @ free) for p in pieces])

    free = np.zeros(len(groups)) if start is None else np.array([start[members[0]] for members in groups])
    prior = np.diag([1 / (SCALE_SIGMA if len(members) > 1 else PRIOR_SIGMA) ** 2 for members in groups])
    step = 1e-3
    for _ in range(20):
        log_forecast = log_seconds(free)
        slopes = np.stack(
            [(log_seconds(free + step * unit) - log_forecast) / step for unit in np.eye(len(groups))], axis=1
        )
        residuals = log_measured - log_forecast
        weights = 1 / np.maximum(1.0, np.abs(residuals) / ODD) / ROW_SIGMA**2
        matrix = slopes.T @ (slopes * weights[:, None]) + prior
        vector = slopes.T @ (weights * residuals) - prior @ free
        change = np.clip(np.linalg.solve(matrix, vector), -0.5, 0.5)
        free = np.clip(free + change, -4.0, 4.0)
        if np.max(np.abs(change)) < 1e-4:
            break
    return expand @ free


def _ape(piece: StepPieces, factors: Array) -> float:
    return abs(piece.seconds(factors) - piece.measured_seconds) / piece.measured_seconds


def best_correction(corrections: Sequence[ScaleCorrection], count: int) -> ScaleCorrection:
    """The correction with the fewest parameters that no other clearly beats on rows left out; never one that is worse
    than "none" on all rows.
    """
    none = corrections[0]
    allowed = [c for c in corrections if c.mape <= none.mape]
    if count == 1:
        return allowed[1] if len(allowed) > 1 else none
    best_correction = none
    for correction in allowed:
        if correction.loo_mape < best_correction.loo_mape * (1 - LEAST_GAIN):
            best_correction = correction
    return best_correction


def calibrated_spread(pieces: Sequence[StepPieces], chosen: ScaleCorrection, prior: float) -> float:
    """e^(1.645 σ̂): leave-one-out errors and the interval before, weighted by rows."""
    groups = {**CORRECTIONS, **PRODUCT_CORRECTIONS}[chosen.name]
    errors = [
        np.log(p.measured_seconds / p.seconds(factors))
        for p, factors in zip(pieces, _left_out(pieces, groups), strict=True)
        if len(pieces) > 1
    ]
    prior_sigma = np.log(prior) / NINETY
    total = PRIOR_ROWS * prior_sigma**2 + float(np.sum(np.square(errors)))
    return float(np.exp(NINETY * np.sqrt(total / (PRIOR_ROWS + len(errors)))))
