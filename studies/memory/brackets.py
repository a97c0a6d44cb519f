"""Largest batches that are known between two sizes: the first ran, the second did not."""

import random
from dataclasses import dataclass

import polars as pl

from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.predict.memory.largest_batch import LargestBatch, largest_batch, largest_of
from epochcast.predict.memory.memory_spreads import CAPTURED, StepKind
from epochcast.predict.memory.peak import MemoryStep
from studies.memory.kept import kept_lifetimes
from studies.memory.networks import THESIS
from studies.memory.schedtune import VERSION
from training.files import data_folder


@dataclass(frozen=True)
class Bracket:
    """The batch that ran, the next of a ladder that did not, and ours."""

    model: str
    layout: str
    fits: int
    fails: int
    found: LargestBatch

    @property
    def is_inside(self) -> bool:
        """Whether our expected batch lies between them."""
        return self.fits <= self.found.expected < self.fails

    @property
    def is_near(self) -> bool:
        """Whether it lies within a tenth of them."""
        return 0.9 * self.fits <= self.found.expected < 1.1 * self.fails


def timm(rows: int) -> tuple[list[Bracket], list[str]]:
    """Mixed precision on an RTX 3090; and the models that could not be captured, with the reason."""
    table = pl.read_parquet(data_folder() / "memory_timm_intervals.parquet").drop_nulls("batch_fails_below")
    asked = table.rows(named=True)
    random.Random(1).shuffle(asked)
    device, brackets, failed = find_device("RTX 3090"), [], []
    for row in asked[:rows]:
        recipe = Recipe(
            1,
            optimizer="momentum",
            precision="amp",
            update_style="loop",
            attention="eager",
            channels_last=row["layout"] != "nchw",
        )
        try:
            lives = kept_lifetimes(f"timm:{row['model']}", (3, row["img"], row["img"]), recipe)
        except EpochcastError as error:
            failed.append(f"{row['model']}: {error}")
            continue
        step = MemoryStep(row["model"], lives, device, framework_version=VERSION, kind=StepKind(CAPTURED))
        fails = int(row["batch_fails_below"])
        brackets.append(Bracket(row["model"], row["layout"], row["batch_fits"], fails, largest_of(step)))
    return brackets, failed


def thesis() -> list[tuple[str, int, int, LargestBatch]]:
    """Table 5.1: name, the thesis' estimate, the actual largest batch, ours."""
    device = find_device("V100-SXM2-16GB")
    recipe = Recipe(1, optimizer="momentum", update_style="loop")
    options = {"set_to_none": False, "sums_in_place": False}
    return [
        (name, theirs, actual, largest_batch(make().trace(recipe), device, framework_version=VERSION, **options))
        for name, (make, theirs, actual) in THESIS.items()
    ]
