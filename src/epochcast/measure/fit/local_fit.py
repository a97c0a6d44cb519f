"""The cost model of one device (`predict.cost.local_model`), fitted to measurements of its machine (`epochcast bench`).

1. Every group of ops (class, element size) gets a line a·launches + b·flops + c·bytes, by robust least squares of
   logarithms, with a prior at the line of all ops, whose prior is the data sheet.
2. The residuals of the lines are a Gaussian process per group. All groups share the lengths and deviations of one
kernel:
   those under which the measurements are most likely (type II maximum likelihood, Rasmussen & Williams 2006, 5.4.1).
   An op that differs too much from its neighbours was disturbed: its noise is raised, and the kernel fitted again.
3. Whole steps, where some were measured, correct the sum of ops (`fit.local_steps`); collectives give the link.

Seconds are the tenth percentiles of the repeats: the machine without disturbance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from epochcast.base.record import Record, paths
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.serialization import check_operands, ops_from_json
from epochcast.describe.graph.trace import Columns, columns_of
from epochcast.errors import BadInput, EpochcastError, MissingExtra
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.host_device import detect_host
from epochcast.hardware.link import Link
from epochcast.measure.bench.link_fit import collective_of, link_fits
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement, read
from epochcast.measure.bench.torch_device import device_type
from epochcast.measure.fit.local_steps import fit_steps
from epochcast.predict.cost.gaussian import Array, CostKernel, CostProcess
from epochcast.predict.cost.local_model import ALL, FEATURES, CostLine, Key, Local, MeasuredClass, coordinates, keys

LEAST_OPS = 10
# Priors: seconds that an op costs the host; standard deviations of log coefficients between groups and devices.
LAUNCH_SECONDS = 5e-6
GROUP_SIGMA, DEVICE_SIGMA = 1.0, 1.5
LINE_SCATTER = 0.5
# An op that differs from its neighbours by more than this many deviations was disturbed.
OUTLIER_DEVIATIONS = 2.5
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class FittedLink(Record):
    """The line through measured collectives: latency and bandwidth."""

    latency_seconds: float
    bytes_per_second: float


@dataclass(frozen=True)
class FittedDevice(Record):
    """The model, its errors on ops and steps that were left out of the fit, and the rows that were not used."""

    model: Local
    ops: int
    steps: int
    collectives: int
    op_error: float
    step_error: float | None
    unused: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def groups(self) -> int:
        """Op classes with a fit of their own."""
        return len(self.model.groups) - 1

    @property
    def frameworks(self) -> list[str]:
        """Those whose steps were measured."""
        return sorted(self.model.corrections)

    @property
    def link(self) -> FittedLink | None:
        """The measured link."""
        link = self.model.link
        return None if link is None else FittedLink(link.latency_seconds, link.bandwidth_bytes_per_second)

    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("ops", "steps", "collectives", "groups", "frameworks", "link", "unused", "warnings"),
        device="model.device",
        op_median_ape_left_out="op_error",
        step_mape_left_out="step_error",
    )


def fit_files(
    paths: Sequence[Path],
    *,
    date: str,
    progress: Progress | None = None,
    allow_code: bool = False,
    steps: Sequence[Measurement] = (),
) -> FittedDevice:
    """The model from one or more measurement files; `allow_code` lets a row's model be `file.py:factory`. `steps` are
    further measured ones, of which those of this hardware count.
    """
    files = [read(path) for path in paths]
    rows = [*(row for file in files for row in file.rows), *steps]
    fitted = fit_local(rows, date=date, progress=progress, allow_code=allow_code)
    return replace(fitted, warnings=tuple(warning for file in files for warning in file.warnings))


def fit_local(
    rows: Sequence[Measurement], *, date: str, progress: Progress | None = None, allow_code: bool = False
) -> FittedDevice:
    """The model of the device with the most measured ops; rows of other machines are listed as unused."""
    progress = progress or (lambda _: None)
    machine, of_machine, unused = _most_measured_machine(rows)
    device = device_of(machine)
    ops, seconds, noises = _op_rows(of_machine, unused)
    if len(ops) < LEAST_OPS:
        raise BadInput(
            f"{len(ops)} measured ops are too few for a profile, which needs at least {LEAST_OPS}: "
            "run epochcast bench ops"
        )
    columns = columns_of(ops)
    lines = _lines(columns, seconds, device)
    progress(0.1)
    kernel, groups, op_error = _processes(columns, seconds, noises, lines, lambda part: progress(0.1 + 0.6 * part))
    link = _link(of_machine, unused)
    uncorrected = Local(device.name, kernel, groups, {}, "epochcast fit", date, dict(machine.facts), link)
    steps = fit_steps(of_machine, uncorrected, device, lambda part: progress(0.7 + 0.3 * part), allow_code)
    collectives = sum(row.kind == "collective" for row in of_machine)
    counts = {"ops": len(ops), "steps": steps.rows, "collectives": collectives}
    sources = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    model = replace(uncorrected, corrections=steps.corrections, source=f"epochcast fit: {sources}")
    return FittedDevice(model, len(ops), steps.rows, collectives, op_error, steps.error, (*unused, *steps.unused))


def device_of(machine: MeasuredMachine) -> Device:
    """The device of a machine's rows: its processors, or its GPU."""
    if device_type(str(machine.facts.get("device", "cpu"))) == "cuda":
        return find_device(str(machine.facts["gpu"]))
    host = detect_host()
    measured_cpu = machine.facts.get("cpu")
    if measured_cpu != host.name:
        raise BadInput(
            f"the measurements are of {measured_cpu}, this is {host.name}; fit them where they were measured"
        )
    return host


