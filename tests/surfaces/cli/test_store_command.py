"""`epochcast store`, `epochcast runs` and what `epochcast track` keeps."""

import sqlite3
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.surfaces.cli.conftest import Command

from epochcast.observe.runs.report import Report
from epochcast.observe.store.store_opening import open_store
from epochcast.observe.store.store_schema import NEWEST

JOBS = """
[[job]]
name = "mine"
model = "resnet50"
device = "V100"
batch = 64
dataset = "imagenet-1k"
epochs = 2
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EPOCHCAST_STORE", str(tmp_path / "store.db"))
    monkeypatch.setenv("EPOCHCAST_CACHE", str(tmp_path / "cache"))  # doctor reads all of it
    (tmp_path / "epochcast.toml").write_text(JOBS)
    return tmp_path


def write_log(path: Path, last: int, step_seconds: float = 0.2, first: int = 50, day: int = 1) -> None:
    begin = datetime(2026, 1, day, 8)
    lines = [
        f"[{begin + timedelta(seconds=step * step_seconds):%Y-%m-%d %H:%M:%S}] step {step}/2000 loss {1 / step}\n"
        for step in range(first, last + 1, 50)
    ]
    path.write_text("".join(lines))


REGEX = r"--regex step\s(?P<step>\d+)/(?P<total>\d+)"


def test_a_log_that_is_read_again_adds_only_what_is_new(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    first = command(f"track a.log --run one {REGEX} --json").json
    write_log(here / "a.log", 1500)
    again = command(f"track a.log --run one {REGEX} --json").json
    assert (first["run"], first["step"], again["step"]) == ("one", 1000, 1500)
    with open_store() as store:
        assert [row.step for row in store.observations(store.run("one").id)] == list(range(50, 1501, 50))


def test_the_answer_is_the_same_with_a_store_and_without(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    alone = command(f"track a.log {REGEX} --json").json
    kept = command(f"track a.log --store {REGEX} --json").json
    assert {**kept, "run": None} == alone
    assert command("runs --json").json["runs"][0]["run"] == str(here / "a.log")


def test_a_log_that_was_rotated_goes_on_after_what_was_kept(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    command(f"track a.log --run one {REGEX}")
    write_log(here / "a.log", 1500, first=1050)
    told = command(f"track a.log --run one {REGEX} --json").json
    assert (told["step"], told["restarts"]) == (1500, 1)
    with open_store() as store:
        assert store.count_observations() == 30


def test_steps_that_are_replayed_are_kept_as_another_attempt(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    write_log(here / "b.log", 1200, first=600, day=2)
    (here / "a.log").write_text((here / "a.log").read_text() + (here / "b.log").read_text())
    for _ in range(2):
        assert command(f"track a.log --run one {REGEX} --json").json["restarts"] == 1
    with open_store() as store:
        assert store.count_observations() == 20 + 13


def test_past_runs_are_told_and_move_the_first_answer(command: Command, here: Path) -> None:
    for number in (1, 2, 3):
        write_log(here / f"{number}.log", 2000, step_seconds=0.2, day=number)
        command(f"track {number}.log --job mine --run r{number} {REGEX}")
    write_log(here / "new.log", 50)
    alone = command(f"track new.log --job mine {REGEX} --json").json
    told = command(f"track new.log --job mine --run new {REGEX} --json").json
    assert told["past"]["same"] == 3 and " slower than forecast" in told["past"]["told"]
    assert alone["step_seconds"] < told["step_seconds"] < 0.2
    assert "your last 3 runs of this job were" in command(f"track new.log --job mine --run new {REGEX}").out


def test_runs_lists_what_is_kept_and_tells_one_in_detail(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    write_log(here / "b.log", 2000)
    command(f"track a.log --job mine --run going {REGEX}")
    command(f"track b.log --run over {REGEX}")
    listed = command("runs --json").json["runs"]
    assert [(run["run"], run["state"], run["fraction"]) for run in listed] == [
        ("over", "ended", 1),
        ("going", "running", 0.5),
    ]
    assert [run["run"] for run in command("runs --state running --device V100 --json").json["runs"]] == ["going"]
    assert [run["run"] for run in command("runs --model resnet50 --job mine --since 1d --json").json["runs"]] == [
        "going"
    ]
    one = command("runs going --json").json
    assert (one["observations"], one["options"]["model"], len(one["attempts"])) == (20, "resnet50", 1)
    assert "against forecast" in command("runs going").out and "50.0%" in command("runs").out


def test_a_store_is_exported_and_imported_elsewhere(command: Command, here: Path) -> None:
    write_log(here / "a.log", 1000)
    command(f"track a.log --job mine --run one {REGEX}")
    assert command("store export x.jsonl --json").json["lines"] == 7
    added = command("store import x.jsonl --database other.db --json").json["added"]
    assert (added["run"], added["observation"]) == (1, 20)
    assert command("runs --database other.db --json").json["runs"] == command("runs --json").json["runs"]
    assert command("store export -").out.splitlines()[1:] == (here / "x.jsonl").read_text().splitlines()[1:]


def test_progress_of_a_run_that_only_sent_reports_is_worked_out_by_who_looks(command: Command) -> None:
    with open_store() as store:
        run = store.open_run("called", started_at_seconds=1.7e9)
        reports = [Report(float(step), clock_seconds=0.2 * step) for step in range(0, 1001, 50)]
        store.record(run.id, [reports[0]._replace(total_steps=2000.0), *reports[1:]])
    [told] = command("runs --json").json["runs"]
    assert (told["fraction"], told["state"]) == (0.5, "running")
    assert told["step_seconds"] == pytest.approx(0.2, rel=1e-3)
    assert told["remaining_seconds"]["mid"] == pytest.approx(200, rel=0.05)


def test_measurements_of_bench_are_taken_in(command: Command, here: Path) -> None:
    machine = '{"kind":"machine","machine":"m1","facts":{"cpu":"x"}}'
    row = (
        '{"kind":"op","key":"k1","machine":"m1","question":{},"seconds":0.1,"low_seconds":0.1,"spread":0.0,'
        '"repeats":3,"peak_bytes":null,"failed":null,"details":{}}'
    )
    (here / "m.jsonl").write_text(f"{machine}\n{row}\n")
    assert command("store import m.jsonl --json").json["added"] == {"measurement": 1}
    assert "nothing" in command("store import m.jsonl").out


def test_vacuum_and_migrate_say_what_they_did(command: Command, here: Path) -> None:
    assert "made, version" in command("store migrate").out
    assert command("store migrate --json").json["before"] == command("store migrate --json").json["after"]
    assert command("store vacuum --delete-after 365d --json").json["runs_removed"] == 0


def test_doctor_tells_where_the_store_is(command: Command, here: Path) -> None:
    assert command("doctor --json").json["store"]["exists"] is False
    command("store migrate")
    found = command("doctor --json").json["store"]
    assert (found["database"], found["version"], found["problem"]) == (str(here / "store.db"), NEWEST, None)
    assert found["size_bytes"] > 0 and "store of runs:" in command("doctor").out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("track a.log b.log --run x", "--run names one run, but there are 2 logs"),
        ("runs nobody", "no run called 'nobody': there is no store yet"),
        ("runs --state done --database kept.db", "no state of a run called 'done'; known: ended"),
        ("runs --database mysql://h/d", "the database is SQLite (a path or sqlite:///PATH) or postgresql://…"),
        ("runs --database a.log", "a.log is not an SQLite database"),
        ("store export x.jsonl", "there is no store yet at"),
        ("store import none.jsonl", "there is no file none.jsonl"),
        ("store import a.log", "line 1 of a.log is not JSON"),
        ("store vacuum --whole soon", "'soon' is not a time"),
        ("store migrate --database postgresql://nobody@127.0.0.1:1/x", "cannot be reached"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command: Command, here: Path, line: str, message: str) -> None:
    write_log(here / "a.log", 1000)
    write_log(here / "b.log", 1000)
    open_store("kept.db").close()
    ran = command(line)
    assert (ran.code, ran.out) == (2, "") and message in ran.err and len(ran.err.splitlines()) == 1


def test_a_locked_store_is_one_line_and_exit_code_2(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochcast.observe.store.store_opening.WAIT_SECONDS", 0.05)
    write_log(here / "a.log", 1000)
    command("store migrate")
    other = sqlite3.connect(here / "store.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    ran = command(f"track a.log --run one {REGEX}")
    other.close()
    assert (ran.code, ran.out) == (2, "") and "is locked by another program" in ran.err


def test_what_names_no_file_state_or_command_is_one_line(command: Command, tmp_path: Path) -> None:
    for words, told in (
        ("store", "epochcast store needs one of migrate, export, import, vacuum"),
        (f"runs --state foo --database {tmp_path / 'none.db'}", "no state of a run called 'foo'"),
        (f"store import {tmp_path}", "is a folder; name a file"),
    ):
        ran = command(words)
        assert ran.code == 2 and told in ran.err and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "line",
    [
        "runs",
        "store vacuum",
        "store export x.jsonl",
        "schedule cancel q a",
        "schedule submit q jobs.toml",
        "schedule run jobs.toml",
        "serve token list",
    ],
)
def test_a_missing_database_library_is_one_line(line: str, tmp_path: Path) -> None:
    """In a process of its own, where nothing was imported before."""
    code = (
        "import sys; sys.modules['sqlalchemy'] = None; from epochcast.surfaces.cli.command_line import run; "
        "sys.exit(run(sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *line.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.startswith("epochcast: this needs sqlalchemy; in the checkout of epochcast type: pip install")
