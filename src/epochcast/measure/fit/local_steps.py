"""Corrections of the sum of ops, fitted to whole measured steps of each framework.

    step = Σ_classes e^(θ0 + θ_class) · seconds of its ops + Σ_phases (h_phase · ops + w_phase · bytes written)

The priors are no correction (θ = 0), a few microseconds of host time per op (h), and a short time per byte of fresh
memory (w): an allocator returns memory after every step, which does not happen where single ops are timed.

    minimise  Σ_steps (log y − log step)²/σ² + θ0²/τ0² + Σ θ_class²/τ² + Σ (log h/h0)²/τ_h² + Σ (log w/w0)²/τ_w²

Each network is left out in turn; the errors of its steps, fitted to the other networks, widen the interval beyond the
uncertainty of the ops.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.serialization import recipe_from_json
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import CodeNotAllowed, EpochcastError, MissingExtra
from epochcast.hardware.device import Device
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.models_bench import reference_of
from epochcast.predict.cost.gaussian import Array, Integers
from epochcast.predict.cost.local_model import Local, StepCorrection, step_deviation

FRAMEWORKS = {"torch": "pytorch", "keras": "tensorflow"}
ROW_SIGMA, COMMON_SIGMA, CLASS_SIGMA, HOST_SIGMA, FRESH_SIGMA = 0.07, 0.3, 0.15, 1.0, 1.0
# Priors: host seconds per op (Python, autograd), and seconds per byte of fresh memory, which a system provides at some
# GB/s and which an allocator needs for a part of what is written.
HOST_SECONDS = {Phase.FORWARD: 8e-6, Phase.BACKWARD: 8e-6, Phase.UPDATE: 8e-6}
FRESH_SECONDS_PER_BYTE = {Phase.FORWARD: 3e-10, Phase.BACKWARD: 1e-10, Phase.UPDATE: 1e-13}
# The prior of the scatter of steps, and its weight in networks.
PRIOR_DEVIATION, PRIOR_NETWORKS = 0.15, 4
LEAST_DEVIATION = 0.05


@dataclass(frozen=True)
class MeasuredStep:
    """One measured step: seconds of its ops by class, their number and written bytes by phase, and σ of their sum."""

    network: str
    measured_seconds: float
    class_seconds: Array
    phase_ops: Array
    phase_bytes: Array
    deviation: float


@dataclass(frozen=True)
class StepCorrections:
    """Corrections by framework, the number of rows used, and the mean relative error of networks left out."""

    corrections: Mapping[str, StepCorrection]
    rows: int = 0
    error: float | None = None
    unused: tuple[str, ...] = ()


def fit_steps(
    rows: Sequence[Measurement],
    model: Local,
    device: Device,
    progress: Callable[[float], None],
    allow_code: bool = False,
) -> StepCorrections:
    """Corrections of every framework that trained something in these rows; a row whose model is Python code is not
    used unless `allow_code`.
    """
    steps: dict[str, list[MeasuredStep]] = {}
    unused = []
    step_rows = [row for row in rows if row.kind == "model" and row.question.get("part", "step") == "step"]
    for done, row in enumerate(step_rows, start=1):
        backend = str(row.question.get("backend"))
        framework = FRAMEWORKS.get(backend, backend)
        try:
            step = _step(row, model, allow_code)
            steps.setdefault(framework, []).append(step)
        except MissingExtra:
            raise
        except EpochcastError as problem:
            unused.append(f"{row.key}: {problem}")
        progress(done / len(step_rows))
    corrections, errors = {}, []
    for framework, members in steps.items():
        theta = _fit(members)
        left_out = _left_out(members)
        errors += [abs(np.expm1(error)) for error in left_out]
        corrections[framework] = _correction(theta, members, left_out)
    return StepCorrections(corrections, len(errors), float(np.mean(errors)) if errors else None, tuple(unused))


def _step(row: Measurement, model: Local, allow_code: bool) -> MeasuredStep:
    recipe = recipe_from_json(row.question.get("recipe"))
    name = str(row.question.get("model"))
    if ModelReference.of(name).is_code and not allow_code:
        raise CodeNotAllowed(name)
    reference, shape = reference_of(row.question)
    columns = find_model(reference, shape, allow_code=allow_code).trace(recipe).columns
    assert row.seconds is not None
    return step_of(str(row.question["model"]), row.low_seconds or row.seconds, columns, model)


def step_of(network: str, measured_seconds: float, columns: Columns, model: Local) -> MeasuredStep:
    """A measured step with the model's seconds of its ops."""
    logs, deviations, groups = model.op_seconds(columns)
    seconds = np.exp(logs)
    return MeasuredStep(
        network,
        measured_seconds,
        _sums(columns.op_class, seconds, len(CLASSES)),
        _sums(columns.phase, np.ones(len(columns)), len(PHASES)),
        _sums(columns.phase, columns.written_bytes, len(PHASES)),
        step_deviation(seconds, deviations, groups, 0.0),
    )


