import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest

from .conftest import Command

JOB = '[[job]]\nname = "mine"\nmodel = "resnet18"\ndevice = "V100"\nbatch = 32\n'


def write_log(path: Path, steps: int, total: int = 2000, start: int = 0) -> Path:
    """A log as Caffe writes it: 0.5 s per step, a report every 20."""
    lines = [f"I0118 10:00:00.000000  3141 solver.cpp:48] max_iter: {total}"] if not start else []
    for step in range(start, steps + 1, 20):
        minutes, seconds = divmod(step // 2, 60)
        clock = f"{10 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}.500000"
        lines.append(f"I0118 {clock}  3141 solver.cpp:237] Iteration {step}, loss = 3.5")
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def test_json_has_the_contract(command: Command, tmp_path: Path) -> None:
    body = command(f"track {write_log(tmp_path / 'a.log', 1000)} --total 2000 --json").json
    assert body["format"] == "caffe"
    assert (body["step"], body["total_steps"], body["fraction"]) == (1000, 2000, 0.5)
    assert body["step_seconds"] == pytest.approx(0.5, rel=0.01)
    left = body["remaining_seconds"]
    assert left["mid"] == pytest.approx(500, rel=0.01)
    assert left["low"] < left["mid"] < left["high"] and left["coverage"] == 0.9
    assert datetime.fromisoformat(body["finish_at"]).tzinfo is not None
    assert body["dollars_so_far"] is None and body["drift"] is None and body["job"] is None


def test_what_was_passed_over_of_a_dense_log_is_said(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochcast.observe.logs.line_allowance.FIRST_BYTES", 100_000)
    monkeypatch.setattr("epochcast.observe.logs.line_sampling.EXACT_REPORTS", 100)
    log = tmp_path / "dense.log"
    log.write_text("".join(f"Epoch {n + 1}/90000\n{7 + n % 2}s - loss: 1.2 - acc: 0.6\n" for n in range(20_000)))
    assert command(f"track {log} --json").json["unread_fraction"] > 0.5
    assert "of the log was sampled" in command(f"track {log}").out
    assert command(f"track {write_log(tmp_path / 'a.log', 1000)} --total 2000 --json").json["unread_fraction"] == 0


def test_steps_that_took_no_time_are_no_pace(command: Command, tmp_path: Path) -> None:
    """Seconds stand only where an epoch ends, and the run that goes on has just begun anew."""
    start, batch = "Namespace(batch_size=32, num_epochs=14, lr=0.1)\n", "\tSpeed: 849.9 samples/sec\tloss=0.1\tlr=0.1\n"
    rows = [f"Epoch[{e}] Batch [{n}]{batch}" for e in (0, 1) for n in (49, 99)]
    log = tmp_path / "again.log"
    log.write_text(start + rows[1] + "Epoch[0]\t\tSpeed: 1296 samples/sec over 115 secs\n" + start + "".join(rows))
    ran = command(f"track {log} --json")
    assert ran.code == 2 or ran.json["remaining_seconds"]["mid"] > 0


def test_the_table_says_format_and_remaining(command: Command, tmp_path: Path) -> None:
    ran = command(f"track {write_log(tmp_path / 'a.log', 1000)} --total 2000")
    assert ran.code == 0
    for words in ("a.log", "50.0%", "1,000/2,000", "500 ms", "8 min", "1 more note: --explain"):
        assert words in ran.out


def test_a_folder_is_one_sweep(command: Command, tmp_path: Path) -> None:
    write_log(tmp_path / "a.log", 1000)
    write_log(tmp_path / "b.log", 2000)
    ran = command(f"track {tmp_path} --total 2000 --json")
    first, second, whole = map(json.loads, ran.out.splitlines())
    assert (first["fraction"], second["fraction"]) == (0.5, 1.0)
    assert (whole["format"], whole["done"], whole["running"], whole["fraction"]) == ("sweep", 1, 1, 0.75)


def test_a_job_brings_price_forecast_and_moves(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "epochcast.toml").write_text(JOB, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "a.log", 1000)
    body = command("track a.log --total 2000 --job mine --what-if 4xV100 --restart 10min --json").json
    assert body["job"] == "mine"
    assert body["against_forecast"] > 1
    assert body["dollars_so_far"] > 0
    stay, move = body["moves"]
    assert stay["is_here"] and stay["remaining_seconds"] == body["remaining_seconds"]
    assert 600 < move["remaining_seconds"]["mid"] < 600 + 500
    assert (stay["pareto"], move["pareto"]) == (True, False)


def test_following_ends_with_the_last_step(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.surfaces.cli.track_command.POLL_SECONDS", 0.05)
    path = write_log(tmp_path / "a.log", 1000)

    def go_on() -> None:
        time.sleep(0.3)
        write_log(path, 2000, start=1020)

    command(f"track {path} --total 2000 --json")  # imports take as long as they take
    thread = threading.Thread(target=go_on)
    thread.start()
    ran = command(f"track {path} --total 2000 --follow --json")
    thread.join()
    fractions = [json.loads(line)["fraction"] for line in ran.out.splitlines()]
    assert ran.code == 0
    assert (sorted(fractions), fractions[-1]) == (fractions, 1.0)


def test_a_file_that_appears_in_a_folder_joins_in(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epochcast.surfaces.cli.track_command.POLL_SECONDS", 0.05)
    folder = tmp_path / "runs"
    folder.mkdir()

    def go_on() -> None:
        time.sleep(0.3)
        write_log(folder / "a.log", 1000)
        write_log(folder / "b.log", 2000)
        time.sleep(0.3)
        write_log(folder / "a.log", 2000, start=1020)

    thread = threading.Thread(target=go_on)
    thread.start()
    ran = command(f"track {folder} --total 2000 --follow --json")
    thread.join()
    last = [json.loads(line) for line in ran.out.splitlines()][-1]
    assert ran.code == 0
    assert (last["format"], last["trials"], last["done"], last["fraction"]) == ("sweep", 2, 2, 1.0)


def test_a_terminal_gets_a_live_display_that_an_interrupt_ends(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.log", 1000)
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "epochcast", "track", str(path), "--total", "2000", "--follow"]
    with subprocess.Popen(
        line, stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    ) as run:
        os.close(theirs)
        seen = b""
        while b"between" not in seen:
            seen += os.read(ours, 4096)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=30) == 0
    os.close(ours)
    assert "━" in seen.decode() and b"50.0%" in seen and b"left" in seen
    assert b"Traceback" not in seen


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("", "", "is empty"),
        ("nothing of the kind\n" * 20, "", "no line that reports training; looked for"),
        ("2021-12-13 21:20:29,007 - INFO - joeynmt.training - Epoch  21, Step:   147000, Batch Loss:     1.958961, "
         "Tokens per Sec:     6114, Lr: 0.000100\n", "", "give --total"),
        ("x", "--what-if 4xV100", "--what-if needs --job"),
        ("x", "--format kersa", "near: keras"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(command: Command, tmp_path: Path, text: str, options: str, words: str) -> None:
    path = tmp_path / "a.log"
    path.write_text(text, encoding="utf-8")
    ran = command(f"track {path} {options}")
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1 and ran.out == ""


def test_a_file_that_is_not_there(command: Command) -> None:
    ran = command("track nowhere.log")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "nowhere.log" in ran.err


def test_of_a_folder_files_without_training_are_left_out_and_named(command: Command, tmp_path: Path) -> None:
    write_log(tmp_path / "a.log", 1000)
    (tmp_path / "model.pt").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty.log").touch()
    ran = command(f"track {tmp_path} --total 2000 --json")
    assert ran.code == 0
    assert [json.loads(line)["fraction"] for line in ran.out.splitlines()] == [0.5, 0.5]
    assert "left out, no training is reported in: empty.log, model.pt" in ran.err
    (tmp_path / "a.log").unlink()
    ran = command(f"track {tmp_path}")
    assert ran.code == 2 and "no file reports training among the 2: empty.log, model.pt" in ran.err


def test_a_file_without_training_is_not_kept_in_the_store(command: Command, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    write_log(tmp_path / "runs" / "a.log", 1000)
    (tmp_path / "runs" / "notes.txt").write_text("not a log\n")
    database = tmp_path / "store.db"
    assert command(f"track {tmp_path / 'runs'} --total 2000 --store --database {database}").code == 0
    found = command(f"runs --database {database} --json").json["runs"]
    assert [Path(run["run"]).name for run in found] == ["a.log"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--total inf", "--total must be a number, got inf"),
        ("--regex (?P<step>hello)", "has no line that matches --regex '(?P<step>hello)'"),
        ("--run=", "--run is the name"),
        ("--job mine --what-if ,", "--what-if must name GPUs"),
    ],
)
def test_what_says_nothing_is_refused(command: Command, tmp_path: Path, options: str, words: str) -> None:
    ran = command(f"track {write_log(tmp_path / 'a.log', 1000)} {options}")
    assert ran.code == 2 and words in ran.err and ran.err.count("\n") == 1


def test_a_log_without_times_says_so_and_costs_nobody_knows_what(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.log").write_text("".join(f"step {step}/500 loss 0.3\n" for step in range(10, 200, 10)))
    ran = command("track a.log")
    assert ran.code == 2 and "the 19 reports of the log have no times" in ran.err
    Path("epochcast.toml").write_text(
        '[[job]]\nname = "mine"\nmodel = "resnet18"\nbatch = 8\nsamples = 4000\ndevice = "V100"\n'
        '[[job]]\nname = "nowhere"\nmodel = "resnet18"\nbatch = 8\nsamples = 4000\n'
    )
    body = command("track a.log --job mine --json").json
    assert body["dollars_so_far"] is None and body["dollars_in_all"] is None and body["remaining_seconds"]["mid"] > 0
    ran = command("track a.log --job nowhere")
    assert ran.code == 2 and "the job 'nowhere' names no device" in ran.err


def test_a_log_that_fell_silent_says_so(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", 1000)
    assert "nothing new since" not in command(f"track {log} --total 2000").out
    os.utime(log, (1_700_000_000, 1_700_000_000))
    assert "nothing new since" in command(f"track {log} --total 2000").out


def test_a_total_below_the_step_that_the_log_has_reached_is_refused(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.log", 1000)
    ran = command(f"track {log} --total 79")
    told = "--total 79: the log has already reached step 1000 of 2000; leave --total out"
    assert (ran.code, ran.out, ran.err) == (2, "", f"epochcast: {told}\n")
    assert command(f"track {log} --total 1000").code == 0
    followed = command(f"track {log} --total 79 --follow")
    assert (followed.code, followed.err) == (2, f"epochcast: {told}\n")


def test_the_table_fits_a_terminal_of_80_columns(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = command(f"track {write_log(tmp_path / 'long-name.log', 10_000, total=160_000)}")
    assert ran.code == 0 and "hidden to fit the terminal: a step" in ran.out
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []
