"""Databases that are new, old, newer or somebody else's."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from epochcast.errors import BadInput
from epochcast.observe.runs.report import Report
from epochcast.observe.store.database_tables import metadata
from epochcast.observe.store.store_errors import StoreError, Unavailable, WrongSchema
from epochcast.observe.store.store_location import database_url, shown_url
from epochcast.observe.store.store_opening import existing_store, look, migrated, open_store
from epochcast.observe.store.store_schema import MIGRATIONS, NEWEST, VERSION_TABLE


def test_the_newest_version_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_migrations_end_in_the_tables_that_the_code_uses(bare_database: str) -> None:
    assert migrated(bare_database) == (None, NEWEST)
    with open_store(bare_database) as store, store.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_second_migration_has_nothing_to_do(bare_database: str) -> None:
    migrated(bare_database)
    assert migrated(bare_database) == (NEWEST, NEWEST)


def test_a_new_file_gets_its_tables_by_itself_and_a_folder(tmp_path: Path) -> None:
    assert existing_store(str(tmp_path / "none.db")) is None
    with open_store(str(tmp_path / "a" / "b" / "store.db")) as store:
        assert store.runs() == []
        with store.reading() as connection:
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL


# Opens the database of every line it reads, and answers by what came of it.
OPENER = """
import sys
from epochcast.errors import EpochcastError
from epochcast.observe.store.store_opening import open_store
open_store(sys.argv[1]).close()
print("ready", flush=True)
for line in sys.stdin:
    try:
        with open_store(line.strip()) as store:
            store.open_run("r")
        print("opened", flush=True)
    except EpochcastError as error:
        print(error, flush=True)
