"""Which fraction of its data sheet a device sustains, fitted on public runs, and an estimate for unmeasured devices.

`profiles.toml` is written by `make model`, a row per measured device: fractions of the peak by math, of vector
arithmetic and of bandwidth; by what factor the ops of a group, and all ops under a generation of a framework, take
longer than on other devices; and the host seconds per kernel of every source of measurements that has its steps. The
file has fractions of the data sheet; here they are of the peak at the clock that the board's power sustains
(`hardware.power_law`), so that boards with more and with less power say the same of each other.

A device without a row gets the mean of all rows, weighed by how similar the devices are (logarithms of fractions and
factors):

    w = exp(-½ Σ (difference/length)²)

over architecture, vendor, year, bytes per flop and the ratio of fp16 to fp32 peaks. Factors of a framework on one
device are not used for another. Where a sustained product or copy of the device itself was published
(`published_rates.toml`), it counts as much as all similar devices together, on the scale of devices that have both.

Rows of siblings (`hardware.siblings`) are brought into the order of their data sheets, each weighed by how much was
measured of it: a faster sibling is never slower.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, sqrt
from typing import TypeVar

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.describe.graph.math_modes import MATHS, OP_MATHS
from epochcast.hardware.catalogue import devices, find_device
from epochcast.hardware.device import Device
from epochcast.hardware.power_law import clock_fraction, sustained_peak
from epochcast.hardware.published_rates import BANDWIDTH, published_bandwidth_fraction, published_fractions
from epochcast.hardware.siblings import Pairs, ordered, sibling_pairs

FILE = "profiles.toml"
# How different two devices may be before they tell little about each other.
_OTHER_GENERATION, _OTHER_VENDOR = 2.0, 3.0
_YEARS, _RATIO = 4.0, 0.7
# Against measured steps: so little counts a device of which nothing was measured, and an operator measured alone.
_UNMEASURED_WEIGHT, _OP_WEIGHT = 0.1, 0.01
# The powers of a peak and of a bandwidth that the learned model takes off (u and v of `predict.cost.learned`), at the
# most.
MOST_PEAK_LOSS, MOST_BANDWIDTH_LOSS = 0.2, 0.4
# The groups of ops (`predict.cost.op_bounds`) whose arithmetic is products.
_PRODUCTS = frozenset(
    {"conv", "conv_channels_last", "conv_grouped", "conv_grouped_channels_last", "matmul", "attention"}
)


@dataclass(frozen=True, slots=True)
class Sustained:
    """Fractions of the data sheet, those of products at the clock that power sustains, and factors of seconds by group
    of op and by generation of the framework.

    `launch_seconds` are the host's per kernel, by source of measurements. `known_kinds` are the kinds of step
    (`predict.cost.spreads`) that were measured; `sister_kinds` were measured on another board of the same chip.
    `measured_maths` are formats in which anything was measured on the device or such a board. `weight` is how much was
    measured, in steps.
    """

    math_fractions: Mapping[str, float] = field(hash=False)
    vector_fraction: float
    bandwidth_fraction: float
    group_factors: Mapping[str, float] = field(hash=False)
    generation_factors: Mapping[str, float] = field(hash=False, default_factory=dict)
    launch_seconds: Mapping[str, float] = field(hash=False, default_factory=dict)
    known_kinds: frozenset[str] = frozenset()
    sister_kinds: frozenset[str] = frozenset()
    measured_maths: frozenset[str] = frozenset()
    source: str = ""
    weight: float = _UNMEASURED_WEIGHT

    def math_fraction(self, math: str) -> float:
        """Of the peak in a math; as in fp32 where that math was not measured."""
        return self.math_fractions.get(math, self.math_fractions["fp32"])


@remembered(1024)
def sustained(device: Device) -> Sustained:
    """The device's own row, or that of another board of the same chip; missing values are estimated from
    similar devices.

    A user's own data sheet is never known: it has the fractions of the device that it says it is like. A product
    that the user measured counts before all of them.
    """
    named = find_device(device.like) if device.like else device
    siblings = _in_order(named.vendor, named.generation)
    kinds, maths = _of_chip(named)
    sustained = replace(siblings.get(named.name) or _estimated(named), sister_kinds=kinds, measured_maths=maths)
    if device.sheet:
        none: frozenset[str] = frozenset()
        sustained = replace(sustained, known_kinds=none, sister_kinds=none, measured_maths=none, launch_seconds={})
    if device.measured_fractions:
        others = {math: sustained.math_fraction(math) for math in MATHS}
        sustained = replace(sustained, math_fractions={**others, **device.measured_fractions})
    return sustained


def has_profile(device: Device) -> bool:
    """Whether the device has a row of its own."""
    return device.name in _table()


def _estimated(device: Device) -> Sustained:
    table = _table()
    expected = prior(device, table, devices())
    measured = table.get(device.name) or _sister(device, table)
    if measured is not None:
        maths = {**expected.math_fractions, **measured.math_fractions}
        return replace(
            measured, math_fractions=maths, group_factors={**expected.group_factors, **measured.group_factors}
        )
    return replace(
        expected,
        math_fractions={**expected.math_fractions, **_published_maths(device, expected)},
        bandwidth_fraction=_bandwidth_fraction(device, expected),
    )


Part = tuple[str, str]


@remembered(64)
def _in_order(vendor: str, generation: str) -> Mapping[str, Sustained]:
    """What the devices of a generation sustain, none of them less than a slower sibling: first the rates, then how much
    longer groups of ops take, as far as the rates leave room.
    """
    relatives = {d.name: d for d in devices() if (d.vendor, d.generation, d.kind) == (vendor, generation, "gpu")}
    estimates = {name: _estimated(device) for name, device in relatives.items()}
    pairs = sibling_pairs(list(relatives.values()))
    weights = {name: _part_weights(device, estimates[name]) for name, device in relatives.items()}

    def in_order(values: Mapping[str, float], part: Part, slacks: Sequence[float] | None = None) -> dict[str, float]:
        return ordered(values, {name: weights[name](part) for name in values}, pairs, slacks)

    rates = _by_name({name: _rates(relatives[name], estimate) for name, estimate in estimates.items()})
    rates = {part: in_order(values, part) for part, values in rates.items()}
    groups = _by_name(
        {name: _factor_speeds(estimate, estimates.values(), "group_factors") for name, estimate in estimates.items()}
    )
    groups = {part: in_order(values, part, _gaps(part, rates, pairs)) for part, values in groups.items()}
    left = _left(groups, rates, pairs)
    stacks = _by_name(
        {
            name: _factor_speeds(estimate, estimates.values(), "generation_factors")
            for name, estimate in estimates.items()
        }
    )
    stacks = {part: in_order(values, part, left) for part, values in stacks.items()}
    speeds = _by_name({**rates, **groups, **stacks})
    return {name: _at_speeds(relatives[name], estimate, speeds[name]) for name, estimate in estimates.items()}


def _part_weights(device: Device, estimate: Sustained) -> Callable[[Part], float]:
    """How much was measured of a part of a device: formats, groups of ops and frameworks that nobody measured on it
    count as little as a device that nobody measured.
    """
    row = _table().get(device.name) or _sister(device, _table())
    measured: dict[str, Mapping[str, float]] = {}
    if row is not None:
        measured = {
            "math": row.math_fractions,
            "group_factors": row.group_factors,
            "generation_factors": row.generation_factors,
            "vector": {"": row.vector_fraction},
            "bandwidth": {"": row.bandwidth_fraction},
        }

    def weight(part: Part) -> float:
        kind, name = part
        return estimate.weight if name in measured.get(kind, {}) else _UNMEASURED_WEIGHT

    return weight


_A = TypeVar("_A")
_B = TypeVar("_B")


def _by_name(table: Mapping[_A, Mapping[_B, float]]) -> dict[_B, dict[_A, float]]:
    """Rows as columns, and back."""
    names = dict.fromkeys(name for row in table.values() for name in row)
    return {name: {key: row[name] for key, row in table.items() if name in row} for name in names}


def _maths(device: Device) -> list[str]:
    return [math for math in OP_MATHS if device.has(math)]


def _peak_gain(device: Device, math: str) -> float:
    """What a peak is worth at least: the learned model takes part of a gain off."""
    return float(sustained_peak(device, math) ** (1 - MOST_PEAK_LOSS))


def _vector_gain(device: Device) -> float:
    return float(device.peak("fp32_vector") ** (1 - MOST_PEAK_LOSS))


def _bandwidth_gain(device: Device) -> float:
    return float(device.memory_bytes_per_second ** (1 - MOST_BANDWIDTH_LOSS))


def _rates(device: Device, sustained: Sustained) -> dict[Part, float]:
    """Logarithms of what all ops run by."""
    return {
        **{("math", math): log(sustained.math_fraction(math) * _peak_gain(device, math)) for math in _maths(device)},
        ("vector", ""): log(sustained.vector_fraction * _vector_gain(device)),
        ("bandwidth", ""): log(sustained.bandwidth_fraction * _bandwidth_gain(device)),
    }


def _gaps(part: Part, rates: Mapping[Part, Mapping[str, float]], pairs: Pairs) -> list[float]:
    """By how much the faster of each pair is ahead in all rates that a group of ops may be bound by."""
    _, group = part
    counted = [
        values for (rate, math), values in rates.items() if rate != "math" or (group in _PRODUCTS and math != "fp64")
    ]
    return [min(values[fast] - values[slow] for values in counted if slow in values) for slow, fast in pairs]


def _left(
    groups: Mapping[Part, Mapping[str, float]], rates: Mapping[Part, Mapping[str, float]], pairs: Pairs
) -> list[float]:
    """What all groups leave of the gaps: what a framework does, it does to every one of them."""
    left = [
        [
            gap - (values[slow] - values[fast])
            for gap, (slow, fast) in zip(_gaps(part, rates, pairs), pairs, strict=True)
        ]
        for part, values in groups.items()
    ]
    return [max(0.0, min(each)) for each in zip(*left, strict=True)] if left else [0.0] * len(pairs)


def _factor_speeds(sustained: Sustained, others: Iterable[Sustained], kind: str) -> dict[Part, float]:
    """Logarithms of how quickly groups of ops, or frameworks, run beside the rates; the more the faster."""
    factors: Mapping[str, float] = getattr(sustained, kind)
    names = sorted({name for each in others for name in getattr(each, kind)})
    return {(kind, name): -log(factors.get(name, 1.0)) for name in names}


def _at_speeds(device: Device, sustained: Sustained, speeds: Mapping[Part, float]) -> Sustained:
    """The device at other speeds than its own."""

    def named(kind: str, sign: float = 1.0) -> dict[str, float]:
        return {name: exp(sign * value) for (part, name), value in speeds.items() if part == kind}

    return replace(
        sustained,
        math_fractions={math: rate / _peak_gain(device, math) for math, rate in named("math").items()},
        vector_fraction=named("vector")[""] / _vector_gain(device),
        bandwidth_fraction=named("bandwidth")[""] / _bandwidth_gain(device),
        group_factors=named("group_factors", -1.0),
        generation_factors=named("generation_factors", -1.0),
    )


def _published_maths(device: Device, expected: Sustained) -> Mapping[str, float]:
    """Fractions of maths in which a sustained product was published, on the scale of the fitted ones: the mean of that
    and of similar devices.
    """
    scales = _published_scales()
    maths = [math for math in published_fractions(device) if math in scales]
    published = {math: _at_clock(device, published_fractions(device))[math] * scales[math] for math in maths}
    return {math: sqrt(fraction * expected.math_fraction(math)) for math, fraction in published.items()}


def _bandwidth_fraction(device: Device, expected: Sustained) -> float:
    published, scale = published_bandwidth_fraction(device), _published_scales().get(BANDWIDTH)
    if published is None or scale is None:
        return expected.bandwidth_fraction
    return sqrt(published * scale * expected.bandwidth_fraction)


@remembered(1)
def _published_scales() -> Mapping[str, float]:
    """How fitted fractions compare with published ones, by math, over devices that have both."""
    logs: dict[str, list[float]] = {}
    for device in (d for d in devices() if d.name in _table()):
        fitted = {**_table()[device.name].math_fractions, BANDWIDTH: _table()[device.name].bandwidth_fraction}
        published = {
            **_at_clock(device, published_fractions(device)),
            BANDWIDTH: published_bandwidth_fraction(device),
        }
        for quantity, fraction in published.items():
            if fraction is not None and quantity in fitted:
                logs.setdefault(quantity, []).append(log(fitted[quantity] / fraction))
    return {quantity: exp(sum(values) / len(values)) for quantity, values in logs.items()}


def _at_clock(device: Device, fractions: Mapping[str, float]) -> dict[str, float]:
    """Fractions of the peak at the clock that the board's power sustains, from those of the data sheet."""
    return {math: fraction / clock_fraction(device, math) for math, fraction in fractions.items()}


