"""Measured steps on several GPUs with the measured step of one, and when their gradients are ready."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import PHASES
from epochcast.errors import EpochcastError
from epochcast.hardware.cluster import Group
from epochcast.measure.evaluate.given_single import MeasuredSingle, SingleSteps
from epochcast.measure.evaluate.unbuilt_runs import GRADIENT_BYTES, bare_batch, bare_ready
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.comm.stragglers import Batch, Waiting
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.launch import host_seconds
from epochcast.predict.forecast.exchange import batch_of, gradients
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.strategies.data_parallel import DataParallel
from epochcast.predict.forecast.streams import kernel_ends

UPDATE = PHASES.index(Phase.UPDATE)
FITTED = ("nvidia_dle", "tf_benchmarks_2017", "pollux_osdi21")
"""Sources whose 1-GPU rows were measured on the same machine; gavel's were not."""

THIN = 50
"""Where only every so many rows or fewer are wanted, none is kept for its number of GPUs."""


@dataclass(frozen=True)
class Row:
    """A run on several GPUs, split into its parts: `ready` are its buckets with the seconds at which they may leave."""

    run: MeasuredRun
    placement: Placement
    group: Group
    single_seconds: float
    ready: tuple[tuple[float, float], ...]
    backward_end_seconds: float
    total_bytes: float
    batch: Batch

    @property
    def slice(self) -> str:
        """The link that joins its GPUs."""
        if self.placement.nodes > 1:
            return "several boxes"
        return f"one box, {'NVLink' if self.group.inner.medium == 'nvlink' else 'PCIe'}"

    def seconds(self, group: Group | None = None, known: Waiting | None = None) -> float:
        """The forecast step, with other links or constants where given."""
        return (
            self.single_seconds
            + _data_parallel(self.placement)
            .exchange_ready(
                self.ready,
                self.backward_end_seconds,
                group or self.group,
                self.placement.device,
                accumulate=self.run.recipe.accumulate,
                batch=self.batch,
                constants=known,
            )
            .seconds
        )


def scaling_rows(data: Path, model: CostModel, sources: tuple[str, ...] = FITTED, every: int = 1) -> list[Row]:
    """Rows of the sources that have a 1-GPU row; of those of pollux every so many, and all on 64 GPUs or at most 4."""
    table = [row for row in read_table(data / "runs.parquet").to_dicts() if row["source"] in sources]
    runs, _ = read_runs(table, with_bare=True)
    singles = SingleSteps(runs).of(runs)
    asked = [run for run in runs if run.row_index in singles]
    thinned = [
        run
        for i, run in enumerate(asked)
        if run.source != "pollux_osdi21" or i % every == 0 or (every < THIN and not 4 < run.gpus < 64)
    ]
    groups: dict[Any, list[MeasuredRun]] = {}
    for run in thinned:
        groups.setdefault((run.reference, run.input_shape), []).append(run)
    return [row for group in groups.values() for row in _rows_of(group, singles, model)]


def _rows_of(runs: list[MeasuredRun], singles: dict[int, MeasuredSingle], model: CostModel) -> list[Row]:
    """Rows of one network; each recipe is costed once per device."""
    if not runs[0].reference:
        return [_bare_row(run, run.parameters, singles[run.row_index]) for run in runs if run.parameters]
    try:
        network = find_model(runs[0].reference, runs[0].input_shape, allow_code=False)
    except EpochcastError:
        return []
    kept: dict[Any, Any] = {}
    rows = []
    for run in runs:
        key = (run.recipe, run.device.name, run.setting)
        if key not in kept:
            trace = network.trace(run.recipe)
            costs = model.costs(trace.columns, run.device, run.setting)
            ends = kernel_ends(costs.mid, host_seconds(trace, run.device))
            before = trace.columns.phase != UPDATE
            kept[key] = trace, ends, float(ends[before][-1]), float(ends[-1])
        trace, ends, backward_end, end = kept[key]
        update_seconds, single = end - backward_end, singles[run.row_index]
        scale = single.seconds / (single.accumulate * backward_end + update_seconds)
        placement, made = run_placement(run), gradients(trace)
        ready = _data_parallel(placement).ready(made, scale * ends, scale * backward_end)
        rows.append(
            Row(
                run,
                placement,
                placement.group,
                scale * (run.recipe.accumulate * backward_end + update_seconds),
                ready,
                scale * backward_end,
                float(made.total_bytes),
                batch_of(trace),
            )
        )
    return rows


def _bare_row(run: MeasuredRun, parameters: float, single: MeasuredSingle) -> Row:
    placement, seconds = run_placement(run), single.pass_seconds
    ready = tuple(bare_ready(parameters, seconds, _data_parallel(placement)))
    whole = run.recipe.accumulate * seconds
    total_bytes = GRADIENT_BYTES * parameters
    return Row(run, placement, placement.group, whole, ready, seconds, total_bytes, bare_batch(run))


def _data_parallel(placement: Placement) -> DataParallel:
    assert isinstance(placement.strategy, DataParallel)  # the sources have no other runs
    return placement.strategy


@lru_cache(maxsize=10_000)
def with_fractions(group: Group, nvlink: float, pcie: float, flow: float) -> Group:
    """The group with other sustained fractions of NVLink and PCIe, and `flow` times the rate of crowding TCP flows."""
    fractions = {"nvlink": nvlink, "pcie": pcie}

    def changed(link: Any) -> Any:
        if link.medium == "tcp" and link.crowding:
            return replace(link, sustained_fraction=min(1.0, link.sustained_fraction * flow))
        return replace(link, sustained_fraction=fractions.get(link.medium, link.sustained_fraction))

    return replace(group, inner=changed(group.inner), outer=changed(group.outer))


def log_errors(rows: list[Row], forecasts: list[float]) -> np.ndarray:
    """|ln(forecast/measured)|."""
    measured = np.array([row.run.step_seconds for row in rows])
    errors: np.ndarray = np.abs(np.log(np.array(forecasts) / measured))
    return errors
