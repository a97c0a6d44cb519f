"""The speed of a run in its log."""

from pathlib import Path

import pytest

from epochcast.errors import BadInput
from epochcast.observe.check.observed import read_observed
from epochcast.observe.check.observed_log import observed_reports
from epochcast.observe.runs.report import Report

BAR = "  5%|▌         | 50/1000 [32:30<10:17:30, 39.0s/it]"


def test_a_pasted_bar_is_an_observation() -> None:
    observation = read_observed(BAR)
    assert (observation.unit, observation.source, observation.signs.steps) == ("step", "log", 50)
    assert observation.seconds.mid == 39.0


# by hand: 100 s for 500 steps are 0.2 s, and the bar says 4 it/s
def test_a_bar_holds_its_mean_and_what_it_prints_last() -> None:
    seconds = read_observed("Epoch 1: 100%|██| 500/500 [01:40<00:00, 4.00it/s, loss=1.2]").seconds
    assert [seconds.low, seconds.mid, seconds.high] == pytest.approx([0.2, 0.25, 0.25], rel=0.01)


def lines(steps: int, seconds: float = 0.5, data: float = 0.3) -> str:
    return "\n".join(
        f"Epoch: [0][{n}/{steps}]\tTime {seconds:.3f} ({seconds:.3f})\tData {data:.3f} ({data:.3f})\tLoss 0.4 (0.4)"
        for n in range(steps)
    )


def test_a_log_says_what_waited_for_data(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines(40), encoding="utf-8")
    observation = read_observed(str(log))
    assert observation == read_observed(log)
    assert observation.seconds.mid == pytest.approx(0.5)
    assert observation.signs.data_fraction == pytest.approx(0.6)


def reports(paces: list[float]) -> list[Report]:
    clock, made = 0.0, []
    for step, pace in enumerate(paces):
        clock += pace
        made.append(Report(step=step + 1.0, clock_seconds=clock))
    return made


def test_start_up_and_pauses_are_no_steps() -> None:
    paces = [30.0, *([1.0] * 50), 61.0, *([1.0] * 48)]
    observation = observed_reports([Report(step=0.0, clock_seconds=0.0), *reports(paces)], "a run")
    assert observation.seconds.mid == pytest.approx(1.0)
    assert observation.signs.first_factor == pytest.approx(30.0)
    # by hand: 60 s of pause in 98 · 1 s + 61 s
    assert observation.signs.pause_fraction == pytest.approx(60 / 159, rel=0.05)


def test_more_scatter_makes_a_wider_interval() -> None:
    even = observed_reports(reports([1.0, 1.01] * 40), "even").seconds
    uneven = observed_reports(reports([0.5, 1.5] * 40), "uneven").seconds
    assert uneven.high - uneven.low > even.high - even.low


def test_the_slowest_rank_is_compared_with_the_median() -> None:
    ranks = [
        Report(step=float(step), clock_seconds=step * 1.0, rank=rank, step_seconds=1.5 if rank == 3 else 1.0)
        for step in range(10)
        for rank in range(4)
    ]
    assert observed_reports(ranks, "ranks").signs.rank_factor == pytest.approx(1.5)


# by hand: 1 s by the first rank's clock, 2.5 s of work of the other: that is what both wait for
def test_a_step_takes_as_long_as_its_slowest_rank() -> None:
    ranks = [
        Report(step=float(step), clock_seconds=step * 1.0, rank=rank, step_seconds=2.5 if rank else 1.0)
        for step in range(10)
        for rank in range(2)
    ]
    observation = observed_reports(ranks, "ranks")
    assert observation.seconds.mid == pytest.approx(2.5)
    assert observation.signs.rank_factor == pytest.approx(2.5)


def test_a_log_of_epochs_alone_counts_epochs() -> None:
    epochs = [Report(step=float(n), epoch=float(n), clock_seconds=120.0 * n) for n in range(1, 6)]
    observation = observed_reports(epochs, "epochs")
    assert observation.unit == "epoch"
    assert observation.seconds.mid == pytest.approx(120.0)


def test_a_log_without_times_is_refused() -> None:
    with pytest.raises(BadInput, match="has no times"):
        observed_reports([Report(step=float(n), loss=1.0) for n in range(5)], "train.log")


def test_text_that_is_nothing_is_refused_as_a_speed() -> None:
    with pytest.raises(BadInput, match="'hello' has no number"):
        read_observed("hello")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"no file 'train\.log'"):
        read_observed("train.log")
