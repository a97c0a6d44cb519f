from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.surfaces import charts

MEASURED, PREDICTED = [0.01, 0.1, 1.0], [0.012, 0.09, 1.5]


def scatter(groups: list[str] | None = None) -> object:
    return charts.predicted_against_measured(MEASURED, PREDICTED, groups or ["a", "a", "b"], "three rows")


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("html", b"<!DOCTYPE html>")])
def test_the_ending_decides_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    charts.save_chart(scatter(), tmp_path / f"chart.{ending}")
    assert (tmp_path / f"chart.{ending}").read_bytes().lstrip().startswith(start)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_page_needs_no_network(tmp_path: Path) -> None:
    charts.save_chart(scatter(), tmp_path / "chart.html")
    text = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert "<script src=" not in text
    assert len(text) > 100_000  # the scripts are inside


def test_the_picture_names_its_axes_and_groups(tmp_path: Path) -> None:
    charts.save_chart(scatter(), tmp_path / "chart.svg")
    text = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    for words in ("measured, seconds", "predicted, seconds", "three rows", ">a<", ">b<"):
        assert words in text


def test_small_groups_share_a_colour() -> None:
    names = [f"family {i}" for i in range(12)]
    chart = charts.predicted_against_measured([1.0] * 13, [1.0] * 13, [*names, "family 0"], "many")
    assert charts.OTHERS in chart.to_json()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("chart.jpg", "cannot draw chart.jpg; known endings: .png, .svg, .html"),
        ("no/where/chart.png", "no folder "),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        charts.check_chart_path(tmp_path / name)
    assert str(caught.value).startswith(message)


def test_nothing_to_draw_says_so() -> None:
    with pytest.raises(BadInput, match="nothing to draw"):
        charts.predicted_against_measured([], [], [], "empty")


def _values(chart: Any) -> list[dict[str, Any]]:
    """Every row that a chart draws."""
    import json

    def inside(node: Any) -> Iterator[dict[str, Any]]:
        if isinstance(node, dict):
            data = node.get("data", {})
            yield from data.get("values", []) if isinstance(data, dict) else []
            for value in node.values():
                yield from inside(value)
        elif isinstance(node, list):
            for value in node:
                yield from inside(value)

    return list(inside(json.loads(chart.to_json())))


@pytest.mark.parametrize("gpus", [1, 4])
def test_the_highest_point_of_memory_is_the_peak_of_the_text(gpus: int) -> None:
    answer = ec.forecast("resnet18", device="V100", batch=16, gpus=gpus)
    assert answer.peak_bytes is not None
    rows = _values(charts.memory_timeline(answer))
    totals: dict[int, float] = {}
    for row in rows:
        if "op" in row:
            totals[row["op"]] = totals.get(row["op"], 0.0) + row["GiB"]
    assert max(totals.values()) * 2**30 == pytest.approx(answer.peak_bytes.mid, rel=1e-6)
    layers = [row for row in rows if "layer" in row]
    beside = ("context", "communication", "fragmentation")
    tensors = answer.peak_bytes.mid - sum(answer.peak_breakdown.get(name, 0) for name in beside)
    assert sum(row["GiB"] for row in layers) * 2**30 == pytest.approx(tensors, rel=1e-6)
    ends, *_ = [row for row in rows if "expected" in row]
    assert ends["high"] * 2**30 == pytest.approx(answer.peak_bytes.high)


def test_scaling_has_bars_for_its_intervals() -> None:
    answer = ec.scaling("mnist_cnn", device="V100", gpus=[1, 2], batch=8, samples=10_000)
    drawn = {(row["low"], row["high"]) for row in _values(charts.scaling(answer)) if "low" in row}
    for row in answer.rows:
        step, total = row.forecast.step_seconds, row.forecast.total_seconds
        assert total is not None
        assert (step.low, step.high) in drawn
        assert (total.low / 3600, total.high / 3600) in drawn


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_chart_is_readable_as_the_mask_says(mask: int, mode: int, tmp_path: Path) -> None:
    import os

    before = os.umask(mask)
    try:
        charts.save_chart(scatter(), tmp_path / "chart.svg")
    finally:
        os.umask(before)
    assert (tmp_path / "chart.svg").stat().st_mode & 0o777 == mode


def test_no_two_jobs_are_drawn_on_one_gpu() -> None:
    from epochcast.schedule.generators import talk
    from epochcast.schedule.policies.policy_table import policy_named
    from epochcast.schedule.simulator import simulate

    workload = talk(3, "overload", 1)
    outcome = simulate(workload, policy_named("greedy"))
    drawn = charts.gantt(outcome, {job.id: job.deadline_seconds for job in workload.jobs}, "g").to_dict()
    rows = sorted(drawn["data"]["values"], key=lambda row: (row["place"], row["from"]))
    assert len({row["place"] for row in rows}) <= 3 * 4
    for one, after in pairwise(rows):
        assert one["place"] != after["place"] or one["to"] <= after["from"]
