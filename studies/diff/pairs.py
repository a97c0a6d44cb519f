"""Pairs of variants that were measured on the same GPU, with what the forecast says of the change.

Two steps are a pair if they are timm networks of one family, trained on the same device by the same benchmark (so the
same versions), in the same precision and layout, at the same batch and input size. The forecasts are those of
`studies/accuracy/left_out.csv`: of a model that never saw the family (or the GPU); `shipped` is the model as it is
shipped, which was trained on both.
"""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.decide.diff.diff_side import kernel_seconds
from epochcast.decide.diff.paired_interval import unshared
from epochcast.errors import BadInput
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.predict.cost.cost_models import find_cost_model
from studies.accuracy.left_out_table import LeftOutTable, read_left_out
from training.examples import Example, examples
from training.material import distinct

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """One measured step: forecast ÷ measured by the splits, and its kernels by signature."""

    group: tuple[object, ...]
    model: str
    family: str
    log_seconds: float
    without_family: float
    without_device: float
    shipped: float
    kernels: dict[str, float]


@dataclass(frozen=True)
class Pairs:
    """One entry per pair: logarithms of the measured and the forecast change, and what is not shared of each side."""

    base: NDArray[np.str_]
    head: NDArray[np.str_]
    family: NDArray[np.str_]
    measured: Array
    without_family: Array
    without_device: Array
    shipped: Array
    base_alone: Array
    head_alone: Array

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def unlike(self) -> Array:
        """u of `epochcast.decide.diff.paired_interval`."""
        return np.asarray(np.hypot(self.base_alone, self.head_alone))


def measured_pairs(folder: Path) -> Pairs:
    """All pairs of the tables in a folder; capturing their networks takes minutes the first time."""
    return pairs_of(_steps(folder))


def pairs_of(steps: list[Step]) -> Pairs:
    """Every two steps of a group."""
    groups: dict[tuple[object, ...], list[Step]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step)
    found = [pair for group in groups.values() for pair in combinations(group, 2)]
    alone = [unshared(base.kernels, head.kernels) for base, head in found]
    measured = np.array([head.log_seconds - base.log_seconds for base, head in found])

    def forecast(name: str) -> Array:
        return np.asarray(measured + [getattr(head, name) - getattr(base, name) for base, head in found])

    return Pairs(
        np.array([base.model for base, _ in found]),
        np.array([head.model for _, head in found]),
        np.array([base.family for base, _ in found]),
        measured,
        forecast("without_family"),
        forecast("without_device"),
        forecast("shipped"),
        np.array([base for base, _ in alone]),
        np.array([head for _, head in alone]),
    )


def _steps(folder: Path) -> list[Step]:
    tables = [pl.read_parquet(folder / f"{name}.parquet") for name in ("runs", "runs_more")]
    rows = pl.concat([table.select(tables[0].columns) for table in tables], how="vertical_relaxed").filter(
        (pl.col("gpus") == 1) & (pl.col("source") == "timm")
    )
    runs, _ = read_runs(distinct(rows).to_dicts())
    found, _ = examples(runs)
    table = read_left_out()
    places = np.flatnonzero((table.source == "timm") & (table.mode == "training"))
    if len(places) != len(found):
        raise BadInput(f"left_out.csv has {len(places)} training steps of timm, the tables have {len(found)}")
    by_step = {_key(run.model, run.recipe.batch, run.recipe.channels_last, run.step_seconds): run for run in runs}
    return [_step(example, by_step, table, place) for example, place in zip(found, places.tolist(), strict=True)]


def _key(*parts: object) -> tuple[object, ...]:
    return parts


def _step(example: Example, runs: dict[tuple[object, ...], MeasuredRun], table: LeftOutTable, place: int) -> Step:
    recipe = example.recipe
    if (table.model[place], int(table.batch[place])) != (example.model, recipe.batch):
        raise BadInput("left_out.csv was written from other measurements: run `make model`")
    run = runs[_key(example.model, recipe.batch, recipe.channels_last, example.seconds)]
    seconds = find_cost_model().costs(example.columns, example.device, example.setting).mid
    return Step(
        (
            run.system,
            run.device.name,
            run.family,
            recipe.batch,
            run.input_shape,
            recipe.precision,
            recipe.channels_last,
        ),
        example.model,
        example.family,
        float(np.log(example.seconds)),
        float(np.log(table.ratios["family"][place])),
        float(np.log(table.ratios["device"][place])),
        float(np.log(seconds.sum() / example.seconds)),
        kernel_seconds(example.columns, np.asarray(seconds)),
    )
