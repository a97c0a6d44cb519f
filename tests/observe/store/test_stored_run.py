"""What is followed and kept: a store that is away for a while."""

import sqlite3
from pathlib import Path

import pytest

from epochcast.observe.runs.report import Report
from epochcast.observe.store.store_errors import Unavailable
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.stored_run import StoredRun


def test_reports_wait_for_a_store_that_is_locked(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db"), wait_seconds=0.02) as store:
        kept = StoredRun(store, store.open_run("r"))
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        kept.take([Report(1.0, 0.5)])
        with pytest.raises(Unavailable):
            kept.flush()
        kept.is_patient = True
        assert not kept.flush()
        other.close()
        assert kept.flush() and store.count_observations() == 1