def device_of_model(model: Local) -> Device:
    """The device that a fitted model is of."""
    return find_device(model.device)


def _most_measured_machine(rows: Sequence[Measurement]) -> tuple[MeasuredMachine, list[Measurement], list[str]]:
    """The machine with the most op rows, its rows, and what is not used. Steps and collectives of the same hardware
    count, too.
    """
    succeeded = [row for row in rows if row.failed is None]
    counts: dict[str, int] = {}
    for row in succeeded:
        counts[row.machine.id] = counts.get(row.machine.id, 0) + (row.kind == "op")
    if not counts or not max(counts.values()):
        raise BadInput("no measured op in these files; measure some with: epochcast bench ops")
    machine_id = max(counts, key=lambda machine: counts[machine])
    machine = next(row.machine for row in succeeded if row.machine.id == machine_id)
    of_machine = [
        row
        for row in succeeded
        if row.machine.id == machine_id or (row.kind != "op" and _is_same_hardware(row.machine, machine))
    ]
    unused = []
    if len(of_machine) < len(succeeded):
        unused.append(f"{len(succeeded) - len(of_machine)} rows of other machines")
    if len(succeeded) < len(rows):
        unused.append(f"{len(rows) - len(succeeded)} failed rows")
    return machine, of_machine, unused


def _is_same_hardware(first: MeasuredMachine, second: MeasuredMachine) -> bool:
    """Whether two fingerprints are of the same hardware; those of steps and collectives may differ in threads."""
    facts = ("cpu", "cores", "device", "gpu")
    return all(first.facts.get(key) == second.facts.get(key) for key in facts)


def _op_rows(rows: Sequence[Measurement], unused: list[str]) -> tuple[list[Op], Array, Array]:
    """Rows of one op each: the op, its seconds, and the noise of their logarithm."""
    ops, seconds, noises = [], [], []
    for row in rows:
        if row.kind != "op" or row.seconds is None:
            continue
        try:
            row_ops = ops_from_json(row.question.get("ops"), row.key)
            for op in row_ops:
                check_operands(op, row.key)
        except EpochcastError as problem:
            unused.append(str(problem))
            continue
        if len(row_ops) != 1 or isinstance(row_ops[0].kind, View):
            unused.append(f"{row.key}: {len(row_ops)} ops timed together, or none that runs")
            continue
        ops.append(row_ops[0])
        seconds.append(row.low_seconds or row.seconds)
        noises.append(min(1.0, max(0.0, row.spread or 0.0) / 2 / np.sqrt(max(1, min(row.repeats, 30)))))
    return ops, np.array(seconds), np.array(noises)


