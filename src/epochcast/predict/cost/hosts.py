"""The host beside a device: how long it takes to start a kernel, and what a framework's hooks add to a step.

A kernel's launch takes 14 to 60 µs by processor, container and framework: on a fast device this decides the step of a
small batch. `hosts.toml` has what was measured, system by system, and the classes they belong to. A framework that runs
code of its own for every parameter's gradient (AdaptDL measures gradient noise there, and waits for it) adds as much
for each of them to every backward pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import exp, hypot, log
from statistics import median, quantiles

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.units import parse_seconds

FILE = "hosts.toml"
# Networks on one system differ by this much in seconds per launch: 5th and 95th percentile of 193 rows on systems of
# hosts.toml, each compared with the figure of its system.
SYSTEM_LOW, SYSTEM_HIGH = 0.6, 1.45
# Of an unknown host, an interval leaves out one of this many systems at either end.
_PARTS = 20
# No launch takes longer.
MOST_LAUNCH_SECONDS = 0.1
# How far a network's seconds per parameter are from the fitted ones. The medians of three of six are between half and
# twice as much (0.5, 0.6, 0.9 ms); the others have the error of their kernels in them, too (-1.2, 0.1, 1.1 ms).
HOOKS_LOW, HOOKS_HIGH = 0.5, 2.0


@dataclass(frozen=True, slots=True)
class LaunchHost:
    """Seconds to start one kernel, by the name or the figure that was asked for.

    `is_of_job`: they come from a measured step of the very job, so that no other network's launches are guessed.
    """

    name: str
    launch_seconds: Interval
    is_of_job: bool = False

    @property
    def text(self) -> str:
        """What `find_host` reads: the name of a class, or the seconds."""
        return self.name if self.name in host_classes() else f"{self.launch_seconds.mid * 1e6:g}us"

    def __post_init__(self) -> None:
        if not 0 < self.launch_seconds.mid <= MOST_LAUNCH_SECONDS:
            raise BadInput(f"`host_class`: a launch takes above 0 and at most 100 ms, got {self.name!r}")


def measured_launch(seconds: float) -> Interval:
    """Seconds per launch measured on one system, as another network there would have them."""
    return Interval(SYSTEM_LOW * seconds, seconds, SYSTEM_HIGH * seconds)


def find_host(text: str) -> LaunchHost:
    """The host of a class, or of seconds per launch such as "12us"."""
    name = text.strip()
    if name.casefold() in host_classes():
        return host_classes()[name.casefold()]
    if not name or not (name[0].isdecimal() or name[0] in "-+."):
        raise UnknownName("host class", text, host_classes())
    if name.startswith("-"):
        raise BadInput(f"`host_class`: a launch takes above 0 and at most 100 ms, got {text!r}")
    return LaunchHost(name, measured_launch(parse_seconds(name)))


def measured_host(source: str, system: str) -> LaunchHost | None:
    """The host of a system in a public table of runs; None where its launches were not measured."""
    seconds = _measured().get((source, system))
    return None if seconds is None else LaunchHost(system, measured_launch(seconds))


def parse_hooks(text: str) -> float:
    """Host seconds per parameter tensor: of a framework by its name, or as such ("0.5ms")."""
    name = text.strip().casefold()
    if name in hooks():
        return hooks()[name]
    if not name or not (name[0].isdecimal() or name[0] in "-+."):
        raise UnknownName("framework with hooks", text, hooks())
    is_below = name.startswith("-")
    return (-1 if is_below else 1) * parse_seconds(name.removeprefix("-"), unit="ms")


@remembered(1)
def host_classes() -> Mapping[str, LaunchHost]:
    """The shipped classes: the median of their systems, as wide as these and networks on one of them differ."""
    by_class: dict[str, list[float]] = {name: [] for name, _ in rows.read(_document(), "class", FILE, _class_row)}
    for name, _, seconds in rows.read(_document(), "measured", FILE, _measured_row):
        if name not in by_class:
            raise BadInput(f"{FILE}: {name!r} is no class of it")
        by_class[name].append(seconds)
    return {name: LaunchHost(name, _of_systems(each, min(each), max(each))) for name, each in by_class.items()}


@remembered(1)
def unknown_host() -> LaunchHost:
    """The host that nobody named: the median of all systems that were measured in eager mode without a trainer around
    the network, without the fastest and slowest of twenty.
    """
    ordinary = {name for name, is_trainer in rows.read(_document(), "class", FILE, _class_row) if not is_trainer}
    each = [seconds for name, _, seconds in rows.read(_document(), "measured", FILE, _measured_row) if name in ordinary]
    fast, *_, slow = quantiles(each, n=_PARTS, method="inclusive")
    return LaunchHost("unknown", _of_systems(each, fast, slow))


def _of_systems(each: Sequence[float], fast: float, slow: float) -> Interval:
    """Their median, as far as from a fast to a slow one; systems and networks on a system differ independently."""
    middle = median(each)
    low = exp(-hypot(log(fast / middle), log(SYSTEM_LOW)))
    high = exp(hypot(log(slow / middle), log(SYSTEM_HIGH)))
    return Interval(low * middle, middle, high * middle)


@remembered(1)
def hooks() -> Mapping[str, float]:
    """Host seconds per parameter tensor, by framework."""
    return dict(rows.read(_document(), "hooks", FILE, _hooks_row))


def sample_work(name: str) -> Interval:
    """Host seconds per sample of a kind of work."""
    return _works()[name]


@remembered(1)
def _works() -> Mapping[str, Interval]:
    return dict(rows.read(_document(), "work", FILE, _work_row))


@remembered(1)
def _measured() -> Mapping[tuple[str, str], float]:
    return {system: seconds for _, system, seconds in rows.read(_document(), "measured", FILE, _measured_row)}


@remembered(1)
def _document() -> Mapping[str, object]:
    return rows.parse(files("epochcast.predict.cost").joinpath(FILE).read_text(encoding="utf-8"), FILE)


def _class_row(row: rows.CatalogueRow) -> tuple[str, bool]:
    """Its name, and whether its launches are those of a trainer with more Python between two kernels."""
    row.text("about")
    return row.text("name"), row.flag("is_trainer")


def _measured_row(row: rows.CatalogueRow) -> tuple[str, tuple[str, str], float]:
    return row.text("class"), (row.text("source"), row.text("system")), row.number("launch_seconds")


def _work_row(row: rows.CatalogueRow) -> tuple[str, Interval]:
    row.text("source")
    low, high = row.number("low_seconds_per_sample"), row.number("high_seconds_per_sample")
    return row.text("name"), Interval(low, row.number("seconds_per_sample"), high)


def _hooks_row(row: rows.CatalogueRow) -> tuple[str, float]:
    row.text("source")
    return row.text("name"), row.number("seconds_per_parameter")
