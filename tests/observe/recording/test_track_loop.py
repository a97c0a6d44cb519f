"""`ec.track` around real loops."""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.logs.log_reader import read_log
from epochcast.observe.runs.report import Report
from epochcast.observe.runs.tracker import Tracker


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def steps(path: Path) -> int:
    """Steps that all rows together stand for."""
    return sum(line["steps"] for line in lines(path) if line.get("ec") == "train")


def test_a_loop_gives_its_batches_as_they_are_and_counts_them(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = ec.track([3, 1, 2], job="mine", epochs=2, to=path)
    assert [batch for _ in range(2) for batch in run] == [3, 1, 2, 3, 1, 2]
    found = lines(path)
    assert found[0]["job"] == "mine" and (found[0]["total_steps"], found[0]["steps_per_epoch"]) == (6, 3)
    assert (found[-1]["ec"], found[-1]["step"], steps(path)) == ("end", 6, 6)


def test_the_length_of_an_epoch_is_learned_where_the_batches_have_none(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    class Endless:
        def __iter__(self) -> Iterator[int]:
            return iter(range(4))

    run = ec.track(Endless(), epochs=2, to=path)
    for _ in range(2):
        list(run)
    heads = [line for line in lines(path) if "epochcast_track" in line]
    assert [head.get("steps_per_epoch") for head in heads][-1] == 4


def test_epochcast_recognises_its_own_recordings(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ec.track(job="mine", total=100, epochs=2, to=path) as run:
        for step in range(60):
            run.step(loss=1 / (step + 1))
            run.settle()
        with run.pause("validation"):
            pass
        with run.pause("lunch"):
            pass
    log = read_log(path)
    assert log.recognition.name == "epochcast" and log.recognition.confidence > 0.9
    phases = [seen.phase for seen in log.reports]
    assert phases[-5:] == ["validation", "validation", "pause", "pause", "end"]
    last = [seen for seen in log.reports if seen.phase == "train"][-1]
    assert (last.step, last.total_steps, last.steps_per_epoch, last.epoch) == (60, 100, 50, 1.2)
    assert log.started_at_seconds == pytest.approx(lines(path)[0]["at"], abs=1)
    assert Tracker().add_all(log.reports).standing().total_steps == 100


def test_what_a_row_says_is_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    rows: list[Report] = []

    class Keep:
        name = "a list"

        def send(self, start: Any, sent: Any) -> int:
            rows.extend(seen for row in sent if (seen := row.report(start)) is not None)
            return len(sent)

    with ec.track(total=5, to=[path, Keep()]) as run:
        run.step(data_seconds=0.0)
        with run.pause("checkpoint"):
            run.step(4, loss=2.0)
    read = read_log(path).reports
    assert [(seen.step, seen.phase, seen.loss) for seen in rows] == [
        (seen.step, seen.phase, seen.loss) for seen in read
    ]
    assert [seen.clock_seconds for seen in rows] == pytest.approx([seen.clock_seconds for seen in read], abs=1e-4)
    assert [seen.step_seconds for seen in rows] == pytest.approx([seen.step_seconds for seen in read])


def test_a_later_attempt_goes_on_from_its_step_and_is_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for begin, end in ((0, 30), (20, 50)):
        run = ec.track(total=50, start=begin, to=path)
        for _ in range(begin, end):
            run.step()
            run.settle()
        run.close("" if end == 50 else "killed")
    found = read_log(path).reports
    assert {seen.attempt for seen in found} == {0, 1}
    tracker = Tracker().add_all(found)
    assert (tracker.history.restarts, tracker.history.step, tracker.history.replayed_steps) == (1, 50, 9)


def test_an_attempt_that_goes_on_ahead_of_the_last_report_is_an_attempt_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for begin in (0, 10):
        run = ec.track(total=20, start=begin, to=path)
        for _ in range(10):
            run.step()
            run.settle()
        run.close("killed")
    assert Tracker().add_all(read_log(path).reports).history.restarts == 1


def test_a_training_from_its_beginning_does_not_follow_one_that_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for _ in range(3):
        with ec.track(total=1, to=path) as run:
            run.step()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.1.jsonl", "run.2.jsonl", "run.jsonl"]
    assert all(len(lines(file)) == 3 for file in tmp_path.iterdir())


@pytest.mark.parametrize("ending", ["epoch", "close", "begin", "settle"])
def test_the_last_step_is_recorded_where_no_row_is_due(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that hardly moves: rows between the first and the end of something are not due."""
    ticks = count()
    monkeypatch.setattr("epochcast.observe.recording.recorded_run.perf_counter", lambda: 1e-6 * next(ticks))
    path = tmp_path / "run.jsonl"
    run = ec.track(total=30, to=path)
    for _ in range(15):
        run.step()
    getattr(run, ending)()
    run.close()
    trained = [line["step"] for line in lines(path) if line.get("ec") == "train"]
    assert trained == [1, 15] and (lines(path)[-1]["ec"], lines(path)[-1]["step"]) == ("end", 15)


def test_every_batch_of_a_quick_loop_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr("epochcast.observe.recording.recorded_run.perf_counter", lambda: 1e-6 * next(ticks))
    path = tmp_path / "run.jsonl"
    for _ in ec.track(range(15), to=path):
        pass
    assert steps(path) == 15 and (lines(path)[-1]["ec"], lines(path)[-1]["step"]) == ("end", 15)


def test_leaving_a_loop_early_keeps_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run = ec.track(range(10), to=path)
    for batch in run:
        if batch == 4:
            break
    run.close("left")
    assert steps(path) == 4 and lines(path)[-1]["what"] == "left"


def test_an_error_in_the_training_is_written_down_and_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(ZeroDivisionError), ec.track(total=10, to=path) as run:
        run.step()
        raise ZeroDivisionError
    assert (lines(path)[-1]["ec"], lines(path)[-1]["what"]) == ("stopped", "ZeroDivisionError")


def test_pauses_within_a_pause_are_parts_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ec.track(total=2, to=path) as run:
        run.step()
        with run.pause("validation"), run.pause("checkpoint"):
            pass
        run.step()
    kinds = [(line["ec"], line.get("what")) for line in lines(path)[1:]]
    assert kinds == [
        ("train", None),
        ("begin", "validation"),
        ("done", "validation"),
        ("train", None),
        ("end", None),
    ]


def test_pauses_are_no_part_of_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ec.track(total=2, to=path) as run:
        run.step()
        with run.pause():
            before = run._row_at
        run.step()
    last = next(line for line in reversed(lines(path)) if line["ec"] == "train")
    done = next(line for line in lines(path) if line.get("ec") == "done")
    assert run._row_at > before
    assert last["at"] - done["at"] == pytest.approx(last["step_seconds"], abs=1e-4)


@pytest.mark.parametrize("loss", [1, 0.5, "no number", float("nan"), [1, 2], None, object()])
def test_any_loss_is_borne(tmp_path: Path, loss: object) -> None:
    path = tmp_path / "run.jsonl"
    with ec.track(total=1, to=path) as run:
        run.step(loss=loss)
    assert read_log(path).reports[0].step == 1


def test_a_tensor_is_a_loss_and_its_graph_is_not_kept(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(1, requires_grad=True)
    with ec.track(total=1, to=tmp_path / "run.jsonl") as run:
        run.step(loss=(3 * weight).sum())
    assert lines(tmp_path / "run.jsonl")[1]["loss"] == 3.0


def test_other_ranks_are_silent_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with ec.track(total=1, to=path) as run:
        run.step()
    assert run.steps == 1 and not list(tmp_path.iterdir())
    with ec.track(total=1, to=path, rank=3) as run:
        run.step()
    (own,) = tmp_path.iterdir()
    assert own.name == "run.rank3.jsonl"
    assert [seen.rank for seen in read_log(own).reports] == [3, 3]


def test_destinations_can_come_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ec.track(total=1, job="a/b c") as run:
        run.step()
    assert [file.name for file in tmp_path.iterdir()] == ["a_b_c.track.jsonl"]
    monkeypatch.setenv("EPOCHCAST_TRACK", f"{tmp_path / 'one.jsonl'}, {tmp_path / 'two.jsonl'}")
    with ec.track(total=1) as run:
        run.step()
    assert lines(tmp_path / "one.jsonl")[1:] == lines(tmp_path / "two.jsonl")[1:]
    monkeypatch.setenv("EPOCHCAST_TRACK", "off")
    with ec.track(total=1) as run:
        run.step()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total": -1}, "`total` must be a number above 0, got -1"),
        ({"total": 0}, "`total` must be a number above 0, got 0"),
        ({"total": "ten"}, "`total` must be a number above 0, got 'ten'"),
        ({"total": float("inf")}, "`total` must be a number above 0, got inf"),
        ({"epochs": -2}, "`epochs` must be a number above 0, got -2"),
        ({"batches": [1, 2], "epochs": "two"}, "`epochs` must be a number above 0, got 'two'"),
        ({"start": -1}, "`start` must be at least 0, got -1"),
        ({"start": "one"}, "`start` must be at least 0, got 'one'"),
        ({"to": ""}, "`to` must be a file, got the folder ."),
        ({"to": "ftp://there"}, "the database is SQLite (a path or sqlite:///PATH) or postgresql://…, got ftp://…"),
        ({"job": " "}, "`job` must be a name, got an empty one"),
        ({"to": 5}, "`to` must be a path, a URL or a sink, got int"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_training(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        ec.track(**{"to": os.devnull, **options})  # never opened
    assert message in str(caught.value)


def test_a_file_of_somebody_else_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("print('hello')\n", encoding="utf-8")
    with pytest.raises(BadInput, match="is not a recording of epochcast"):
        ec.track(total=1, to=path)
    assert path.read_text(encoding="utf-8") == "print('hello')\n"


def test_a_run_that_is_over_is_not_iterated_again(tmp_path: Path) -> None:
    run = ec.track(range(2), to=tmp_path / "run.jsonl")
    list(run)
    with pytest.raises(BadInput, match="this run is over"):
        list(run)
