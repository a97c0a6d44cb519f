"""What is followed and kept: a store that is away for a while, reports there and back."""

import sqlite3
from pathlib import Path

import pytest

from epochcast.observe.logs.observation import Observation
from epochcast.observe.runs.stored_run import KeptRun, observation_of, row_of
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_opening import open_store


def test_a_report_comes_back_as_it_was() -> None:
    seen = Observation(3.5, 1.0, "validation", 2, 1, 0.5, 100, 2, 50, 0.1, 0.01, 99.0, 2.5)
    assert observation_of(row_of(seen)) == seen


def test_reports_wait_for_a_store_that_is_locked(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db"), wait_seconds=0.02) as store:
        kept = KeptRun(store, store.open_run("r"))
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        kept.take([Observation(1.0, 0.5)])
        with pytest.raises(Unavailable):
            kept.flush()
        kept.is_patient = True
        assert not kept.flush()
        other.close()
        assert kept.flush() and store.count_observations() == 1