"""


def test_four_processes_that_open_a_new_file_at_once_all_get_its_tables(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(tmp_path / f"first-{number}.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    answers = []
    with ExitStack() as stack:
        for child in children:
            stack.enter_context(child)
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
        for number in range(20):
            for child in children:
                assert child.stdin is not None
                child.stdin.write(f"{tmp_path / f'new-{number}.db'}\n")
                child.stdin.flush()
            answers += [child.stdout.readline().strip() for child in children if child.stdout is not None]
    assert answers == ["opened"] * 80


def test_the_file_of_another_program_is_opened_by_nobody_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE theirs (x INTEGER)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(WrongSchema, match=r"tables of another program \(theirs, …\)"):
        open_store(str(file))
    assert file.read_bytes() == before


def test_an_empty_database_left_by_a_process_that_was_killed_gets_its_tables(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    other = sqlite3.connect(file)
    other.execute("PRAGMA journal_mode=WAL")
    other.close()
    assert file.stat().st_size
    with open_store(str(file)) as store:
        assert store.runs() == []


def test_a_server_without_tables_says_what_to_run(postgres: object) -> None:
    from tests.observe.store.conftest import Server

    assert isinstance(postgres, Server)
    url = postgres.new_database()
    with pytest.raises(WrongSchema, match=r"has no tables yet; run: epochcast store migrate --database postgresql://"):
        open_store(url)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0000", "has tables of version 0000, not .*; run: epochcast store migrate"),
        ("9999", "made by a newer epochcast; this one knows .*: install the newer one"),
    ],
)
def test_another_version_is_refused_with_what_to_do(database: str, version: str, message: str) -> None:
    with open_store(database) as store, store.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"))
    with pytest.raises(WrongSchema, match=message):
        open_store(database)


def test_a_newer_database_is_not_migrated_back(database: str) -> None:
    with open_store(database) as store, store.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(WrongSchema, match="made by a newer epochcast"):
        migrated(database)


def test_the_database_of_another_program_is_left_alone(bare_database: str) -> None:
    from sqlalchemy import create_engine

    engine = create_engine(database_url(bare_database))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE theirs (x INTEGER)"))
    engine.dispose()
    with pytest.raises(WrongSchema, match=r"tables of another program \(theirs, …\)"):
        migrated(bare_database)


def test_a_file_that_is_no_database_is_told_so_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    file.write_text("epoch 1: loss 0.3\n" * 100)
    with pytest.raises(StoreError, match=r"train\.log is not an SQLite database"):
        open_store(str(file))
    assert file.read_text() == "epoch 1: loss 0.3\n" * 100


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(str(tmp_path))


def test_a_place_that_cannot_be_looked_at_is_told(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 300)
    for opened in (open_store, existing_store):
        with pytest.raises(StoreError, match="cannot be opened: File name too long"):
            opened(str(file))
    assert "cannot be opened" in str(look(str(file)).problem)


def test_a_locked_file_is_waited_for_and_then_told(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with open_store(str(file), wait_seconds=0.05) as store:
        run = store.open_run("r")
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="is locked by another program"):
            store.record(run.id, [Report(1.0)])
        other.execute("ROLLBACK")
        other.close()
        assert store.record(run.id, [Report(1.0)]) == 1


def test_a_server_that_is_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"postgresql://me:\*\*\*@/x\?host=.* cannot be reached: .*No such file"):
        open_store(f"postgresql://me:secret@/x?host={tmp_path}")


def test_a_database_that_does_not_exist_on_its_server_is_told(postgres: object) -> None:
    from tests.observe.store.conftest import Server

    assert isinstance(postgres, Server)
    with pytest.raises(StoreError, match="nowhere"):
        open_store(postgres.url("nowhere"))


def test_a_full_disk_is_told_and_what_was_kept_stays(tmp_path: Path) -> None:
    """The limit of a file's size, of a process of its own, stands for the disk: writing fails half-way."""
    file = tmp_path / "store.db"
    with open_store(str(file)) as store:
        store.record(store.open_run("r").id, [Report(1.0)])
    script = (
        "import resource, signal, sys\n"
        "from epochcast.observe.store.store_opening import open_store\n"
        "from epochcast.observe.runs.report import Report\n"
        "from epochcast.observe.store.store_errors import StoreError\n"
        "store = open_store(sys.argv[1]); run = store.open_run('r')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "try:\n"
        "    store.record(run.id, [Report(float(step)) for step in range(2, 50_000)])\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False)
    assert "disk" in ran.stdout and "full" in ran.stdout, ran.stderr
    with open_store(str(file)) as store:
        assert [row.step for row in store.observations(store.run("r").id)] == [1.0]


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no users to change to on this system")
def test_a_read_only_file_is_told(tmp_path: Path) -> None:
    """Root may write everything, so a process that may not tries."""
    folder = tmp_path / "open"
    file = folder / "store.db"
    open_store(str(file)).close()
    file.chmod(0o444)
    folder.chmod(0o555)
    script = (
        "import os, sys\n"
        "from epochcast.observe.store.store_opening import open_store\n"
        "from epochcast.observe.store.store_errors import StoreError\n"
        "import epochcast.observe.store.store\n"
        "os.chdir(sys.argv[1])\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try:\n"
        "    open_store('store.db').open_run('r')\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    for parent in (tmp_path, *tmp_path.parents):
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(0o755)
    ran = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True, check=False)
    folder.chmod(0o755)
    assert "read-only" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("sqlite:////var/lib/x.db", "/var/lib/x.db"),
        ("/var/lib/x.db", "/var/lib/x.db"),
        ("postgres://u:p%40ss@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://h/d?user=u&password=secret", "postgresql://h/d?user=u&password=***"),
    ],
)
def test_a_database_is_shown_without_its_password(given: str, shown: str) -> None:
    assert shown_url(database_url(given)) == shown


def test_the_variable_says_where_and_an_argument_overrules_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EPOCHCAST_STORE", "postgresql://h/team")
    assert database_url() == "postgresql+psycopg://h/team"
    assert database_url(str(tmp_path / "x")) == f"sqlite:///{tmp_path / 'x'}"
    monkeypatch.delenv("EPOCHCAST_STORE")
    assert database_url().endswith("/epochcast/store.db")


@pytest.mark.parametrize("given", ["mysql://h/d", "sqlite://", "sqlite:///:memory:", " "])
def test_other_databases_are_refused(given: str) -> None:
    with pytest.raises(BadInput, match=r"database"):
        database_url(given)
