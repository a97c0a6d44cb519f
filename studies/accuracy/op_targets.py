"""Targets for single operators, from `left_out_ops.csv`, which `make model` writes: large ops only, every device the
same.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from studies.accuracy.targets import Target

TABLE = Path(__file__).with_name("left_out_ops.csv")
CDNA = ("MI100", "MI210", "MI250X")


class OpErrors(NamedTuple):
    """Mean and median APE in percent over the large ops of a group and math on a device."""

    split: str
    device: str
    group: str
    math: str
    rows: int
    mape: float
    median_ape: float


def read_op_errors(path: Path = TABLE) -> list[OpErrors]:
    """Every row of the table."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        OpErrors(
            row["split"],
            row["device"],
            row["group"],
            row["math"],
            int(row["rows"]),
            100 * float(row["mape"]),
            100 * float(row["median_ape"]),
        )
        for row in rows
    ]


def op_targets(errors: Iterable[OpErrors]) -> list[Target]:
    """bf16 products with the chip left out and known; fp16 convolutions on CDNA."""
    table = list(errors)
    products = [e for e in table if (e.group, e.math) == ("matmul", "bf16") and not e.device.startswith("Arc")]
    convolutions = [e for e in table if (e.group, e.math) == ("conv", "fp16") and e.device in CDNA]
    return [
        *_target("bf16 products, chip and its sisters left out", products, "device", (12.0, 9.0)),
        *_target("bf16 products, chip known, a tenth of the rows left out", products, "known", (6.0, 4.5)),
        *_target("fp16 convolutions, CDNA, chip left out (median)", convolutions, "device", (25.0,)),
        *_target("fp16 convolutions, CDNA, chip known (median)", convolutions, "known", (13.0,)),
    ]


def _target(what: str, table: list[OpErrors], split: str, wanted: tuple[float, ...]) -> list[Target]:
    mine = [e for e in table if e.split == split]
    if not mine:
        return []
    both = float(np.mean([e.mape for e in mine])), float(np.mean([e.median_ape for e in mine]))
    ours = both if len(wanted) == len(both) else both[1:]
    why = ", ".join(f"{e.device} {e.mape:.0f} / {e.median_ape:.0f}" for e in sorted(mine, key=lambda e: -e.mape))
    name = f"{what}, mean over {len(mine)} GPUs"
    return [Target(name, sum(e.rows for e in mine), wanted, ours, why=why)]
