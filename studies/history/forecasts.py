"""The forecast of every row of a source, kept in a file, so that a study that was stopped goes on where it was.

A row is known by a digest of all its cells: a row that changed is forecast anew, an equal one once. Rows are forecast
network by network, and each network is written when it is done. The files do not know which version of epochcast wrote
them: delete the folder to forecast anew.
"""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from pathlib import Path
from typing import Any

from epochcast.measure.evaluate.evaluate_runs import forecast_runs
from epochcast.measure.evaluate.predicted import Predicted
from epochcast.predict.cost.cost_models import find_cost_model


@dataclass(frozen=True)
class Kept:
    """Of one row: measured and forecast seconds of its step, the exposed communication and the host's part of them.
    `reason` says why there is no forecast.
    """

    key: str
    measured: float
    seconds: float
    exposed_comm: float
    host: float
    reason: str


COLUMNS = ("key", "measured", "seconds", "exposed_comm", "host", "reason")


def forecasts_of(rows: Sequence[Mapping[str, Any]], file: Path) -> list[Kept]:
    """One for each row, from the file as far as it has them."""
    known = _read(file)
    keys = [_key(row) for row in rows]
    missing: dict[str, dict[str, Mapping[str, Any]]] = {}
    for key, row in zip(keys, rows, strict=True):
        if key not in known:
            missing.setdefault(f"{row.get('model')} {row.get('input_shape')}", {})[key] = row
    for group in missing.values():
        found = forecast_runs([dict(row) for row in group.values()], find_cost_model())
        added = _kept(list(group), found)
        _append(file, added)
        known |= {one.key: one for one in added}
    return [known[key] for key in keys]


def _key(row: Mapping[str, Any]) -> str:
    return hashlib.blake2b(repr(sorted(row.items())).encode(), digest_size=8).hexdigest()


def _kept(keys: Sequence[str], found: Predicted) -> list[Kept]:
    reasons = {failure.row_index: failure.reason for failure in found.failures}
    return [
        Kept(
            key,
            float(found.measured_seconds[place]),
            float(found.mid_seconds[place]),
            float(found.parts["exposed_comm"][place]),
            float(found.parts["host"][place]),
            reasons.get(place, ""),
        )
        for place, key in enumerate(keys)
    ]


def _read(file: Path) -> dict[str, Kept]:
    """What was kept; a line that was not written to its end is none."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as stream:
        lines = [row for row in csv.DictReader(stream) if None not in row.values() and None not in row]
    return {row["key"]: _of(row) for row in lines}


def _of(row: Mapping[str, str]) -> Kept:
    names = ("measured", "seconds", "exposed_comm", "host")
    measured, seconds, exposed_comm, host = (float(row[name] or nan) for name in names)
    return Kept(row["key"], measured, seconds, exposed_comm, host, row["reason"])


def _append(file: Path, added: Sequence[Kept]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    is_new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for one in added:
            writer.writerow(asdict(one))