def prior(device: Device, measured: Mapping[str, Sustained], catalogue: tuple[Device, ...]) -> Sustained:
    """The mean of the measured devices of a catalogue, weighed by `similarity`."""
    weighed = [(similarity(device, d), measured[d.name]) for d in catalogue if d.name in measured]

    def mean(pairs: list[tuple[float, float]]) -> float:
        return exp(sum(w * log(v) for w, v in pairs) / sum(w for w, _ in pairs)) if pairs else 1.0

    maths = {m: [(w, s.math_fractions[m]) for w, s in weighed if m in s.math_fractions] for m in MATHS}
    groups = sorted({g for _, s in weighed for g in s.group_factors})
    return Sustained(
        {m: mean(pairs) for m, pairs in maths.items() if pairs or m == "fp32"},
        mean([(w, s.vector_fraction) for w, s in weighed]),
        mean([(w, s.bandwidth_fraction) for w, s in weighed]),
        {g: mean([(w, s.group_factors[g]) for w, s in weighed if g in s.group_factors]) for g in groups},
    )


def similarity(first: Device, second: Device) -> float:
    """1 for the same data sheet, near 0 for another vendor's card of another decade."""
    differences = (
        _OTHER_GENERATION * (first.generation != second.generation),
        _OTHER_VENDOR * (first.vendor != second.vendor),
        (first.year - second.year) / _YEARS,
        log(_bytes_per_flop(first) / _bytes_per_flop(second)) / _RATIO,
        log(_half_ratio(first) / _half_ratio(second)) / _RATIO,
    )
    return exp(-sum(d * d for d in differences) / 2)