def _link(rows: Sequence[Measurement], unused: list[str]) -> Link | None:
    """The link fitted to all-reduces, if some were measured."""
    collectives = []
    for row in (row for row in rows if row.kind == "collective"):
        try:
            collective_of(row)
            collectives.append(row)
        except EpochcastError as problem:
            unused.append(str(problem))
    fits = link_fits(collectives)
    all_reduces = [fit for fit in fits if fit.collective == "all_reduce"]
    return all_reduces[0].link() if all_reduces else None


# ---- lines --------------------------------------------------------------------------------------


def _lines(columns: Columns, seconds: Array, device: Device) -> dict[Key, CostLine]:
    data_sheet = np.log([LAUNCH_SECONDS, 1 / device.peak("fp32"), 1 / device.memory_bytes_per_second])
    all_ops = _line(columns, seconds, np.ones(len(seconds), dtype=bool), data_sheet, DEVICE_SIGMA)
    op_keys = keys(columns)
    lines = {ALL: CostLine(*np.exp(all_ops).tolist())}
    for key in dict.fromkeys(op_keys):
        is_own = np.array([k == key for k in op_keys])
        lines[key] = CostLine(*np.exp(_line(columns, seconds, is_own, all_ops, GROUP_SIGMA)).tolist())
    return lines


def _line(
    columns: Columns, seconds: Array, is_own: "np.ndarray[tuple[int], np.dtype[np.bool_]]", prior: Array, sigma: float
) -> Array:
    """Logarithms of (a, b, c)."""
    optimize = _scipy()
    terms = np.stack([np.maximum(columns.launches, 1.0), columns.flops, columns.bytes], axis=1)[is_own]
    log_seconds = np.log(seconds[is_own])

    def residuals(theta: Array) -> Array:
        return np.concatenate([(np.log(terms @ np.exp(theta)) - log_seconds) / LINE_SCATTER, (theta - prior) / sigma])

    coefficients: Array = optimize.least_squares(residuals, prior, loss="soft_l1").x
    return coefficients


# ---- processes ----------------------------------------------------------------------------------

# Priors (mean, deviation) of logarithms: length scales in e-folds of size, deviations of log seconds.
_LENGTH, _SIGNAL, _OFFSET, _NOISE = (np.log(2.5), 0.5), (np.log(0.4), 0.5), (np.log(0.25), 0.5), (np.log(0.08), 0.7)
# Shorter length scales (in e-folds) would fit noise.
SHORTEST_LENGTH = 0.8


def _processes(
    columns: Columns, seconds: Array, noises: Array, lines: dict[Key, CostLine], progress: Progress
) -> tuple[CostKernel, dict[Key, MeasuredClass], float]:
    """The kernel, the groups, and the median relative error of ops as predicted by the others of their group."""
    op_keys, points = keys(columns), coordinates(columns)
    members = {key: np.array([k == key for k in op_keys]) for key in lines if key != ALL}
    groups = {
        ALL: MeasuredClass(
            lines[ALL], np.zeros((0, len(FEATURES))), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        )
    }
    for key, is_own in members.items():
        ratios = np.log(seconds / lines[key].seconds(columns))[is_own]
        groups[key] = MeasuredClass(lines[key], points[is_own], columns.gradient[is_own], ratios, noises[is_own])
    kernel = _fit_kernel(groups, None, progress)
    for part in (0.5, 0.75):
        groups = {key: _with_outlier_noise(kernel, group) for key, group in groups.items()}
        kernel = _fit_kernel(groups, kernel, lambda done, part=part: progress(part + done / 4))  # type: ignore[misc]
    groups = {key: _with_noise(kernel, group) for key, group in groups.items()}
    errors = [np.abs(np.expm1(-_process(kernel, g).left_out()[0])) for g in groups.values() if len(g.points) > 1]
    return kernel, groups, float(np.median(np.concatenate(errors)))


