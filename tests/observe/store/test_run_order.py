"""Orders of runs that depend on what time it is."""

import time

from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store import Store


def listed(store: Store, order: str, is_ascending: bool) -> list[str]:
    return [run.name for run in store.runs(RunFilter(order=order, is_ascending=is_ascending))]


def test_by_the_time_that_is_left_silent_runs_come_last_however_much_was_left_of_them(store: Store) -> None:
    now = time.time()
    for name, left, heard in (("long", 900.0, now), ("silent", 500.0, now - 7 * 86_400), ("short", 100.0, now)):
        progress = {
            **{
                "step": 5.0,
                "total_steps": 10.0,
                "total_told_by": "reports",
                "step_seconds": 1.0,
                "elapsed_seconds": 9.0,
            },
            "remaining_seconds": {"low": left, "mid": left, "high": left, "coverage": 0.9},
        }
        store.note(store.open_run(name).id, state="running", progress=progress, seen_at_seconds=heard)
    for order in ("remaining", "finish"):
        assert listed(store, order, True) == ["short", "long", "silent"]
        assert listed(store, order, False) == ["long", "short", "silent"]
