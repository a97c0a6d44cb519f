"""The model of a device that was measured with `epochcast bench` and fitted with `epochcast fit`.

    seconds(op)  = base(op) · e^f(op) · class_factor + host_seconds + written bytes · fresh_seconds_per_byte
    base(op)     = a·launches + b·flops + c·bytes          one (a, b, c) per group: op class and bytes per element
    f            = fitted to the measured ops of the group (`gaussian.Process` over the logarithms of sizes)

Near a measured op the answer is that measurement, between several it is interpolated, far from all it is the line of
its group. A group without measurements uses the line through all ops. The other terms are per framework and were fitted
to whole steps, which take longer than the sum of their ops: autograd and Python, caches, and memory that is returned to
the system after every step and mapped again page by page in the next.

The interval is that of the step. Errors within a group are assumed to be one error, those of different groups to be
independent:

    σ² = σ_steps² + Σ_groups (share of the group · mean σ_f of its ops)²,      mid·e^(±1.645 σ)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from epochcast.base.caching import Cache, Derived, derived_property
from epochcast.describe.graph.trace import CLASSES, PHASES, Columns
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.gaussian import Array, CostKernel, CostProcess, Integers
from epochcast.predict.cost.software_setting import SoftwareSetting

NAME = "local"
NINETY = 1.645
"""The normal quantile: 90 % lie within ± this many standard deviations."""

SIZES = ("flops", "bytes", "m", "n", "k", "count", "kernel", "stride", "groups", "launches")
FEATURES = (*SIZES, "read_share")
"""The features that define the distance of two ops: logarithms of sizes, and the fraction of its bytes that an op
reads.

