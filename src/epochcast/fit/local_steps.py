"""What whole steps tell beyond the sum of their ops, framework by framework.

    step = Σ_classes e^(θ0 + θ_class) · seconds of its ops + Σ_phases h_phase · ops of the phase

θ and log h are found in logarithms, drawn toward "as the ops say" (θ = 0) and toward a few microseconds of host per op:

    minimise  Σ_steps (log y − log step)²/σ² + θ0²/τ0² + Σ θ_class²/τ² + Σ (log h/h0)²/τ_h²

A network is left out in turn; what the others then say of its steps is the error that the interval must hold beyond
what the ops are unsure of.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.bench.measurements import Measurement
from epochcast.bench.models import reference_of
from epochcast.capture.resolve import find_model
from epochcast.cost.gaussian import Array
from epochcast.cost.local import Correction, Local, step_deviation
from epochcast.errors import EpochcastError, MissingExtra
from epochcast.graph.serial import recipe_from_json
from epochcast.graph.trace import CLASSES, PHASES, Columns
from epochcast.hardware.device import Device

FRAMEWORKS = {"torch": "pytorch", "keras": "tensorflow"}
ROW_SIGMA, COMMON_SIGMA, CLASS_SIGMA, HOST_SIGMA = 0.07, 0.3, 0.2, 1.0
# Host seconds per op believed before a step was measured, by phase: Python and autograd; a compiled graph needs less.
HOST_SECONDS: Mapping[str, Mapping[str, float]] = {
    "pytorch": {"forward": 8e-6, "backward": 8e-6, "update": 8e-6},
    "tensorflow": {"forward": 8e-6, "backward": 8e-6, "update": 8e-6},
}
# The scatter of steps believed before any was measured, and how many networks that belief is worth.
PRIOR_DEVIATION, PRIOR_NETWORKS = 0.15, 4
LEAST_DEVIATION = 0.05


@dataclass(frozen=True)
class Step:
    """One measured step: the seconds of its ops by class, how many there are by phase, σ of their sum."""

    network: str
    measured_seconds: float
    class_seconds: Array
    phase_ops: Array
    deviation: float


@dataclass(frozen=True)
class Steps:
    """Corrections by framework, how many rows are behind them, and their mean relative error when left out."""

    corrections: Mapping[str, Correction]
    rows: int = 0
    error: float | None = None
    unused: tuple[str, ...] = ()


def fit_steps(
    rows: Sequence[Measurement], model: Local, device: Device, progress: Callable[[float], None]
) -> Steps:
    """Corrections of every framework that trained something in these rows."""
    steps: dict[str, list[Step]] = {}
    unused = []
    wanted = [row for row in rows if row.kind == "model" and row.question.get("part", "step") == "step"]
    for place, row in enumerate(wanted):
        framework = FRAMEWORKS.get(str(row.question["backend"]), str(row.question["backend"]))
        try:
            steps.setdefault(framework, []).append(_step(row, model))
        except MissingExtra:
            raise
        except EpochcastError as problem:
            unused.append(f"{row.key}: {problem}")
        progress((place + 1) / len(wanted))
    corrections, errors = {}, []
    for framework, members in steps.items():
        theta = _solved(members, framework)
        left_out = _left_out(members, framework)
        errors += [abs(np.expm1(error)) for error in left_out]
        corrections[framework] = _correction(theta, members, left_out)
    return Steps(corrections, len(errors), float(np.mean(errors)) if errors else None, tuple(unused))


def _step(row: Measurement, model: Local) -> Step:
    recipe = recipe_from_json(row.question["recipe"])
    reference, shape = reference_of(row.question)
    columns = find_model(reference, shape).trace(recipe).columns
    assert row.seconds is not None
    return step_of(str(row.question["model"]), row.low_seconds or row.seconds, columns, model)


def step_of(network: str, measured_seconds: float, columns: Columns, model: Local) -> Step:
    """A measured step beside what the model says of its ops."""
    logs, deviations, places = model.op_seconds(columns)
    seconds = np.exp(logs)
    return Step(
        network,
        measured_seconds,
        np.bincount(columns.op_class, seconds, len(CLASSES)),
        np.bincount(columns.phase, minlength=len(PHASES)).astype(np.float64),
        step_deviation(seconds, deviations, places, 0.0),
    )


def _seconds(theta: Array, step: Step) -> float:
    """θ is θ0, θ of every class, log h of every phase."""
    classes, phases = theta[1 : 1 + len(CLASSES)], theta[1 + len(CLASSES) :]
    return float(step.class_seconds @ np.exp(theta[0] + classes) + step.phase_ops @ np.exp(phases))


def _solved(steps: Sequence[Step], framework: str) -> Array:
    from scipy import optimize

    host = HOST_SECONDS.get(framework, HOST_SECONDS["pytorch"])
    start = np.array([*np.zeros(1 + len(CLASSES)), *(np.log(host[p.value]) for p in PHASES)])
    sigma = np.array([COMMON_SIGMA, *[CLASS_SIGMA] * len(CLASSES), *[HOST_SIGMA] * len(PHASES)])
    weights = np.array([1 / np.hypot(ROW_SIGMA, step.deviation / 2) for step in steps])

    def residuals(theta: Array) -> Array:
        errors = np.array([np.log(_seconds(theta, s) / s.measured_seconds) for s in steps]) * weights
        return np.concatenate([errors, (theta - start) / sigma])

    found: Array = optimize.least_squares(residuals, start, loss="soft_l1").x if steps else start
    return found


def _left_out(steps: Sequence[Step], framework: str) -> list[float]:
    """log(forecast/measured) of each step by the other networks' steps."""
    errors = []
    for network in dict.fromkeys(s.network for s in steps):
        theta = _solved([s for s in steps if s.network != network], framework)
        errors += [float(np.log(_seconds(theta, s) / s.measured_seconds)) for s in steps if s.network == network]
    return errors


def _correction(theta: Array, steps: Sequence[Step], errors: Sequence[float]) -> Correction:
    """The scatter is what is left of the errors when that of the ops is taken off, mixed with what was believed."""
    left = float(np.sum(np.square(errors))) - float(np.sum([s.deviation**2 for s in steps]))
    networks, weight = len({s.network for s in steps}), len(steps) / max(1, len({s.network for s in steps}))
    total = PRIOR_NETWORKS * PRIOR_DEVIATION**2 + max(0.0, left) / weight
    deviation = max(LEAST_DEVIATION, float(np.sqrt(total / (PRIOR_NETWORKS + networks))))
    seen = np.sum([s.class_seconds for s in steps], axis=0) > 0
    factors = np.exp(theta[0] + theta[1 : 1 + len(CLASSES)])
    return Correction(
        {p.value: float(np.exp(h)) for p, h in zip(PHASES, theta[1 + len(CLASSES) :], strict=True)},
        {c.value: float(f) for c, f, s in zip(CLASSES, factors, seen, strict=True) if s or c.value != "view"},
        deviation,
    )
