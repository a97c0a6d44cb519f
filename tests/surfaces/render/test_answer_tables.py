"""Tables of answers made by hand or of a small network: every number is in its row."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.surfaces.render.test_table_parts import drawn

import epochcast as ec
from epochcast.interval import Interval
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.tracked_log import TrackedLog
from epochcast.observe.store.store_rows import Attempt, RunPlace, RunRow
from epochcast.predict.forecast.forecast import Forecast
from epochcast.surfaces.render import diff, forecast, memory, plan, run, runs, scaling, track
from epochcast.surfaces.render.diff_markdown import MARK, markdown
from epochcast.surfaces.render.forecast_table import choices

JOB = Forecast(
    "resnet50",
    "V100-SXM2-16GB",
    Interval(0.18, 0.2, 0.24),
    batch_per_gpu=64,
    samples=1_280_000,
    epochs=90,
    steps_per_epoch=20_000,
    epoch_seconds=Interval(3_600, 4_000, 4_800),
    total_seconds=Interval(324_000, 360_000, 432_000),
    peak_bytes=Interval(5 * 2.0**30, 6 * 2.0**30, 7 * 2.0**30),
    memory_bytes=16 * 2**30,
    memory_verdict="fits",
    dollars_per_hour=3.0,
    price_source="a list",
    answered_by={"learned": 0.75, "roofline": 0.25},
)
MNIST = ec.Job("mnist_cnn", batch=8, samples=60_000)


def row(lines: list[str], name: str) -> str:
    """The line of a table that begins with `name`."""
    return next(line for line in lines if line.strip(" │|").startswith(name))


def test_a_forecast_has_a_row_per_quantity() -> None:
    lines = drawn(forecast(JOB), 120)
    assert "resnet50 on V100-SXM2-16GB" in "\n".join(lines)
    for name, expected, low, high in [
        ("step", "200 ms", "180 ms", "240 ms"),
        ("job", "4 d 4 h", "3 d 18 h", "5 d 0 h"),
        ("memory", "6 GiB", "5 GiB", "7 GiB"),
        ("cost", "$300", "$270", "$360"),
    ]:
        assert all(number in row(lines, name) for number in (expected, low, high)), row(lines, name)
    assert "320 samples/s" in row(lines, "step")
    assert "20,000 steps" in row(lines, "epoch") and "90 epochs" in row(lines, "job")
    assert "learned model 75%, roofline model 25%" in "\n".join(lines)


def test_what_nobody_said_is_unknown_and_not_zero() -> None:
    lines = drawn(forecast(replace(JOB, total_seconds=None, epoch_seconds=None, dollars_per_hour=None)), 120)
    assert "unknown" in row(lines, "epoch, job") and "unknown" in row(lines, "cost")


def test_choices_are_a_row_each() -> None:
    lines = drawn(choices("devices", [JOB, replace(JOB, device="T4", gpus=4, total_seconds=None)]), 140)
    assert all(cell in row(lines, "V100-SXM2-16GB") for cell in ("64", "320", "4 d 4 h", "6 GiB", "$300"))
    assert "unknown" in row(lines, "4 × T4")


def test_the_parts_of_memory_are_shares_of_the_total() -> None:
    answer = ec.forecast(MNIST, device="V100")
    lines = drawn(memory(answer), 120)
    shares = [int(line.rpartition("%")[0].split()[-1]) for line in lines if "%" in line and "interval" not in line][1:]
    assert sum(shares) == pytest.approx(100, abs=len(shares))


def test_scaling_and_a_plan_have_a_row_per_case_and_offer() -> None:
    scaled = ec.scaling(MNIST, device="V100", gpus=[1, 2, 4])
    lines = drawn(scaling(scaled), 140)
    assert all(row(lines, str(gpus)) for gpus in (1, 2, 4))
    planned = ec.plan(MNIST, clouds=["aws"], devices=["V100"], gpus=[1, 4, 8])
    text = "\n".join(drawn(plan(planned, all_rows=True), 160))
    assert all(candidate.offer.instance.name in text for candidate in planned.frontier)


def test_a_comparison_is_a_table_and_a_comment() -> None:
    answer = ec.diff(MNIST, replace(MNIST, batch=16), device="V100")
    table, comment = "\n".join(drawn(diff(answer), 120)), markdown([answer])
    assert comment.startswith(MARK)
    assert "8 → 16" in table and "8 → 16" in comment


def test_a_run_of_the_store_is_a_row_and_a_page() -> None:
    stored = RunRow(
        key="k",
        state="running",
        id=1,
        name="vit-3",
        place=RunPlace("V100", gpus=4),
        added_at_seconds=0.0,
        seen_at_seconds=0.0,
        step=2_500.0,
        total_steps=10_000.0,
        step_seconds=0.25,
        forecast_step_seconds=0.2,
    )
    line = row(drawn(runs("a.db", [stored]), 160), "vit-3")
    assert all(cell in line for cell in ("4 × V100", "25.0%", "250 ms", "+25.0%", "running"))
    page = drawn(run(stored, [Attempt(1, 1, "failed"), Attempt(1, 2)], 1_234), 120)
    assert "2,500 of 10,000" in row(page, "step") and "1,234" in row(page, "reports kept")
    assert "failed" in row(page, "1") and "running" in row(page, "2")
    assert "--store" in drawn(runs("a.db", []), 120)[0]


def test_a_tracked_log_is_a_row() -> None:
    ends = datetime(2026, 11, 17, 9, 25, tzinfo=UTC)
    left = Interval(1_200.0, 1_500.0, 1_800.0)
    standing = Standing(2_500.0, 10_000.0, "the log", 0.2, left, 500.0, finish_at=ends)
    lines = drawn(track([TrackedLog("a/train.log", standing)]), 140)
    line = next(line for line in lines if "train.log" in line)
    assert all(cell in line for cell in ("25", "2,500", "10,000", "200 ms", "25 min", "20 min", "30 min", "09:25")), (
        line
    )
