from statistics import mean

import pytest

from epochcast.errors import BadInput
from epochcast.schedule.cluster_traces import from_trace
from epochcast.schedule.generators import poisson, talk
from epochcast.schedule.workload_jobs import Fleet, GpuChoice

from .conftest import FOUR, ONE, TWO

FLEET = Fleet(2, (ONE, TWO, FOUR))
ROW = {"submit_seconds": 100, "duration_seconds": 60.0, "gpus": 1.0}


def test_the_talks_rules_are_kept() -> None:
    workload = talk(20, "high", 3)
    assert len(workload.jobs) == 200
    for job in workload.jobs:
        assert 1 <= (job.deadline_seconds - job.submit_seconds) / job.fastest_seconds <= 3
        assert 0.003 <= job.tardiness_dollars_per_second <= 0.015
        assert 6 * 3600 <= job.seconds[GpuChoice("K80", 1)].mid <= 240 * 3600
    gaps = [b.submit_seconds - a.submit_seconds for a, b in zip(workload.jobs, workload.jobs[1:], strict=False)]
    assert mean(gaps) == pytest.approx(6500, rel=0.25)


def test_the_same_seed_draws_the_same_jobs() -> None:
    assert talk(2, "mixed", 1) == talk(2, "mixed", 1) != talk(2, "mixed", 2)


@pytest.mark.parametrize(("gaps", "jobs", "words"), [([], 5, "seconds above 0"), ([10.0], 0, "at least one job")])
def test_arrivals_that_make_no_sense_are_refused(gaps: list[float], jobs: int, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        poisson(FLEET, jobs, gaps, 0)


def test_an_unknown_load_names_the_known_ones() -> None:
    with pytest.raises(BadInput, match="no load called 'huge'; known: low, high, overload, mixed"):
        talk(2, "huge", 0)


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ({**ROW, "duration_seconds": None}, "row 2 of the trace has no duration_seconds"),
        ({"submit_seconds": 100, "gpus": 1}, "row 2 of the trace has no duration_seconds"),
        ({**ROW, "duration_seconds": 0}, "row 2 of the trace lasts 0 seconds; more than 0 are needed"),
        ({**ROW, "gpus": 8}, "row 2 of the trace needs 8 GPUs; the largest machine has 4"),
        ({**ROW, "submit_seconds": 50}, "row 2 of the trace is submitted before the first; sort it by submit_seconds"),
        ({**ROW, "gpus": "two"}, "gpus of row 2 of the trace is 'two'; a number is needed"),
    ],
)
def test_a_gap_in_a_trace_is_one_line_and_the_others_go_on(bad: dict[str, object], line: str) -> None:
    later = {**ROW, "submit_seconds": 300, "gpus": 0.4}
    whole, without = from_trace([ROW, ROW, later], FLEET, 0), from_trace([ROW, bad, later], FLEET, 0)
    assert without.refused == (line,)
    assert [job.id for job in without.workload.jobs] == ["t1", "t3"]
    assert without.workload.jobs[1] == whole.workload.jobs[2]
    assert without.workload.jobs[1].submit_seconds == 200
