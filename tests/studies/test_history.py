from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epochcast.measure.tables.run_table import read_runs
from studies.history import independent
from studies.history.curves import Point, curve_section, read_curves
from studies.history.forecasts import forecasts_of
from studies.history.lines import COLUMNS, RESULT, SOURCES, Line, Used, append_line, line_of, read_lines
from studies.history.page import PAGE, cases, pages
from studies.history.parts import Partial, parts_section, read_parts
from studies.history.talk import ALL, Cell, read_talk, talk_section


def line(model: str, mape: float | None, split: str = "batch>60%") -> Line:
    return Line("ours", split, 100, model, 40, mape, mape, mape, 0.9)


def test_the_pages_are_those_of_the_result() -> None:
    lines, used = read_lines(RESULT, line_of), read_lines(SOURCES, Used.of)
    for path, text in pages(lines, used, read_curves(), read_parts(), read_talk()).items():
        assert text == path.read_text(encoding="utf-8"), path.name


def test_half_of_the_best_peer_is_asked_beyond_what_was_learned_from() -> None:
    (beyond,) = cases([line("grey_box", 0.11), line("net", 0.2), line("linear", 0.3), line("boosting", None)])
    (at_random,) = cases([line("grey_box", 0.11, "random"), line("net", 0.2, "random")])
    assert (beyond.peer.model, beyond.is_reached, at_random.is_reached) == ("net", False, True)


def test_a_miss_is_told_before_anything_else() -> None:
    told = pages([line("grey_box", 0.3), line("net", 0.2), line("forecast", 0.1)], [])[PAGE]
    assert "Half of the best peer** is missed on 1 of 1" in told and "Worse than the best peer** on 1 of 1" in told
    assert told.index("## What fails") < told.index("## The grey box against the best peer")


def test_a_source_that_is_not_run_is_told_with_the_reason() -> None:
    every = pages([], [Used("runs", "tiny", 3, 0, 0, 0, False, "3 of its 3 rows were timed")])
    assert "| runs | tiny | 3 | 0 | 0 | 0 | 3 of its 3 rows were timed |" in "".join(every.values())


def test_history_beats_the_forecast_from_where_it_stays_better() -> None:
    errors = {10: (0.1, 0.3), 20: (0.3, 0.3), 40: (0.2, 0.1)}
    points = [Point("ours", jobs, "grey_box", ours) for jobs, (ours, _) in errors.items()]
    points += [Point("ours", jobs, "boosting", theirs) for jobs, (_, theirs) in errors.items()]
    points += [Point("ours", jobs, "forecast", 0.25) for jobs in errors]
    assert "| ours | 40 | 40 |" in curve_section(points)


def test_parts_are_told_with_mean_and_median() -> None:
    told = parts_section([Partial("first steps", 7, "grey_box", 0.1, 0.05, 0.2)])
    assert "| first steps | 7 | – | – | 10.0 % (5.0 %) |" in told


def test_the_table_of_the_talk_counts_what_is_reached() -> None:
    errors = {"grey_box": 0.04, "forecast": 0.2, "stepwise": 0.3, "boosting": 0.1}
    cells = [
        Cell("ours", "batch", network, device, gpus, 7, model, mape, mape, None)
        for model, mape in errors.items()
        for network, device, gpus in (("resnet50", "V100", 4), (ALL, "", 0))
    ]
    told = talk_section(cells)
    assert "batch 1 of 1 (5 %)" in told and "half of the best peer's mean error: 1 of 1" in told
    assert "| batch | ours | 7 | 4.0 % (4.0 %) |" in told


def test_lines_are_read_as_they_were_written_and_half_a_line_is_none(tmp_path: Path) -> None:
    file = tmp_path / "result.csv"
    for one in (line("net", 0.25), line("linear", None)):
        append_line(file, COLUMNS, one)
    with file.open("a", encoding="utf-8") as stream:
        stream.write("ours,random,100")
    assert read_lines(file, line_of) == [line("net", 0.25), line("linear", None)]


def test_forecasts_that_are_kept_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"source": "ours", "model": "alexnet", "device": "V100", "batch_per_gpu": batch, "step_seconds": 0.1}
        for batch in (8, 8, 16)
    ]
    rows.append({**rows[0], "model": "nobody"})
    file = tmp_path / "ours.csv"
    first = forecasts_of(rows, file)
    monkeypatch.setattr("studies.history.forecasts.forecast_runs", None)
    again = forecasts_of(rows, file)
    assert [one.key for one in again] == [one.key for one in first] and first[0].key == first[1].key
    assert again[2].seconds == pytest.approx(first[2].seconds) and again[2].exposed_comm == 0
    assert np.isnan(again[3].seconds) and again[3].reason


def test_left_out_seconds_are_those_of_the_same_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two measurements of a job, predicted / measured 1.2 and 0.6 of 1 s and 2 s: 1.2 s, on one GPU and on two."""
    row = {"source": "ours", "model": "alexnet", "device": "V100", "batch_per_gpu": 8}
    rows = [{**row, "step_seconds": 1.0}, {**row, "step_seconds": 2.0}, {**row, "gpus": 2, "step_seconds": 3.0}]
    rows.append({**row, "batch_per_gpu": 16, "step_seconds": 3.0})
    (run,) = read_runs(rows[:1])[0]
    monkeypatch.setattr(independent, "_left_out", lambda _: {independent._key(run): [1.2, 0.6]})
    found = independent.computed_of("ours", rows, rows)
    assert found[:3] == pytest.approx([1.2, 1.2, 1.2]) and np.isnan(found[3])