def _process(kernel: CostKernel, group: MeasuredClass) -> CostProcess:
    return CostProcess(kernel, group.points, group.kinds, group.log_ratios, group.noises)


def _with_noise(kernel: CostKernel, group: MeasuredClass) -> MeasuredClass:
    noises = np.hypot(group.noises, kernel.noise)
    return MeasuredClass(group.line, group.points, group.kinds, group.log_ratios, noises)


def _with_outlier_noise(kernel: CostKernel, group: MeasuredClass) -> MeasuredClass:
    """The group with more noise for ops that differ from their neighbours, and for all ops where the group scatters."""
    if len(group.points) < 2:
        return group
    errors, deviations = _process(kernel, _with_noise(kernel, group)).left_out()
    is_outlier = np.abs(errors) > OUTLIER_DEVIATIONS * deviations
    scatter = 1.4826 * float(np.median(np.abs(errors / deviations)))
    extra_noise = float(np.median(deviations)) * np.sqrt(max(0.0, scatter**2 - 1)) if len(group.points) >= 8 else 0.0
    noises = np.hypot(np.where(is_outlier, np.maximum(group.noises, np.abs(errors)), group.noises), extra_noise)
    return MeasuredClass(group.line, group.points, group.kinds, group.log_ratios, noises)


def _fit_kernel(groups: dict[Key, MeasuredClass], start: CostKernel | None, progress: Progress) -> CostKernel:
    """The kernel with the highest posterior likelihood of all groups together."""
    optimize = _scipy()
    size = len(FEATURES)
    means = np.array([*[_LENGTH[0]] * size, _SIGNAL[0], _OFFSET[0], _OFFSET[0], _NOISE[0], 1.0])
    sigmas = np.array([*[_LENGTH[1]] * size, _SIGNAL[1], _OFFSET[1], _OFFSET[1], _NOISE[1], 1.0])
    nonempty = [group for group in groups.values() if len(group.points)]

    def loss(theta: Array) -> tuple[float, Array]:
        kernel = _kernel(theta)
        processes = [_process(kernel, _with_noise(kernel, group)) for group in nonempty]
        value = 0.5 * float((((theta - means) / sigmas) ** 2).sum()) - sum(p.log_likelihood() for p in processes)
        slopes = np.sum([p.slopes() for p in processes], axis=0)
        slopes[-1] *= kernel.correlation * (1 - kernel.correlation)  # along its logit
        return value, (theta - means) / sigmas**2 - slopes

    rounds = 20 if start is not None else 60
    done = 0

    def count(_: Array) -> None:
        nonlocal done
        done += 1
        progress(min(1.0, done / rounds))

    bounds = [(np.log(SHORTEST_LENGTH), 4.0)] * size + [(-7.0, 2.0)] * 4 + [(-4.0, 6.0)]
    first = means if start is None else _theta(start)
    optimum = optimize.minimize(
        loss, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=count, options={"maxiter": rounds}
    ).x
    return _kernel(optimum)


def _kernel(theta: Array) -> CostKernel:
    size = len(FEATURES)
    signal, common, offset, noise = (float(v) for v in np.exp(theta[size : size + 4]))
    return CostKernel(np.exp(theta[:size]), signal, common, offset, float(1 / (1 + np.exp(-theta[-1]))), noise)


def _theta(kernel: CostKernel) -> Array:
    deviations = np.log([kernel.signal, kernel.common, kernel.offset, kernel.noise])
    return np.concatenate([np.log(kernel.lengths), deviations, [np.log(kernel.correlation / (1 - kernel.correlation))]])


def _scipy() -> Any:
    try:
        from scipy import optimize
    except ModuleNotFoundError:
        raise MissingExtra("fit", "scipy") from None
    return optimize
