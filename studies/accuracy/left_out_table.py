"""`left_out.csv`, written by `make model`: predicted/measured of every step by models that had not seen it.

The order of its rows is that of `fit.material.measured_steps`.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcast.errors import BadInput
from studies.accuracy.figures import SEPARATOR, Array
from training.examples import Example
from training.left_out import folds_of

TABLE = Path(__file__).with_name("left_out.csv")
SPLITS = ("family", "device", "source")
FOLDS = 4  # of `make model`
_WITHOUT = "without_"

Names = NDArray[np.str_]


@dataclass(frozen=True)
class LeftOutTable:
    """One entry per step; a ratio is NaN where the step was never left out by that split.

    `shares` are the parts of its kernels' seconds by class (`predict.cost.spreads.KERNEL_PARTS`), `kind` is its format,
    layout and mode, `bound` says whether its kernels or the host that launches them decide.
    """

    source: Names
    device: Names
    model: Names
    family: Names
    precision: Names
    mode: Names
    layout: Names
    batch: Names
    age: Names
    framework: Names
    kind: Names
    bound: Names
    shares: Array
    ratios: dict[str, Array]

    def __len__(self) -> int:
        return len(self.source)

    def groups(self) -> list[str]:
        """Source, device, precision, mode and layout of every step."""
        layout = np.where(self.layout == "nchw", "NCHW", "channels-last")
        parts = (self.source, self.device, self.precision, self.mode, layout)
        return [SEPARATOR.join(names) for names in zip(*parts, strict=True)]

    def folds(self, split: str) -> NDArray[np.int64]:
        """The fold in which each step was left out, by family or by source, as `make model` cut them."""
        fold = np.zeros(len(self), dtype=np.int64)
        if split == "source":
            fold[:] = np.unique(self.source, return_inverse=True)[1]
            return fold
        for place, outside in enumerate(folds_of(self.family, FOLDS)):
            fold[list(outside)] = place
        return fold

    def check(self, steps: Sequence[Example]) -> None:
        """The captured steps must be those of the table, one by one."""
        mine = list(zip(self.source, self.device, self.model, self.batch, strict=True))
        theirs = [(e.source, e.device.name, e.model, str(e.recipe.batch)) for e in steps]
        if mine != theirs:
            raise BadInput("left_out.csv was written from other measurements: run `make model`")


def read_left_out(path: Path = TABLE) -> LeftOutTable:
    """The table."""
    if not path.exists():
        raise BadInput(f"{path.name} is missing: `make model` writes it")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [field.name for field in fields(LeftOutTable) if field.name not in ("shares", "ratios")]
    wanted = [*names, "shares", *(_WITHOUT + split for split in SPLITS)]
    if not rows or list(rows[0]) != wanted:
        raise BadInput(f"{path.name}: expected the columns {', '.join(wanted)}")

    def numbers(name: str) -> Array:
        return np.array([float(row[name]) if row[name] else np.nan for row in rows])

    return LeftOutTable(
        **{name: np.array([row[name] for row in rows]) for name in names},
        shares=np.array([[float(share) for share in row["shares"].split()] for row in rows]),
        ratios={split: numbers(_WITHOUT + split) for split in SPLITS},
    )
