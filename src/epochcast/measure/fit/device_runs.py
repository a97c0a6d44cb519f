"""The runs of one device in a table of any length, read piece by piece; of very many, some are kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.measure.tables.row_errors import FailedRow
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_chunks import CHUNK_ROWS

MOST_ROWS = 50
"""Runs that a calibration uses."""
MOST_KEPT = 10_000
"""Runs in memory, of which it chooses."""


@dataclass
class _Sample:
    """Runs evenly spread over those that were added, and how many those were."""

    runs: list[MeasuredRun] = field(default_factory=list)
    count: int = 0
    stride: int = 1

    def add(self, run: MeasuredRun) -> None:
        if self.count % self.stride == 0:
            self.runs.append(run)
        self.count += 1
        if len(self.runs) > MOST_KEPT:
            self.runs, self.stride = self.runs[::2], 2 * self.stride


def device_runs(
    rows: Iterable[dict[str, Any]], device: Device, precision: str | None, allow_code: bool, notes: list[str]
) -> tuple[list[MeasuredRun], list[FailedRow]]:
    """The runs on this device (in this precision), at most `MOST_ROWS` of them, evenly spread over the table, and the
    first `MOST_KEPT` rows that cannot be read.
    """
    sample, others, precisions, reason = _Sample(), set[str](), set[str](), "the table is empty"
    all_rows, start = iter(rows), 0
    unread: list[FailedRow] = []
    while piece := list(islice(all_rows, CHUNK_ROWS)):
        runs, failures = read_runs(piece, own_device=device, allow_code=allow_code)
        reason = failures[0].reason if failures and start == 0 else reason
        unread += [
            replace(failure, row_index=failure.row_index + start)
            for failure in failures[: MOST_KEPT - len(unread)]
            if not _names_another(piece[failure.row_index], device)
        ]
        for run in runs:
            if run.device.name != device.name:
                others.add(run.device.name)
                continue
            precisions.add(run.job.precision)
            if precision in (None, run.job.precision):
                sample.add(replace(run, row_index=run.row_index + start))
        start += len(piece)
    precision_names = ", ".join(sorted(precisions))
    if not precisions:
        reason = f"the table has {', '.join(sorted(others))}" if others else reason
        raise BadInput(f"no row of {device.name} can be used: {reason}")
    if not sample.runs:
        raise BadInput(f"no run of {device.name} is in {precision}: the table has {precision_names}")
    if precision is None and len(precisions) > 1:
        notes.append(f"runs in {precision_names} are fitted together; `precision` keeps one of them")
    if sample.count <= MOST_ROWS:
        return sample.runs, unread
    notes.append(f"{MOST_ROWS} of {sample.count} rows are used, evenly spread over the table")
    return [sample.runs[i] for i in np.linspace(0, len(sample.runs) - 1, MOST_ROWS).round().astype(int)], unread


def _names_another(row: dict[str, Any], device: Device) -> bool:
    """Whether a row that cannot be read is of another device: then it was not meant here."""
    try:
        return find_device(str(row.get("device"))).name != device.name
    except EpochcastError:
        return False
