"""A handful of measured steps, or one product, turned into a profile of the user's own device.

A step of row i is f_i(θ): its kernels multiplied by e^θc where arithmetic binds and e^θm where traffic binds, its
launches by e^θl, run through the two streams again. The factors are found in logarithms, pulled toward "as forecast"
(ridge):

    minimise  Σ_i (log y_i − log f_i(θ))² / σ²  +  Σ_j θ_j² / τ²

with σ = 0.1 (the scatter of rows) and τ = 0.3 (how far devices are believed to be off), by Gauss–Newton.

How many factors the rows can carry is decided by leaving each row out in turn: of "none", "one scale"
(θc = θm = θl), "two scales" (θc, θm) and "two scales and launch" the one with the least leave-one-out error is taken,
"none" wherever nothing beats it. A single row cannot be left out: it gets one scale, and a measured product the scale
of arithmetic alone.

The interval afterwards: σ̂² = (ν·s² + Σ r_i²) / (ν + n) with r_i the leave-one-out log errors, s the half-width of the
interval before / 1.645 and ν = 5 rows that the prior is worth; the spread is e^(±1.645 σ̂).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.cost.launch import launch_seconds as seconds_per_launch
from epochcast.cost.model import CostModel
from epochcast.errors import BadInput
from epochcast.fitting.run_table import Failure, Run, read_runs
from epochcast.fitting.scores import Array
from epochcast.fitting.step_pieces import Gemm, StepPieces, step_pieces
from epochcast.hardware.device import Device
from epochcast.hardware.profile import Profile

ROW_SIGMA, PRIOR_SIGMA, PRIOR_ROWS = 0.1, 0.3, 5
MOST_ROWS = 50
NINETY = 1.645
"""The normal quantile: nine of ten lie within ± this many standard deviations."""

# Which of θc, θm, θl each free parameter moves.
CANDIDATES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "none": (),
    "one scale": ((0, 1, 2),),
    "two scales": ((0,), (1,)),
    "two scales and launch": ((0,), (1,), (2,)),
}
# A product alone says nothing of memory and launches.
PRODUCT_CANDIDATES: Mapping[str, tuple[tuple[int, ...], ...]] = {"none": (), "arithmetic": ((0,),)}
# A richer candidate must beat a plainer one by this much, or noise would choose.
LEAST_GAIN = 0.02


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to correct the model, and how well it does on the rows it saw and on those it did not."""

    name: str
    factors: tuple[float, float, float]
    mape: float
    loo_mape: float


@dataclass(frozen=True)
class Calibration:
    """What was found: the candidates, the chosen one, the profile it makes and the intervals before and after."""

    device: Device
    chosen: Candidate
    candidates: tuple[Candidate, ...]
    profile: Profile
    before_spread: tuple[float, float]
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def before(self) -> Candidate:
        """The model as it was."""
        return self.candidates[0]

    def as_dict(self) -> dict[str, Any]:
        """The JSON answer of `epochcast calibrate`."""
        spread = self.profile.step_spread or self.before_spread
        return {
            "device": self.device.name,
            "rows": self.profile.rows,
            "failed": [{"row": f.place, "model": f.model, "reason": f.reason} for f in self.failures],
            "chosen": self.chosen.name,
            "candidates": [{"name": c.name, "mape": c.mape, "loo_mape": c.loo_mape} for c in self.candidates],
            "compute_factor": self.profile.compute_factor,
            "memory_factor": self.profile.memory_factor,
            "launch_seconds": self.profile.launch_seconds,
            "gemm_fraction": dict(self.profile.gemm_fraction),
            "mape": {"before": self.before.mape, "after": self.chosen.mape, "leave_one_out": self.chosen.loo_mape},
            "interval": {"before": list(self.before_spread), "after": list(spread)},
            "notes": list(self.notes),
        }


def calibrate(
    rows: list[dict[str, Any]],
    device: Device,
    cost_model: CostModel,
    *,
    date: str,
    gemm: Gemm | None = None,
    allow_code: bool = False,
) -> Calibration:
    """A profile from measured runs, a measured product, or both; rows of other devices are left aside."""
    notes: list[str] = []
    pieces: list[StepPieces] = []
    failures: list[Failure] = []
    own = _own_runs(rows, device, notes) if rows or gemm is None else []
    if own:
        pieces, failures = step_pieces(own, cost_model, allow_code)
        if not pieces and gemm is None:
            raise BadInput(f"no row of {device.name} can be forecast: {failures[0].reason}")
    steps = len(pieces)
    fractions = {}
    if gemm is not None:
        fractions = {gemm.math: gemm.peak_fraction(device)}
        pieces.append(gemm.pieces(device, cost_model))
    made = fitted(pieces, CANDIDATES if steps else PRODUCT_CANDIDATES)
    chosen = best(made, len(pieces))
    compute, memory, launch = (float(np.exp(theta)) for theta in chosen.factors)
    prior = float(np.mean([p.prior_spread for p in pieces]))
    spread = calibrated_spread(pieces, chosen, prior)
    launch_seconds = seconds_per_launch(device) * launch
    behind = [f"{steps} measured steps"] if steps else []
    behind += ["one measured product"] if gemm is not None else []
    errors = f"{made[0].mape:.1%} before, {chosen.mape:.1%} after"
    profile = Profile(
        device=device.name,
        stack=own[0].setting.framework if own else "pytorch",
        source=f"epochcast calibrate: {' and '.join(behind)}; {chosen.name}; MAPE {errors}",
        date=date,
        rows=len(pieces),
        relative_to=cost_model.name,
        gemm_fraction=fractions,
        launch_seconds=launch_seconds if launch != 1 else device.launch_seconds,
        compute_factor=compute,
        memory_factor=memory,
        step_spread=(1 / spread, spread),
    )
    return Calibration(device, chosen, made, profile, (1 / prior, prior), tuple(failures), tuple(notes))


