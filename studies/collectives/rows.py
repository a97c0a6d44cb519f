"""Measured collectives of two tables, in the same bytes: the full tensor (an all-gather's output, a reduce-scatter's
input, else the buffer of one rank).

`collectives_modern` counts `message_size` in values of fp16: that reading, and not bytes, agrees with the other table
on the three devices that both have (`size_ratios`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcast.hardware.catalogue import find_link
from epochcast.hardware.cluster import Group, Level
from epochcast.measure.tables.table_files import read_table

MODERN, MORE = "collectives_modern.parquet", "collectives_more.parquet"
MODERN_BYTES = 2
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
NETWORK_UNKNOWN = "network not stated"
# What joins the ranks. An NVL72 rack is one NVLink domain, so its hosts count as one box.
LINKS = {
    "A100-SXM4-80GB": "nvswitch2",
    "H100-SXM5-80GB": "nvswitch3",
    "H200": "nvswitch3",
    "B200": "nvswitch4",
    "GB200": "nvswitch4",
    "GB300": "nvswitch4",
    "RTX PRO 6000 Blackwell Server": "pcie5",
    "vTrain trace/a100": "nvswitch2",
    "a100_dgx": "nvswitch2",
    "h100_dgx": "nvswitch3",
    "sm_90": "nvswitch3",
    "sm_100_GB200": "nvswitch4",
    "vTrain trace/v100": "nvlink2",
    "SuperScaler eurosys": "nvlink2",
    "gfx950": "infinity_fabric_cdna4",
}
# Pairs by a bridge, and what joins two pairs.
PAIRS = {
    "a100_pairwise_nvlink": ("nvlink3", "pcie4_switch"),
    "h100_pairwise_nvlink": ("nvlink_bridge_hopper", "pcie5_switch"),
}
SAME = (
    ("A100-SXM4-80GB", "vTrain trace/a100"),
    ("A100-SXM4-80GB", "a100_dgx"),
    ("H100-SXM5-80GB", "sm_90"),
    ("H100-SXM5-80GB", "h100_dgx"),
    ("GB200", "sm_100_GB200"),
)
"""Systems of the first table and of the second with the same device and wires."""
LARGE_BYTES = 8e6
"""Above it the bytes and not latency decide."""
# vidur took the time of kernels from a trace: below it they mostly wait for each other.
NOISY = {"a100_dgx", "h100_dgx", *PAIRS}
NOISY_BYTES = 1e6
BANDS = (("below 32 kB", 32e3), ("to 1 MB", 1e6), ("to 32 MB", 32e6), ("above", float("inf")))


@dataclass(frozen=True)
class Measured:
    """One collective: which system, joined by which link (`bridge` joins pairs of it), and how long it took."""

    system: str
    link: str
    bridge: str
    collective: str
    ranks: int
    size_bytes: float
    seconds: float

    @property
    def group(self) -> Group:
        """Its ranks in one box."""
        if self.bridge and self.ranks > 2:
            across = find_link(self.link)
            return Group(1, self.ranks, find_link(self.bridge), across, (Level(self.ranks // 2, across),))
        inner = find_link(self.bridge or self.link)
        return Group(1, self.ranks, inner, inner)

    @property
    def band(self) -> int:
        """The index of its size in `BANDS`."""
        return next(i for i, (_, most_bytes) in enumerate(BANDS) if self.size_bytes < most_bytes)


def measured(data: Path) -> list[Measured]:
    """Collectives whose wires are known, in one box or one NVLink domain."""
    found = []
    for row in read_table(data / MODERN).to_dicts():
        name = "all_to_all" if row["collective"] == "alltoall" else row["collective"]
        size_bytes = float(MODERN_BYTES * row["message_size"])
        link = LINKS[row["device"]]
        found.append(Measured(row["device"], link, "", name, row["ranks"], size_bytes, row["seconds"]))
    for row in read_table(data / MORE).to_dicts():
        system, name = row["system"], row["collective"]
        is_noisy = system in NOISY and row["bytes"] < NOISY_BYTES
        is_one_box = row["nodes"] == 1 or system == "sm_100_GB200"
        if name not in COLLECTIVES or is_noisy or not is_one_box:
            continue
        bridge, link = PAIRS.get(system) or ("", LINKS[system])
        found.append(Measured(system, link, bridge, name, row["ranks"], float(row["bytes"]), row["seconds"]))
    return found


def across_boxes(data: Path) -> list[tuple[str, int, int, float, float]]:
    """(system, ranks, boxes, bytes, seconds) of the all-reduces over networks that nobody names."""
    rows = read_table(data / MORE).to_dicts()
    return [
        (row["system"], row["ranks"], row["nodes"], float(row["bytes"]), row["seconds"])
        for row in rows
        if NETWORK_UNKNOWN in row["interconnect"]
        and row["collective"] == "all_reduce"
        and row["nodes"] > 1
        and row["bytes"] >= NOISY_BYTES
    ]


def size_ratios(rows: Sequence[Measured]) -> list[tuple[str, str, str, int, float, float]]:
    """(system of the first table, of the second, collective, n, ratio if sizes are bytes, ratio if values of fp16):
    medians of the seconds of the first over those of the second at the same bytes, above `LARGE_BYTES`.
    """
    found = []
    for first, second in SAME:
        for collective in COLLECTIVES:
            by_factor = [_ratios(rows, first, second, collective, factor) for factor in (1 / MODERN_BYTES, 1.0)]
            if by_factor[1]:
                medians = [float(np.exp(np.median(ratios))) for ratios in by_factor]
                found.append((first, second, collective, len(by_factor[1]), medians[0], medians[1]))
    return found


def _ratios(rows: Sequence[Measured], first: str, second: str, collective: str, factor: float) -> list[float]:
    """Logs of the seconds of one system, interpolated between its sizes times a factor, over those of another."""
    logs: list[float] = []
    alike = [row for row in rows if row.collective == collective and not row.bridge]
    for ranks in sorted({row.ranks for row in alike}):
        ours = sorted((row.size_bytes, row.seconds) for row in alike if (row.system, row.ranks) == (first, ranks))
        theirs = [row for row in alike if (row.system, row.ranks) == (second, ranks) and row.size_bytes > LARGE_BYTES]
        if not ours:
            continue
        sizes, seconds = np.log(np.array(ours)).T
        sizes = sizes + np.log(factor)
        for row in theirs:
            if sizes[0] <= np.log(row.size_bytes) <= sizes[-1]:
                logs.append(float(np.interp(np.log(row.size_bytes), sizes, seconds) - np.log(row.seconds)))
    return logs
