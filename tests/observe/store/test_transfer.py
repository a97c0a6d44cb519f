"""A store written to lines and read back, within one kind of database and across."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_tables import queue_jobs, queue_machines, queue_starts, queues
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_export import BLOCK_ROWS, export_lines
from epochcast.observe.store.store_import import import_lines
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_rows import Attempt, RunPlace, StoredMeasurement
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import Job

ROWS = BLOCK_ROWS + 7


def filled(store: Store) -> Store:
    """A store with one of everything, and numbers that are hard to write."""
    job = Job("resnet50", batch=64, epochs=90)
    run = store.open_run(
        "first ✓", job=job, job_name="mine", place=RunPlace("V100", 2, 1, "host", {"a": [1 / 3, None]})
    )
    store.record(run.id, [Report(step / 3, clock_seconds=step * 1e-7, loss=1 / (step + 1)) for step in range(ROWS)])
    store.record(run.id, [Report(1e9, None, "validation", 5, 2, loss=loss) for loss in (math.nan,)])
    store.record(run.id, [Report(2e9, loss=-math.inf), Report(3e9, total_steps=4e9)])
    store.put_attempt(Attempt(run.id, 5, "failed", "slurm", "12", exit_code=1))
    forecast = Forecast("resnet50", "V100", step_seconds=Interval(0.1, 0.2, 0.3), flops_per_sample=1e22)
    store.add_forecast(forecast, run_id=run.id, job_id=run.job_id)
    store.note(run.id, step_seconds=0.1 + 0.2, progress={"drift": None, "x": 5e-324})
    store.open_run("second")
    store.add_measurements([StoredMeasurement("m", "k", "op", {"seconds": 0.1}, {"cpu": "é"})])
    with store.writing() as connection:
        of = {"queue_id": 1}
        moment = {"added_at_seconds": 0.1, "seen_at_seconds": 1 / 3}
        rows: list[tuple[Table, dict[str, Any]]] = [
            (queues, {"id": 1, "key": "k", "name": "nightly", "fleet": {"nodes": 2}, **moment}),
            (
                queue_jobs,
                {
                    **of,
                    "job": "a",
                    "number": 0,
                    "row": {"id": "a", "x": 0.1},
                    "state": "running",
                    "left_fraction": 1 / 3,
                }
                | {"pace": 1.0, "is_observed": False, "owed_seconds": 0.0, "served_gpu_seconds": 0.0, "failures": 0}
                | {"told_at_seconds": 0.7},
            ),
            (queue_machines, {**of, "number": 0, "node_type": "n1", "rented_at_seconds": 0.2}),
            (
                queue_starts,
                {**of, "job": "a", "attempt": 1, "key": "k1", "machine": 0, "device": "V100", "gpus": 2}
                | {"is_alone": True, "state": "asked", "asked_at_seconds": 0.3},
            ),
        ]
        for table, values in rows:
            connection.execute(table.insert().values(**values))
    return store


def lines_of(store: Store) -> list[str]:
    """Of one moment, in an order that does not depend on ids."""
    head, *rest = export_lines(store, now_seconds=0.0)
    return [head, *sorted(rest)]


@pytest.mark.parametrize("to", ["sqlite", "postgresql"])
def test_a_store_moves_whole_into_any_database(
    store: Store, to: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    written = list(export_lines(filled(store), now_seconds=0.0))
    if to == "sqlite":
        url = str(tmp_path / "other.db")
    else:
        url = request.getfixturevalue("postgres").new_database(request.getfixturevalue("with_tables"))
    with open_store(url) as other:
        assert import_lines(other, written, "x")["observation"] == ROWS + 3
        assert lines_of(other) == lines_of(store)


def test_importing_again_adds_nothing(store: Store) -> None:
    written = list(export_lines(filled(store)))
    before = lines_of(store)
    assert set(import_lines(store, written, "x").values()) == {0}
    assert lines_of(store) == before


def test_of_a_run_that_both_have_the_later_tells_how_it_stands(store: Store, tmp_path: Path) -> None:
    run = store.open_run("r")
    store.record(run.id, [Report(1.0), Report(2.0)])
    early = list(export_lines(store))
    store.record(run.id, [Report(3.0)])
    store.note(run.id, state="ended")
    late = list(export_lines(store))
    with open_store(str(tmp_path / "other.db")) as other:
        for lines in (early, late, early):
            import_lines(other, lines, "x")
        assert (other.run("r").state, other.count_observations()) == ("ended", 3)


def test_another_run_of_the_same_name_gets_a_number(store: Store, tmp_path: Path) -> None:
    store.open_run("r")
    with open_store(str(tmp_path / "other.db")) as other:
        other.open_run("r")
        import_lines(store, list(export_lines(other)), "x")
    assert [run.name for run in store.runs()] == ["r (2)", "r"]


def cut(lines: list[str]) -> list[str]:
    return lines[:-1]


def miscounted(lines: list[str]) -> list[str]:
    return [*lines[:2], *lines[3:]]


def garbled(lines: list[str]) -> list[str]:
    return [*lines[:2], lines[2][:-5], *lines[3:]]


def newer(lines: list[str]) -> list[str]:
    return [json.dumps({**json.loads(lines[0]), "epochcast_store": 99}), *lines[1:]]


def foreign(lines: list[str]) -> list[str]:
    return ['{"step": 1}', *lines]


def bad_row(lines: list[str]) -> list[str]:
    return [line.replace('"state":"running"', '"stat":"running"') for line in lines]


def nothing(lines: list[str]) -> list[str]:
    return []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, "x was cut off after line .*nothing was imported"),
        (miscounted, "line .* of x"),
        (garbled, "line 3 of x is not JSON"),
        (newer, "line 1 of x: written by a newer epochcast"),
        (foreign, "line 1 of x: this is no export of a store"),
        (bad_row, "line 3 of x: a run has no 'stat'"),
        (nothing, "x is empty"),
    ],
)
def test_a_damaged_file_is_refused_by_its_line_and_leaves_nothing(
    store: Store, tmp_path: Path, damage: Callable[[list[str]], list[str]], message: str
) -> None:
    written = damage(list(export_lines(filled(store))))
    with open_store(str(tmp_path / "other.db")) as other:
        with pytest.raises(BadInput, match=message):
            import_lines(other, written, "x")
        assert (other.runs(), other.jobs(), other.count_observations()) == ([], [], 0)