def _own_runs(rows: list[dict[str, Any]], device: Device, notes: list[str]) -> list[Run]:
    """The runs on this device, at most `MOST_ROWS` of them."""
    runs, unread = read_runs(rows)
    own = [run for run in runs if run.device.name == device.name]
    if not own:
        others = sorted({run.device.name for run in runs})
        there = f"the table has {', '.join(others)}" if others else unread[0].reason if unread else "the table is empty"
        raise BadInput(f"no row of {device.name} can be used: {there}")
    if len(own) > MOST_ROWS:
        notes.append(f"{MOST_ROWS} of {len(own)} rows are used, evenly spread over the table")
        own = [own[i] for i in np.linspace(0, len(own) - 1, MOST_ROWS).round().astype(int)]
    return own


def fitted(
    pieces: Sequence[StepPieces], candidates: Mapping[str, tuple[tuple[int, ...], ...]] = CANDIDATES
) -> tuple[Candidate, ...]:
    """Every candidate fitted on all rows, with its error on them and on each when left out."""
    return tuple(_candidate(name, groups, pieces) for name, groups in candidates.items())


def _candidate(name: str, groups: tuple[tuple[int, ...], ...], pieces: Sequence[StepPieces]) -> Candidate:
    factors = fit_factors(pieces, groups)
    left_out = _left_out(pieces, groups)
    inside = float(np.mean([_ape(p, factors) for p in pieces]))
    outside = float(np.mean([_ape(p, f) for p, f in zip(pieces, left_out, strict=True)]))
    return Candidate(name, (float(factors[0]), float(factors[1]), float(factors[2])), inside, outside)


def _left_out(pieces: Sequence[StepPieces], groups: tuple[tuple[int, ...], ...]) -> list[Array]:
    """The factors of each row as the other rows tell them."""
    if not groups:
        return [np.zeros(3)] * len(pieces)
    start = fit_factors(pieces, groups)  # one row changes little, so that a round or two from here is enough
    return [fit_factors([p for j, p in enumerate(pieces) if j != i], groups, start) for i in range(len(pieces))]


def fit_factors(pieces: Sequence[StepPieces], groups: tuple[tuple[int, ...], ...], start: Array | None = None) -> Array:
    """θ by Gauss–Newton with numerical slopes, from `start`; zero where there is nothing to fit."""
    if not groups or not pieces:
        return np.zeros(3)
    lift = np.zeros((3, len(groups)))
    for place, members in enumerate(groups):
        lift[list(members), place] = 1.0
    goal = np.log([p.measured_seconds for p in pieces])

    def logs(free: Array) -> Array:
        return np.log([p.seconds(lift @ free) for p in pieces])

    free = np.zeros(len(groups)) if start is None else np.array([start[members[0]] for members in groups])
    step = 1e-3
    for _ in range(12):
        here = logs(free)
        slopes = np.stack([(logs(free + step * unit) - here) / step for unit in np.eye(len(groups))], axis=1)
        left = slopes.T @ slopes / ROW_SIGMA**2 + np.eye(len(groups)) / PRIOR_SIGMA**2
        right = slopes.T @ (goal - here) / ROW_SIGMA**2 - free / PRIOR_SIGMA**2
        move = np.clip(np.linalg.solve(left, right), -0.5, 0.5)
        free = np.clip(free + move, -4.0, 4.0)
        if np.max(np.abs(move)) < 1e-4:
            break
    return lift @ free


def _ape(piece: StepPieces, factors: Array) -> float:
    return abs(piece.seconds(factors) - piece.measured_seconds) / piece.measured_seconds


def best(candidates: Sequence[Candidate], count: int) -> Candidate:
    """The plainest that no richer one clearly beats on rows left out, and none that is worse than "none" on all."""
    none = candidates[0]
    allowed = [c for c in candidates if c.mape <= none.mape]
    if count == 1:
        return allowed[1] if len(allowed) > 1 else none
    best = none
    for candidate in allowed:
        if candidate.loo_mape < best.loo_mape * (1 - LEAST_GAIN):
            best = candidate
    return best


def calibrated_spread(pieces: Sequence[StepPieces], chosen: Candidate, prior: float) -> float:
    """e^(1.645 σ̂): leave-one-out errors and the interval before, weighed by rows."""
    groups = {**CANDIDATES, **PRODUCT_CANDIDATES}[chosen.name]
    errors = [
        np.log(p.measured_seconds / p.seconds(factors))
        for p, factors in zip(pieces, _left_out(pieces, groups), strict=True)
        if len(pieces) > 1
    ]
    prior_sigma = np.log(prior) / NINETY
    total = PRIOR_ROWS * prior_sigma**2 + float(np.sum(np.square(errors)))
    return float(np.exp(NINETY * np.sqrt(total / (PRIOR_ROWS + len(errors)))))
