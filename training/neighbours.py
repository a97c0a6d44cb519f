"""A few hundred public measured runs to show beside forecasts, chosen to cover devices and networks.

Writes `measure/neighbours/public_runs.csv` from the tables of runs: of every network on every device in every precision
the row with the median batch; then devices in turn, each with the network that is shown least so far. Left out: rows
that cannot be forecast, sources without a public address, what is no training, and rows of which the shipped columns
do not say enough to give the forecast of all columns. Nothing is chosen by how well it is forecast.
"""

import csv
import io
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from epochcast.errors import EpochcastError
from epochcast.measure.neighbours.public_runs import COLUMNS, FILE, SIZES, address_of
from epochcast.measure.tables.cells import number
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table, with_known_columns
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session
from training.files import PACKAGE, data_folder, say, write

TABLES = ("runs", "runs_more", "runs_2026", "user_runs")
MOST_ROWS, MOST_TRIED = 320, 480
MOST_OF_NETWORK = 24
SAME = 0.02


def main() -> int:
    """Choose and write."""
    rows = [
        row
        for name in TABLES
        for row in with_known_columns(read_table(data_folder() / f"{name}.parquet")).to_dicts()
        if _is_wanted(row)
    ]
    chosen = list(_covering(rows))[:MOST_TRIED]
    say(f"{len(rows)} rows, {len(chosen)} chosen to cover")
    runs, failures = read_runs(chosen)
    say(f"{len(runs)} readable, {len(failures)} not")
    session = Session(with_own_profiles=False)
    kept = [line for run in sorted(runs, key=lambda run: run.row_index) if (line := _line(chosen, run, session))]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(kept[:MOST_ROWS], key=lambda line: (line["device"], line["model"], line["precision"])))
    write(PACKAGE / "measure" / "neighbours" / FILE, text.getvalue().encode())
    say(f"{min(len(kept), MOST_ROWS)} written")
    return 0


def _is_wanted(row: Mapping[str, Any]) -> bool:
    is_timed = bool(row.get("step_seconds") or row.get("samples_per_second"))
    is_good = row.get("quality") in (None, "", "ok")
    is_public = address_of(row.get("source") or "") is not None
    return is_public and is_timed and is_good and row.get("mode") in (None, "", "training")


def _covering(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row of each group, the devices in turn."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["device"], row["model"], row.get("precision"), str(row.get("gpus") or 1) != "1"].append(row)
    by_device: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, members in groups.items():
        members.sort(key=_batch)
        by_device[key[0]].append(members[len(members) // 2])
    shown: Counter[str] = Counter()
    while by_device:
        for device in sorted(by_device):
            row = min(by_device[device], key=lambda row: (shown[row["model"]], row["model"], str(row["precision"])))
            by_device[device].remove(row)
            shown[row["model"]] += 1
            if shown[row["model"]] <= MOST_OF_NETWORK:
                yield row
            if not by_device[device]:
                del by_device[device]


def _batch(row: Mapping[str, Any]) -> float:
    try:
        return number(row, "batch_per_gpu") or 0
    except EpochcastError:  # words, such as "2 per device"
        return 0


def _line(rows: list[dict[str, Any]], run: MeasuredRun, session: Session) -> dict[str, Any] | None:
    """The row as it is shipped, with the size of its network; None where it cannot be forecast."""
    try:
        forecast = forecast_job(run.job, run_placement(run), session, step_only=True)
    except EpochcastError as error:
        say(f"left out: {run.model} on {run.device.name}: {error}")
        return None
    row = rows[run.row_index]
    sizes = {"flops_per_sample": f"{forecast.flops_per_sample:.4g}", "fed": forecast.fed}
    own = {"parameters": forecast.parameters, "step_seconds": f"{run.step_seconds:.5g}"}
    cells = {name: row.get(name) for name in COLUMNS} | sizes | own
    line = {name: "" if value is None else value for name, value in cells.items()}
    shipped, _ = read_runs([{name: str(value) for name, value in line.items() if value != "" and name not in SIZES}])
    asked = [forecast_job(each.job, run_placement(each), session, step_only=True).step_seconds.mid for each in shipped]
    if len(asked) != 1 or not isclose(asked[0], forecast.step_seconds.mid, rel_tol=SAME):
        say(f"left out: {run.model} on {run.device.name}: the shipped columns give another forecast")
        return None
    return line


if __name__ == "__main__":
    sys.exit(main())
