"""`benchmarks.answers compare`, which proves that a change of the code moves no forecast."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers.asking import without_measured
from benchmarks.answers.comparing import compare, compare_files, renaming
from benchmarks.answers.questions import make_questions

ANSWER: dict[str, Any] = {
    "fits": True,
    "device": "V100",
    "dollars": None,
    "rows": [{"gpus": 1, "seconds": 2.0}, {"gpus": 2, "seconds": 1.25}],
    "warnings": ["data loading may limit this job"],
}


def changed(**values: Any) -> dict[str, Any]:
    return {**ANSWER, **values}


def test_an_answer_equals_itself() -> None:
    found = compare(ANSWER, json.loads(json.dumps(ANSWER)))
    assert found.is_equal and not found.added and not found.texts


def test_a_number_may_differ_by_rounding_and_no_more() -> None:
    assert compare({"a": 1.0}, {"a": 1.0 + 1e-10}).is_equal
    (moved,) = compare({"a": [0, 1.0]}, {"a": [0, 1.0 + 1e-8]}).moved
    assert moved.path == "a[1]" and moved.size == pytest.approx(1e-8, rel=1e-3)
    assert compare({"a": 0.0}, {"a": 1e-18}).is_equal
    assert not compare({"a": 0.0}, {"a": 1e-12}).is_equal


@pytest.mark.parametrize(
    "after",
    [
        changed(fits=False),
        changed(fits=1),
        changed(device="T4"),
        changed(dollars=0.0),
        changed(rows=ANSWER["rows"][:1]),
        changed(rows=[*ANSWER["rows"], {"gpus": 4, "seconds": 1.0}]),
        {key: value for key, value in ANSWER.items() if key != "dollars"},
        None,
    ],
)
def test_verdicts_names_lengths_and_lost_keys_count(after: Any) -> None:
    assert not compare(ANSWER, after).is_equal


def test_a_new_key_is_told_and_no_difference() -> None:
    found = compare(ANSWER, changed(spot={"low": 1.0}))
    assert found.is_equal and found.added == ["spot.low"]


def test_notes_may_be_reworded_dropped_and_added() -> None:
    reworded = compare(ANSWER, changed(warnings=["use 7 workers"]))
    assert reworded.is_equal and [text.path for text in reworded.texts] == ["warnings[0]"]
    assert compare(ANSWER, changed(warnings=[])).is_equal
    assert compare(changed(warnings=[]), ANSWER).is_equal


def test_renamed_keys_are_compared_under_their_new_names() -> None:
    before = {"dollars_low": 1.0, "rows": [{"a": 1}, {"a": 2}], "log": "x", "run": {"log": "y"}, "old": 3}
    after = {"dollars": {"low": 1.0}, "rows": [{"b": 1}, {"b": 2}], "path": "x", "run": {"log": "y"}}
    renamings = [
        renaming("dollars_low", "dollars.low"),
        renaming("rows[].a", "rows[].b"),
        renaming("$.log", "$.path"),
        renaming("old", ""),
    ]
    assert not compare(before, after).is_equal
    assert compare(before, after, renamings).is_equal
    (moved,) = compare(before, {**after, "dollars": {"low": 2.0}}, renamings).moved
    assert moved.path == "dollars.low"


def test_what_is_measured_while_it_is_answered_is_left_out() -> None:
    assert without_measured({"a": [{"decision_seconds_p99": 0.1, "b": 1}]}) == {"a": [{"b": 1}]}


def answers(path: Path, *rows: tuple[str, int, Any, str]) -> Path:
    keys = ("id", "exit_code", "answer", "message")
    written = [{**dict(zip(keys, row, strict=True)), "chapter": row[0].split()[0], "argv": [row[0]]} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in written), encoding="utf-8")
    return path


def test_the_exit_code_says_whether_something_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, refused = ("forecast 001", 0, {"seconds": 2.0}, ""), ("bad 001", 2, None, "no such model")
    before = answers(tmp_path / "before", first, refused)
    assert compare_files(before, before) == 0
    moved = answers(tmp_path / "moved", ("forecast 001", 0, {"seconds": 3.0}, ""), refused)
    assert compare_files(before, moved) == 1
    assert "forecast 001: seconds was 2.0, is 3.0 (0.33)" in capsys.readouterr().out
    assert compare_files(before, answers(tmp_path / "lost", refused)) == 1
    accepted = answers(tmp_path / "accepted", first, ("bad 001", 0, None, "no such model"))
    assert compare_files(before, accepted) == 1


def test_a_reworded_message_counts_where_asked(tmp_path: Path) -> None:
    before = answers(tmp_path / "before", ("bad 001", 2, None, "no such model"))
    after = answers(tmp_path / "after", ("bad 001", 2, None, "unknown model"))
    assert compare_files(before, after) == 0
    assert compare_files(before, after, texts=True) == 1


def test_renamings_are_read_by_chapter(tmp_path: Path) -> None:
    before = answers(tmp_path / "before", ("track 001", 0, {"log": 1.0}, ""), ("runs 001", 0, {"log": 1.0}, ""))
    after = answers(tmp_path / "after", ("track 001", 0, {"path": 1.0}, ""), ("runs 001", 0, {"log": 1.0}, ""))
    renamed = tmp_path / "renamed.toml"
    renamed.write_text('[track]\nlog = "path"\n', encoding="utf-8")
    assert compare_files(before, after) == 1
    assert compare_files(before, after, renamed) == 0


def test_hundreds_of_questions_each_with_an_id_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EPOCHCAST_DATA", raising=False)
    questions = [question for part in make_questions(tmp_path) for question in part]
    assert len(questions) > 400 and len({question.id for question in questions}) == len(questions)
    assert len({question.arguments for question in questions}) == len(questions)
