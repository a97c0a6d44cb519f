"""Recorded pauses: how long they took is kept, in files of before as well."""

import json

from sqlalchemy import text

from epochcast.observe.runs.report import Report
from epochcast.observe.runs.tracker import Tracker
from epochcast.observe.store.store_export import export_lines
from epochcast.observe.store.store_import import import_lines
from epochcast.observe.store.store_opening import open_store

SEEN = [
    *(Report(step=n, clock_seconds=n, total_steps=400) for n in range(1, 101)),
    Report(100, 150.0, "validation", total_steps=400, pause_seconds=50.0, what="validation"),
    *(Report(step=n, clock_seconds=n + 50, total_steps=400) for n in range(101, 201)),
]


def test_a_run_that_is_read_back_tells_what_it_told(database: str) -> None:
    with open_store(database) as store:
        run = store.open_run("mine")
        store.record(run.id, SEEN)
        back = list(store.observations(run.id))
    first, again = Tracker(), Tracker()
    first.add_all(SEEN)
    again.add_all(back)
    assert [one.pause_seconds for one in back if one.what == "validation"] == [50.0]
    assert again.standing().remaining_seconds == first.standing().remaining_seconds


def test_a_file_of_older_tables_is_taken_in(database: str) -> None:
    with open_store(database) as store:
        run = store.open_run("mine")
        store.record(run.id, [Report(step=1.0, clock_seconds=2.0, loss=0.5)])
        lines = list(export_lines(store))
    with open_store(database) as store, store.writing() as connection:
        connection.execute(text("DELETE FROM runs"))
    old = [_older(json.loads(line)) for line in lines]
    with open_store(database) as store:
        import_lines(store, [json.dumps(line) for line in old], "old.jsonl")
        (found,) = store.runs()
        assert [(row.step, row.loss) for row in store.observations(found.id)] == [(1.0, 0.5)]


def _older(line: dict[str, object]) -> dict[str, object]:
    block = line.get("observations")
    if isinstance(block, dict):
        places = [at for at, name in enumerate(block["columns"]) if name not in ("pause_seconds", "what")]
        block["columns"] = [block["columns"][at] for at in places]
        block["rows"] = [[row[at] for at in places] for row in block["rows"]]
    return line