The last separates functions that have the same sizes, such as a relu and a dropout, which draws numbers and writes a
mask. It is scaled so that a difference of a twentieth counts as much as a size e times as large.
"""

READ_STRETCH = 20.0

DEFAULT_FRAMEWORK = "pytorch"
Key = tuple[str, int]
"""Op class and bytes per element."""

ALL: Key = ("", 0)
"""The group that is used for those without measurements."""


def coordinates(columns: Columns) -> Array:
    """The coordinates of each op."""
    sizes = [np.log(np.maximum(np.asarray(getattr(columns, name), dtype=np.float64), 1.0)) for name in SIZES]
    return np.stack([*sizes, READ_STRETCH * columns.read_bytes / np.maximum(columns.bytes, 1.0)], axis=1)


def keys(columns: Columns) -> list[Key]:
    """The group of each op."""
    names = [c.value for c in CLASSES]
    return [(names[c], int(b)) for c, b in zip(columns.op_class, columns.element_bytes, strict=True)]


MOST_LAUNCH_SECONDS = 1e3


@dataclass(frozen=True, slots=True)
class CostLine:
    """base = launch_seconds·launches + seconds_per_flop·flops + seconds_per_byte·bytes"""

    launch_seconds: float
    seconds_per_flop: float
    seconds_per_byte: float

    def __post_init__(self) -> None:
        slopes_hold = all(0 <= slope < 1 for slope in (self.seconds_per_flop, self.seconds_per_byte))
        if not 0 < self.launch_seconds < MOST_LAUNCH_SECONDS or not slopes_hold:
            raise BadInput(f"a line needs a launch above 0 s and slopes from 0 to 1 s, got {self}")

    def seconds(self, columns: Columns) -> Array:
        """Of every op."""
        launches = np.maximum(columns.launches, 1.0) * self.launch_seconds
        result: Array = launches + columns.flops * self.seconds_per_flop + columns.bytes * self.seconds_per_byte
        return result


MOST_LOGARITHM = 100.0
"""Of a coordinate, or of measured seconds over forecast: e¹⁰⁰ is no measurement."""


@dataclass(frozen=True)
class MeasuredClass:
    """What was measured of one class in one element size: the line, and the ops themselves.

    `points` are coordinates, `kinds` the directions (an index of `Gradient`), `log_ratios` the logarithms of measured
    over the line, `noises` the uncertainty of each.
    """

    line: CostLine
    points: Array
    kinds: Integers
    log_ratios: Array
    noises: Array

    def __post_init__(self) -> None:
        sizes = {len(self.points), len(self.kinds), len(self.log_ratios), len(self.noises)}
        if len(sizes) != 1 or self.points.ndim != 2 or self.points.shape[1] != len(FEATURES):
            raise BadInput(f"a group needs as many values as points of {len(FEATURES)} coordinates")
        far = max((float(np.abs(a).max()) for a in (self.points, self.log_ratios, self.noises) if a.size), default=0.0)
        if not far <= MOST_LOGARITHM or (self.noises < 0).any():
            raise BadInput(f"values of a group are logarithms of at most {MOST_LOGARITHM:g}, and no noise is negative")


@dataclass(frozen=True)
class StepCorrection:
    """The corrections fitted to whole steps of one framework.

    By phase, seconds of the host per op and of fresh memory per byte written; factors of classes; σ of a step.
    """

    host_seconds: Mapping[str, float] = field(default_factory=dict)
    fresh_seconds_per_byte: Mapping[str, float] = field(default_factory=dict)
    class_factor: Mapping[str, float] = field(default_factory=dict)
    deviation: float = 0.15

    def __post_init__(self) -> None:
        _check_names("phase", self.host_seconds, [p.value for p in PHASES])
        _check_names("phase", self.fresh_seconds_per_byte, [p.value for p in PHASES])
        _check_names("op class", self.class_factor, [c.value for c in CLASSES])
        if any(not 0 <= seconds < 1 for seconds in self.host_seconds.values()):
            raise BadInput(f"host_seconds must lie between 0 and 1, got {dict(self.host_seconds)}")
        if any(not 0 <= seconds < 1e-6 for seconds in self.fresh_seconds_per_byte.values()):
            raise BadInput(
                f"fresh_seconds_per_byte must lie between 0 and 1e-6, got {dict(self.fresh_seconds_per_byte)}"
            )
        if any(not 1e-2 < factor < 1e2 for factor in self.class_factor.values()):
            raise BadInput(f"factors of classes must lie between 0.01 and 100, got {dict(self.class_factor)}")
        if not 0 < self.deviation < 3:
            raise BadInput(f"deviation must lie between 0 and 3, got {self.deviation}")


@dataclass(frozen=True)
class Local:
    """A measured device as a cost model. On any other device it has no answer."""

    device: str
    kernel: CostKernel
    groups: Mapping[Key, MeasuredClass]
    corrections: Mapping[str, StepCorrection] = field(default_factory=dict)
    source: str = ""
    date: str = ""
    machine: Mapping[str, object] = field(default_factory=dict)
    link: Link | None = None
    name: str = NAME
    is_monotone: bool = False
    derived: Derived = field(init=False, compare=False, repr=False, default_factory=partial(Cache, 1))

    def __post_init__(self) -> None:
        if not (self.device and self.source):
            raise BadInput(f"a local profile needs a device and a source, got {self.device!r} and {self.source!r}")
        if ALL not in self.groups:
            raise BadInput("a local profile needs the line through all ops")
        if len(self.kernel.lengths) != len(FEATURES):
            raise BadInput(f"a local profile needs {len(FEATURES)} lengths, got {len(self.kernel.lengths)}")
        _check_names("op class", (name for name, _ in self.groups if name), [c.value for c in CLASSES])

    @derived_property
    def _processes(self) -> dict[Key, CostProcess]:
        return {
            key: CostProcess(self.kernel, g.points, g.kinds, g.log_ratios, g.noises) for key, g in self.groups.items()
        }

    def costs(self, columns: Columns, device: Device, setting: SoftwareSetting) -> Costs:
        """Seconds of every op, as a framework runs it."""
        if device.name != self.device:
            unknown = np.full(len(columns), np.nan)
            return Costs.by(self.name, unknown, unknown, unknown)
        logs, deviations, places = self.op_seconds(columns)
        correction = self.correction(setting.framework)
        factors = np.array([correction.class_factor.get(c.value, 1.0) for c in CLASSES])
        host = np.array([correction.host_seconds.get(p.value, 0.0) for p in PHASES])
        fresh = np.array([correction.fresh_seconds_per_byte.get(p.value, 0.0) for p in PHASES])
        kernels = np.exp(logs) * factors[columns.op_class]
        mid = kernels + host[columns.phase] + columns.written_bytes * fresh[columns.phase]
        factor = np.exp(NINETY * step_deviation(kernels, deviations, places, correction.deviation))
        if not np.isfinite(mid * factor).all():
            raise BadInput(f"the profile of {self.device} gives seconds beyond any number; fit it again")
        return Costs.by(self.name, mid / factor, mid, mid * factor)

    def correction(self, framework: str) -> StepCorrection:
        """The correction of a framework; if its steps were not measured, PyTorch's; else none."""
        correction = self.corrections.get(framework)
        return correction or self.corrections.get(DEFAULT_FRAMEWORK) or StepCorrection()

    def op_seconds(self, columns: Columns) -> tuple[Array, Array, Integers]:
        """Logarithms of the seconds of every op alone, their deviations, and the place of its group in `groups`."""
        group_keys, points = keys(columns), coordinates(columns)
        names = list(self.groups)
        places = np.array([names.index(key if key in self.groups else ALL) for key in group_keys], dtype=np.int64)
        logs, deviations = np.zeros(len(columns)), np.zeros(len(columns))
        for place in np.unique(places):
            in_group = places == place
            key = names[place]
            mean, deviation = self._processes[key].answers(points[in_group], columns.gradient[in_group])
            logs[in_group] = np.log(self.groups[key].line.seconds(columns)[in_group]) + mean
            deviations[in_group] = deviation
        return logs, deviations, places


def step_deviation(seconds: Array, deviations: Array, places: Integers, steps: float) -> float:
    """σ of the logarithm of a sum: one error per group, groups independent, and the scatter of whole steps."""
    total = float(seconds.sum())
    if not total:
        return steps
    shares = [float((seconds * deviations)[places == place].sum()) / total for place in np.unique(places)]
    return float(np.sqrt(steps**2 + sum(share**2 for share in shares)))


def _check_names(kind: str, names: Iterable[str], table: list[str]) -> None:
    for name in names:
        if name not in table:
            raise UnknownName(kind, name, table)
