"""The constants of collectives refitted, kind of wire by kind of wire, and scored on what was left out.

Least weighted mean |ln(forecast/measured)| by coordinate descent over the logs of the constants. A system × collective
× ranks × band of sizes has the weight of one row, and a system the root of its number of those, so that no long table
outvotes the others.
"""

from collections.abc import Sequence

import numpy as np

from studies.collectives.law import Table, seconds, table
from studies.collectives.rows import Measured

# Where the search begins: NCCL's own model (tuning.cc: latencies of LL, LL128 and Simple), four fifths of each wire,
# half of a copy for a rank's own part. Latencies of links are those of Simple, whose hop factor is therefore 1.
GUESSES: dict[str, dict[str, float]] = {
    "nvlink": {
        "own": 0.4,
        "ring.ll.start": 6.6e-6,
        "ring.ll.hop": 0.18,
        "ring.ll.fraction": 0.5,
        "ring.ll128.start": 14e-6,
        "ring.ll128.hop": 0.45,
        "ring.ll128.fraction": 0.8,
        "ring.simple.start": 20e-6,
        "switch.start": 30e-6,
        "switch.hop": 1.0,
        "switch.fraction": 0.6,
        "pair.eager.start": 8e-6,
        "pair.eager.hop": 0.2,
        "pair.eager.fraction": 0.4,
        "pair.simple.start": 15e-6,
        "pair.simple.hop": 0.4,
        "pair.simple.fraction": 0.9,
    },
    "pcie": {
        "ring.ll.start": 6.6e-6,
        "ring.ll.hop": 0.18,
        "ring.ll.fraction": 0.5,
        "ring.simple.start": 8.4e-6,
        "pair.eager.start": 8e-6,
        "pair.eager.hop": 0.1,
        "pair.eager.fraction": 0.4,
        "pair.simple.start": 15e-6,
        "pair.simple.hop": 0.4,
        "pair.simple.fraction": 0.9,
    },
    "xgmi": {
        "ring.simple.start": 30e-6,
        "pair.simple.start": 30e-6,
        "pair.simple.hop": 1.0,
        "pair.simple.fraction": 0.9,
    },
}
# What stays as it is while a kind of wire is fitted.
FIXED: dict[str, dict[str, float]] = {
    "nvlink": {"ring.simple.hop": 1.0, "ring.simple.fraction": 1.0},
    "pcie": {
        "own": 0.0,
        "ring.simple.hop": 1.0,
        "ring.simple.fraction": 1.0,
        "switch.start": 1.0,
        "switch.hop": 1.0,
        "switch.fraction": 1.0,
    },
    "xgmi": {
        "own": 0.0,
        "ring.simple.hop": 1.0,
        "ring.simple.fraction": 1.0,
        "switch.start": 1.0,
        "switch.hop": 1.0,
        "switch.fraction": 1.0,
    },
}
LATENCY_SECONDS = {"nvlink": 3.4e-6, "pcie": 5.7e-6, "xgmi": 5.7e-6}
RATE = {"nvlink": 0.8, "pcie": 0.45, "xgmi": 0.8}
MESHES = {
    "nvlink2": {2: 0.33, 3: 0.33, 4: 0.67, 5: 0.33, 6: 0.33, 7: 0.67},
    "pcie5": {2: 1.4},
    "infinity_fabric_cdna4": {2: 1 / 7, 3: 2 / 7, 4: 3 / 7, 5: 4 / 7, 6: 5 / 7, 7: 6 / 7},
}
"""What fewer ranks get, to begin with; of the fabric, one link to each of seven others, it is not fitted."""
FITTED_MESHES = ("nvlink2", "pcie5")
MEDIA = {"nvlink": ("nvlink2", "nvswitch2", "nvswitch3", "nvswitch4"), "pcie": ("pcie5",)}
MEDIA["xgmi"] = ("infinity_fabric_cdna4",)
STEPS = (0.4, 0.15, 0.05, 0.02)
MOST = {"fraction": 1.0, "rate": 1.0, "own": 0.99}
"""Upper bounds by what a name ends with; a copy that costs a whole part would make more ranks faster."""


def fit(medium: str, rows: Sequence[Measured]) -> dict[str, float]:
    """All constants of a kind of wire. Links without rows get the mean of the others."""
    links = MEDIA[medium]
    columns, weights = table(rows), row_weights(rows)
    fixed = {**FIXED[medium], **_meshes(links, is_fitted=False)}
    free = {**GUESSES[medium], **_meshes(columns.links, is_fitted=True)}
    for name in columns.links:
        free[f"{name}.rate"] = RATE[medium]
        free[f"{name}.latency"] = LATENCY_SECONDS[medium]
    found = _descend(columns, weights, free, fixed) if len(rows) else free
    missing = [name for name in links if name not in columns.links]
    return {**_meshes(missing, is_fitted=True), **found, **fixed, **_means(medium, missing, columns.links, found)}


def _means(medium: str, missing: Sequence[str], known: Sequence[str], found: dict[str, float]) -> dict[str, float]:
    means = {}
    for kind, guess in (("rate", RATE[medium]), ("latency", LATENCY_SECONDS[medium])):
        logs = [np.log(found.get(f"{name}.{kind}", guess)) for name in known]
        for name in missing:
            means[f"{name}.{kind}"] = float(np.exp(np.mean(logs))) if logs else guess
    return means


def _meshes(links: Sequence[str], *, is_fitted: bool) -> dict[str, float]:
    return {
        f"{name}.ranks.{ranks}": fraction
        for name in links
        if name in MESHES and (name in FITTED_MESHES) == is_fitted
        for ranks, fraction in MESHES[name].items()
    }


def row_weights(rows: Sequence[Measured]) -> np.ndarray:
    """One for every cell, divided by the root of a system's number of cells, shared by the rows of a cell."""
    cells: dict[tuple[str, str, int, int], int] = {}
    for row in rows:
        cells[_cell(row)] = cells.get(_cell(row), 0) + 1
    per_system: dict[str, int] = {}
    for system, *_ in cells:
        per_system[system] = per_system.get(system, 0) + 1
    return np.array([1 / cells[_cell(row)] / np.sqrt(per_system[row.system]) for row in rows])


def _cell(row: Measured) -> tuple[str, str, int, int]:
    return row.system, row.collective, row.ranks, row.band


def _loss(columns: Table, weights: np.ndarray, constants: dict[str, float]) -> float:
    errors = np.abs(np.log(seconds(columns, constants) / columns.seconds))
    return float((weights * errors).sum() / weights.sum())


def _descend(columns: Table, weights: np.ndarray, free: dict[str, float], fixed: dict[str, float]) -> dict[str, float]:
    best = _loss(columns, weights, {**fixed, **free})
    for step in STEPS:
        is_better = True
        while is_better:
            is_better = False
            for name, value in dict(free).items():
                most = MOST.get(name.rpartition(".")[2], np.inf)
                for factor in (np.exp(step), np.exp(-step)):
                    tried = {**free, name: float(min(most, value * factor))}
                    found = _loss(columns, weights, {**fixed, **tried})
                    if found < best - 1e-6:
                        free, best, is_better = tried, found, True
                        break
    return free
