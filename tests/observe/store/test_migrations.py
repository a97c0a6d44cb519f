"""Tables of every older version, made by their own migrations, come to the newest and keep their rows."""

import signal
import subprocess
import sys

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_engine import make_engine, writer
from epochcast.observe.store.store_location import database_url
from epochcast.observe.store.store_opening import migrated, open_store
from epochcast.observe.store.store_schema import MIGRATIONS, NEWEST, VERSION_TABLE, version_of

# Only columns that tables have since version 0001.
RUN = """
INSERT INTO runs (id, key, name, gpus, nodes, place, state, added_at_seconds, seen_at_seconds, progress)
VALUES (1, 'k', 'old', 1, 1, '{}', 'running', 5.0, 6.0, '{}')
"""
REPORT = """
INSERT INTO observations (run_id, attempt, step, rank, phase, clock_seconds, reports, received_at_seconds)
VALUES (1, 1, 1.0, -1, 0, 2.0, 1, 6.0)
"""
# Kills its own process once a migration has changed the tables so many times.
KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from epochcast.observe.store.store_opening import migrated
left = int(sys.argv[2])
def after(connection, cursor, statement, *_):
    global left
    left -= statement.lstrip().startswith(("CREATE", "ALTER", "UPDATE"))
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
event.listen(Engine, "after_cursor_execute", after)
migrated(sys.argv[1])
"""


def older_versions() -> list[str]:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    versions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    return sorted(version for version in versions if version != NEWEST)


def make_tables_of(version: str, database: str) -> None:
    """What an epochcast of that time left: its tables, a run, a report."""
    engine = make_engine(database_url(database), 10.0)
    with writer(engine).begin() as connection:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        config.attributes.update(connection=connection, version_table=VERSION_TABLE)
        command.upgrade(config, version)
        connection.execute(text(RUN))
        connection.execute(text(REPORT))
    engine.dispose()


def columns_of(database: str) -> dict[str, list[str]]:
    """The columns of every table, and the version as one of them."""
    engine = make_engine(database_url(database), 10.0)
    with engine.connect() as connection:
        tables = inspect(connection)
        shape = {name: [column["name"] for column in tables.get_columns(name)] for name in tables.get_table_names()}
        version = version_of(connection)
    engine.dispose()
    return {**shape, "version": [str(version)]}


@pytest.mark.parametrize("version", older_versions())
def test_tables_of_every_older_version_are_migrated_and_keep_their_reports(bare_database: str, version: str) -> None:
    make_tables_of(version, bare_database)
    assert migrated(bare_database) == (version, NEWEST)
    with open_store(bare_database) as store:
        run = store.run("old")
        assert [(row.step, row.pause_seconds) for row in store.observations(run.id)] == [(1.0, None)]
        assert store.record(run.id, [Report(step=2.0, phase="checkpoint", pause_seconds=3.0)]) == 1


def test_a_migration_that_is_killed_half_way_leaves_the_tables_of_before(bare_database: str) -> None:
    make_tables_of("0001", bare_database)
    before = columns_of(bare_database)
    for changes in (2, 9, 20):
        child = subprocess.run([sys.executable, "-c", KILLED, bare_database, str(changes)], check=False)
        assert child.returncode == -signal.SIGKILL
        assert columns_of(bare_database) == before
    assert migrated(bare_database) == ("0001", NEWEST)
    with open_store(bare_database) as store:
        assert [row.step for row in store.observations(store.run("old").id)] == [1.0]