def _same(first: Device, second: Device) -> bool:
    """Whether two boards are equal except for the size of their memory."""
    peaks, other_peaks = first.peak_flops_per_second, second.peak_flops_per_second
    speeds = (first.generation, first.compute_units, first.memory_bytes_per_second, dict(peaks))
    return speeds == (second.generation, second.compute_units, second.memory_bytes_per_second, dict(other_peaks))


def _sister(device: Device, table: Mapping[str, Sustained]) -> Sustained | None:
    name = next((d.name for d in devices() if d.name in table and _same(d, device)), None)
    return None if name is None else replace(table[name], known_kinds=frozenset())


def _of_chip(device: Device) -> tuple[frozenset[str], frozenset[str]]:
    """Kinds of step that were measured on other boards with the same chip, whatever their clocks and memory; and the
    formats in which anything was measured on any board with it.
    """
    boards = [d.name for d in devices() if d.chip == device.chip and d.name in _table()]
    kinds = frozenset(kind for name in boards if name != device.name for kind in _table()[name].known_kinds)
    return kinds, frozenset(math for name in boards for math in _table()[name].math_fractions)


def _bytes_per_flop(device: Device) -> float:
    return device.memory_bytes_per_second / device.peak("fp32")


def _half_ratio(device: Device) -> float:
    return device.peak("fp16") / device.peak("fp32")


@remembered(1)
def _table() -> Mapping[str, Sustained]:
    return dict(rows.read(_document(), "device", FILE, _device_row))


@remembered(1)
def _document() -> Mapping[str, object]:
    return rows.parse(rows.shipped(FILE, __file__), FILE)


def _device_row(row: rows.CatalogueRow) -> tuple[str, Sustained]:
    name = row.text("name")
    # Ops timed alone ran under no framework: without steps, such a factor is that of their table.
    frameworks = row.numbers("generation_factors")
    measured = Sustained(
        _at_clock(find_device(name), row.numbers("math_fractions")),
        row.number("vector_fraction"),
        row.number("bandwidth_fraction"),
        row.numbers("group_factors"),
        frameworks if row.count("steps") else {},
        row.numbers("launch_seconds"),
        frozenset(row.texts("known_kinds")),
        source=row.text("source"),
        weight=row.count("steps") + _OP_WEIGHT * row.count("ops") + _UNMEASURED_WEIGHT,
    )
    return name, measured