def _sums(indices: Integers, values: Array, count: int) -> Array:
    return np.asarray(np.bincount(indices, values, count), dtype=np.float64)


_CLASSES_END = 1 + len(CLASSES)
_HOST_END = _CLASSES_END + len(PHASES)


def _seconds(theta: Array, step: MeasuredStep) -> float:
    """θ is θ0, θ of every class, log h and log w of every phase."""
    kernels = float(step.class_seconds @ np.exp(theta[0] + theta[1:_CLASSES_END]))
    host = float(step.phase_ops @ np.exp(theta[_CLASSES_END:_HOST_END]))
    return kernels + host + float(step.phase_bytes @ np.exp(theta[_HOST_END:]))


def _fit(steps: Sequence[MeasuredStep]) -> Array:
    from scipy import optimize

    host, fresh = ([np.log(table[p]) for p in PHASES] for table in (HOST_SECONDS, FRESH_SECONDS_PER_BYTE))
    start = np.array([*np.zeros(_CLASSES_END), *host, *fresh])
    widths = (CLASS_SIGMA, len(CLASSES)), (HOST_SIGMA, len(PHASES)), (FRESH_SIGMA, len(PHASES))
    sigma = np.array([COMMON_SIGMA, *(width for width, count in widths for _ in range(count))])
    weights = np.array([1 / np.hypot(ROW_SIGMA, step.deviation / 2) for step in steps])

    def residuals(theta: Array) -> Array:
        errors = np.array([np.log(_seconds(theta, s) / s.measured_seconds) for s in steps]) * weights
        return np.concatenate([errors, (theta - start) / sigma])

    corrections: Array = optimize.least_squares(residuals, start, loss="soft_l1").x if steps else start
    return corrections


def _left_out(steps: Sequence[MeasuredStep]) -> list[float]:
    """log(forecast/measured) of each step, fitted to the steps of the other networks."""
    errors = []
    for network in dict.fromkeys(s.network for s in steps):
        theta = _fit([s for s in steps if s.network != network])
        errors += [float(np.log(_seconds(theta, s) / s.measured_seconds)) for s in steps if s.network == network]
    return errors


def _correction(theta: Array, steps: Sequence[MeasuredStep], errors: Sequence[float]) -> StepCorrection:
    """The correction. Its scatter is that of the errors without that of the ops, combined with the prior."""
    left_squares = float(np.sum(np.square(errors))) - float(np.sum([s.deviation**2 for s in steps]))
    networks, weight = len({s.network for s in steps}), len(steps) / max(1, len({s.network for s in steps}))
    total = PRIOR_NETWORKS * PRIOR_DEVIATION**2 + max(0.0, left_squares) / weight
    deviation = max(LEAST_DEVIATION, float(np.sqrt(total / (PRIOR_NETWORKS + networks))))
    is_measured = np.sum([s.class_seconds for s in steps], axis=0) > 0
    factors = np.exp(theta[0] + theta[1:_CLASSES_END])
    common = float(np.exp(theta[0]))

    def by_phase(values: Array) -> dict[str, float]:
        return {p.value: float(np.exp(value)) for p, value in zip(PHASES, values, strict=True)}

    return StepCorrection(
        by_phase(theta[_CLASSES_END:_HOST_END]),
        by_phase(theta[_HOST_END:]),
        {c.value: float(f) if s else common for c, f, s in zip(CLASSES, factors, is_measured, strict=True)},
        deviation,
    )
