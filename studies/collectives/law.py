"""The law of `predict.comm.nccl` over arrays, for groups on one kind of link: thousands of tries while fitting.

Constants are a mapping by name; `shipped` reads those of fitted.toml and links.toml, with which `seconds` gives what
`predict.comm.nccl` gives (a test compares them).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.hardware.catalogue import find_link
from epochcast.predict.comm.protocol import ProtocolLine, tuning
from studies.collectives.rows import Measured

RINGS = ("ll", "ll128", "simple")
PAIRWISE = ("eager", "simple")


@dataclass(frozen=True)
class Table:
    """Measured collectives as columns; `links` are names, to which `link` gives indices."""

    links: tuple[str, ...]
    link: np.ndarray
    bandwidth: np.ndarray
    sums_in_switch: np.ndarray
    rounds: np.ndarray
    ranks: np.ndarray
    size_bytes: np.ndarray
    seconds: np.ndarray


def table(rows: Sequence[Measured]) -> Table:
    """The columns of rows that have one kind of link."""
    links = tuple(sorted({row.link for row in rows}))
    found = [find_link(name) for name in links]
    link = np.array([links.index(row.link) for row in rows])
    rounds = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1, "all_to_all": 0}
    return Table(
        links,
        link,
        np.array([one.bandwidth_bytes_per_second for one in found])[link],
        np.array([one.sums_in_switch for one in found])[link],
        np.array([rounds[row.collective] for row in rows]),
        np.array([float(row.ranks) for row in rows]),
        np.array([row.size_bytes for row in rows]),
        np.array([row.seconds for row in rows]),
    )


def shipped(medium: str, links: Sequence[str]) -> dict[str, float]:
    """The constants of a kind of wire and of its links, as shipped."""
    known = tuning()
    values = {"own": known.own_fractions.get(medium, 0.0)}
    for prefix, kinds in (("ring", known.protocols), ("pair", known.pairwise)):
        for protocol in kinds:
            if medium in protocol.lines:
                values.update(_named(f"{prefix}.{protocol.name}", protocol.lines[medium]))
    values.update(_named("switch", known.switch_line))
    for name in links:
        link = find_link(name)
        values[f"{name}.latency"] = link.latency_seconds
        values[f"{name}.rate"] = link.sustained_fraction
        values.update({f"{name}.ranks.{ranks}": fraction for ranks, fraction in link.rank_fractions})
    return values


def seconds(rows: Table, constants: Mapping[str, float]) -> np.ndarray:
    """What each row takes with such constants."""
    latency = np.array([constants[f"{name}.latency"] for name in rows.links])[rows.link]
    rate = np.array([constants[f"{name}.rate"] for name in rows.links])[rows.link] * rows.bandwidth
    rate = rate * _rank_fractions(rows, constants)
    p = rows.ranks
    rings = [
        _line(f"ring.{name}", constants, rows.rounds * (p - 1) * latency)
        + rows.size_bytes * (rows.rounds * (p - 1) + constants["own"]) / p / (rate * constants[f"ring.{name}.fraction"])
        for name in RINGS
        if f"ring.{name}.start" in constants
    ]
    pairs = [
        _line(f"pair.{name}", constants, (p - 1) * latency)
        + rows.size_bytes * (p - 1 + constants["own"]) / p / (rate * constants[f"pair.{name}.fraction"])
        for name in PAIRWISE
        if f"pair.{name}.start" in constants
    ]
    switch = _line("switch", constants, np.ceil(np.log2(p)) * latency) + rows.size_bytes / (
        rate * constants["switch.fraction"]
    )
    by_ring = np.minimum.reduce(rings)
    in_switch = rows.sums_in_switch & (rows.rounds == 2)
    by_wire: np.ndarray = np.where(in_switch, np.minimum(by_ring, switch), by_ring)
    answer: np.ndarray = np.where(rows.rounds == 0, np.minimum.reduce(pairs), by_wire)
    return answer


def _rank_fractions(rows: Table, constants: Mapping[str, float]) -> np.ndarray:
    fractions = np.ones(len(rows.link))
    for place, name in enumerate(rows.links):
        for ranks in (2, 3, 4, 5, 6, 7):
            fraction = constants.get(f"{name}.ranks.{ranks}")
            if fraction is not None:
                fractions[(rows.link == place) & (rows.ranks == ranks)] = fraction
    return fractions


def _line(name: str, constants: Mapping[str, float], hops: np.ndarray) -> np.ndarray:
    found: np.ndarray = constants[f"{name}.start"] + constants[f"{name}.hop"] * hops
    return found


def _named(name: str, line: ProtocolLine) -> dict[str, float]:
    return {
        f"{name}.start": line.start_seconds,
        f"{name}.hop": line.hop_factor,
        f"{name}.fraction": line.bandwidth_fraction,
    }
