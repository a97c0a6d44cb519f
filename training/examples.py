"""Whole-network measurements as training examples: the numbers of every op of the step, and how long the step took.

Capturing a thousand networks takes minutes, so the numbers are kept in a scratch folder (arrays only, nothing is
executed on loading) and a broken-off run goes on where it stopped.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import CLASSES, COLUMN_NAMES, PHASES, Columns
from epochcast.errors import EpochcastError
from epochcast.hardware.device import Device
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.software_setting import SoftwareSetting

_NAMES = tuple(name for name in COLUMN_NAMES if name != "samples")
"""What is kept of the columns; samples are the batch."""


@dataclass(frozen=True)
class Example:
    """One measured step: its ops in order, where and how it ran, and its seconds."""

    columns: Columns
    device: Device
    setting: SoftwareSetting
    seconds: float
    source: str
    model: str
    family: str
    recipe: Recipe

    @property
    def passes(self) -> NDArray[np.float64]:
        """How often each op runs in a step: updates once, all others as often as gradients are accumulated."""
        is_update = self.columns.phase == PHASES.index(Phase.UPDATE)
        return np.where(is_update, 1.0, float(self.recipe.accumulate))


def scratch() -> Path:
    """The folder for captured numbers between runs."""
    return Path(os.environ.get("EPOCHCAST_SCRATCH") or user_cache_path("epochcast") / "examples")


def examples(
    runs: Iterable[MeasuredRun], say: Callable[[str], None] = lambda _: None
) -> tuple[list[Example], dict[str, str]]:
    """Every run as an example, and the reason for each model that could not be captured."""
    runs_by_network: dict[tuple[str, tuple[int, ...] | None, Recipe], list[MeasuredRun]] = {}
    for run in runs:
        # Inference is the forward part of the same step: one capture serves both. Not so with eager attention and its
        # dropout, which does not run forward alone.
        recipe = replace(run.recipe.at(1), channels_last=False, accumulate=1)
        if recipe.mode == "forward" and run.source != "neusight":
            recipe = replace(recipe, mode="training", optimizer="momentum", update_style="loop")
            if recipe.attention == "flash" and not _attends(run, recipe):
                recipe = replace(recipe, attention="eager")
        runs_by_network.setdefault((run.reference, run.input_shape, recipe), []).append(run)
    steps: list[Example] = []
    failures: dict[str, str] = {}
    for number, ((reference, shape, recipe), group) in enumerate(sorted(runs_by_network.items(), key=str)):
        if number % 50 == 0:
            say(f"{number} of {len(runs_by_network)} networks")
        try:
            for run in group:
                columns = _columns(reference, shape, recipe, run.recipe.batch, {r.recipe.batch for r in group})
                if run.recipe.mode == "forward":
                    columns = inference(columns)
                steps.append(
                    Example(
                        columns,
                        run.device,
                        run.setting,
                        run.step_seconds,
                        run.source,
                        run.model,
                        run.family,
                        run.recipe,
                    )
                )
        except EpochcastError as error:
            failures[reference] = str(error)
    return steps, failures


def _attends(run: MeasuredRun, recipe: Recipe) -> bool:
    """Whether the network multiplies two computed tensors; if not, fused attention changes nothing."""
    path = _path(run.reference, run.input_shape, replace(recipe, attention="eager"))
    if not path.exists():
        return True
    with np.load(path, allow_pickle=False) as arrays_of_file:
        classes = next(arrays_of_file[name] for name in arrays_of_file if name.endswith("/op_class"))
    return bool(np.any(classes == CLASSES.index(OpClass.BATCHED_MATMUL)))


def inference(columns: Columns) -> Columns:
    """The forward part without its loss."""
    loss = CLASSES.index(OpClass.LOSS)
    return select(columns, (columns.phase == PHASES.index(Phase.FORWARD)) & (columns.op_class != loss))


def select(columns: Columns, keep: np.ndarray) -> Columns:
    """Some of the ops."""
    return columns.at(keep)


def _columns(reference: str, shape: tuple[int, ...] | None, recipe: Recipe, batch: int, batches: set[int]) -> Columns:
    """From the scratch folder, or captured now for all batches that are needed."""
    path = _path(reference, shape, recipe)
    arrays = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as arrays_of_file:
            if f"{batch}/flops" in arrays_of_file:
                return _at(batch, arrays_of_file)
            arrays = dict(arrays_of_file)
    trace = find_model(reference, shape).trace(recipe)
    for size in batches:
        columns = trace.rebatch(size).columns
        arrays |= {f"{size}/{name}": _small(getattr(columns, name)) for name in _NAMES}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part.npz")
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)
    return _at(batch, arrays)


def _at(batch: int, arrays: Mapping[str, np.ndarray]) -> Columns:
    arrays_of_file = [_restored(arrays[f"{batch}/{name}"]) for name in _NAMES]
    return Columns(*arrays_of_file, *[np.full(len(arrays_of_file[0]), float(batch))])


# What the name of a file says of a recipe; the rest is in a digest where it is not the default.
_IN_PATH = ("batch", "precision", "mode", "optimizer", "attention", "update_style", "compile")


def _path(reference: str, shape: tuple[int, ...] | None, recipe: Recipe) -> Path:
    parts = [reference.replace(":", "_").replace("/", "_"), "x".join(map(str, shape or ()))]
    rules = recipe.precision_rules
    parts += [f"{rules.name}-{rules.convolution_math}" if rules.convolutions_on_tensor_cores else rules.name]
    parts += [recipe.mode, recipe.optimizer, recipe.attention, recipe.update_style]
    parts += [recipe.compile] if recipe.compile != "none" else []
    others = {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.name not in _IN_PATH}
    if others != {f.name: f.default for f in fields(recipe) if f.name not in _IN_PATH}:
        parts += [blake2b(repr(sorted(others.items())).encode(), digest_size=6).hexdigest()]
    return scratch() / ("-".join(parts) + ".npz")


def _small(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.bool_:
        return values
    return values.astype(np.float32) if values.dtype == np.float64 else values.astype(np.int8)


def _restored(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.bool_:
        return values
    return values.astype(np.float64) if values.dtype == np.float32 else values.astype(np.int64)
