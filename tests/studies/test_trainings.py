"""The trainings that were run, and how their files are cut."""

import csv
import json
from pathlib import Path

from studies.trainings import run
from studies.trainings.cases import TRAININGS, training


def test_at_least_thirty_trainings_of_every_framework_were_run() -> None:
    with run.RESULT.open(encoding="utf-8", newline="") as file:
        names = {row["training"] for row in csv.DictReader(file)}
    assert len(names) >= 30 and names <= {one.name for one in TRAININGS}
    assert {training(name).framework for name in names} == {"torch", "keras", "lightning", "transformers"}


def test_a_cut_holds_what_had_come_by_then(tmp_path: Path) -> None:
    head = {"epochcast_track": 1, "job": "x", "attempt": 1, "at": 100.0}
    rows = [head, *({"ec": "train", "step": step, "at": 100.0 + step} for step in range(1, 11))]
    lines = [json.dumps(row) + "\n" for row in rows]
    (tmp_path / "callback.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "log").write_bytes(b"x" * 50)
    (tmp_path / "arrivals").write_text("90.0 5\n103.0 20\n109.0 50\n", encoding="utf-8")
    kept = run.recorded(tmp_path)
    assert (kept.begin_seconds, kept.end_seconds, kept.attempts) == (100.0, 110.0, 1)
    assert [kept.cut(kept.arrivals, percent) for percent in (1, 25, 50)] == [5, 5, 20]
    assert kept.cut(kept.rows, 50) == sum(map(len, lines[:6]))


def test_a_name_tells_a_training_from_all_others() -> None:
    assert len({one.name for one in TRAININGS}) == len(TRAININGS)
