"""Latency and bandwidth of the link behind measured collectives, by the ring formulas of `predict/comm/`.

    all-reduce                     T(n) = 2(p-1)·(α + n/pB)
    all-gather, reduce-scatter     T(n) =  (p-1)·(α + n/pB)

with p ranks, n bytes, α seconds per message and B bytes per second. T is linear in α and 1/B. The fit minimises the
squares of the relative residuals, so that the small collectives, which depend on α, count as much as the large ones,
which depend on B. Neither is below zero: if α would be, 1/B is fitted alone. The fitted seconds are the tenth
percentile of the repeats: the link without disturbance. The residuals show where the formula does not hold, as at sizes
that exceed the caches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from epochcast.base.bounds import MOST_TENSOR_BYTES
from epochcast.base.record import Record
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.link import Link
from epochcast.measure.bench.measurements import Measurement

MOST_RANKS = 10_000_000
# Messages that a ring sends one after the other, per rank beyond the first.
ROUNDS: Mapping[str, int] = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


@dataclass(frozen=True, slots=True)
class LinkResidual(Record):
    """Measured and fitted seconds of one size."""

    size_bytes: int
    measured_seconds: float
    fitted_seconds: float

    @property
    def error_fraction(self) -> float:
        """Relative to the measurement; above zero where the formula gives more."""
        return self.fitted_seconds / self.measured_seconds - 1


@dataclass(frozen=True, slots=True)
class LinkFit(Record):
    """α and B of one collective among `ranks` ranks, and the residuals."""

    machine: str
    backend: str
    collective: str
    ranks: int
    latency_seconds: float
    bytes_per_second: float
    residuals: tuple[LinkResidual, ...]
    json_also: ClassVar[tuple[str, ...]] = ("error_fraction",)

    @property
    def error_fraction(self) -> float:
        """Root mean square of the relative residuals."""
        return sqrt(sum(r.error_fraction**2 for r in self.residuals) / len(self.residuals))

    def link(self) -> Link:
        """The link for `predict/comm/`, with the sustained bandwidth."""
        source = f"epochcast bench collectives: {self.collective}, {self.backend}, {self.ranks} ranks"
        return Link(self.latency_seconds, self.bytes_per_second, name=f"{self.backend}-{self.machine}", source=source)


def link_fits(rows: Sequence[Measurement]) -> list[LinkFit]:
    """A fit for each machine, backend, collective and number of ranks.

    Groups with fewer than two sizes have no fit, nor those where noise hides that larger sizes take longer.
    """
    groups: dict[tuple[str, str, str, int], dict[int, float]] = {}
    for row in rows:
        if row.kind != "collective" or row.seconds is None:
            continue
        backend, collective, ranks, size_bytes = collective_of(row)
        group = (row.machine.id, backend, collective, ranks)
        groups.setdefault(group, {})[size_bytes] = row.low_seconds or row.seconds
    fits = [_fit(*group, sizes) for group, sizes in groups.items() if len(sizes) > 1]
    return [fit for fit in fits if fit is not None]


def collective_of(row: Measurement) -> tuple[str, str, int, int]:
    """Backend, collective, ranks and bytes of a measured collective; raises where its question has not all of them."""
    ask = row.question
    ranks: Any = ask.get("ranks")
    size_bytes: Any = ask.get("size_bytes")
    if not _is_between(ranks, 2, MOST_RANKS) or not _is_between(size_bytes, 1, MOST_TENSOR_BYTES):
        raise BadInput(f"{row.key}: a collective has at least 2 ranks and 1 byte, got {ranks!r} and {size_bytes!r}")
    if ask.get("collective") not in ROUNDS:
        raise BadInput(f"{row.key}: {UnknownName('collective', str(ask.get('collective')), ROUNDS)}")
    return str(ask.get("backend")), str(ask["collective"]), int(ranks), int(size_bytes)


def _is_between(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _fit(machine: str, backend: str, collective: str, ranks: int, seconds: Mapping[int, float]) -> LinkFit | None:
    messages = ROUNDS[collective] * (ranks - 1)
    sizes = sorted(seconds)
    measured = np.array([seconds[size] for size in sizes])
    moved_bytes = messages * np.array(sizes) / ranks
    latency_seconds, seconds_per_byte = ring_coefficients(np.full(len(sizes), messages), moved_bytes, measured)
    if seconds_per_byte <= 0:
        return None
    fitted = messages * latency_seconds + moved_bytes * seconds_per_byte
    residuals = tuple(LinkResidual(n, t, f) for n, t, f in zip(sizes, measured.tolist(), fitted.tolist(), strict=True))
    return LinkFit(machine, backend, collective, ranks, latency_seconds, 1 / seconds_per_byte, residuals)


def ring_coefficients(
    messages: Sequence[float] | np.ndarray, moved_bytes: Sequence[float] | np.ndarray, seconds: np.ndarray
) -> tuple[float, float]:
    """α and 1/B of seconds = messages·α + moved_bytes/B, by least relative squares, neither below zero."""
    columns = np.stack([np.asarray(messages) / seconds, np.asarray(moved_bytes) / seconds], axis=1)
    scale = np.linalg.norm(columns, axis=0)
    latency, per_byte = np.linalg.lstsq(columns / scale, np.ones(len(seconds)), rcond=None)[0] / scale
    if latency < 0:
        latency, per_byte = 0.0, columns[:, 1].sum() / (columns[:, 1] ** 2).sum()
    return float(latency), max(0.0, float(per_byte))
