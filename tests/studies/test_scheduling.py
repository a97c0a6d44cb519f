import pytest

from epochcast.errors import BadInput
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType
from studies.scheduling.gavel_workload import gavel, measured_kinds
from studies.scheduling.run import BEGIN, END, PARTS, with_section

GAVEL_FLEET = Fleet(2, (NodeType("one", "V100", 1, 3.6), NodeType("two", "V100", 2, 7.2)))
FIRST, SECOND = (title for title, _ in list(PARTS.values())[:2])


def test_a_section_is_replaced_in_the_order_of_parts_and_what_is_of_no_part_is_dropped() -> None:
    page = f"before\n{BEGIN}### {SECOND}\n\nold\n\n### Of no part\n\nstale\n\n{END}\nafter\n"
    page = with_section(page, FIRST, "new\n")
    assert page == f"before\n{BEGIN}### {FIRST}\n\nnew\n\n### {SECOND}\n\nold\n\n{END}\nafter\n"
    assert with_section(page, SECOND, "newer") == page.replace("old", "newer")


def test_measured_speeds_give_the_runs_of_gavels_jobs() -> None:
    row = {"model": "m", "batch_per_gpu": 8.0, "device": "V100", "gpus": 1, "samples_per_second": 10.0}
    kinds = measured_kinds([row, {**row, "gpus": 2, "samples_per_second": 16.0}, {**row, "samples_per_second": None}])
    assert kinds == [{GpuChoice("V100", 1): 10.0, GpuChoice("V100", 2): 16.0}]
    for job in gavel(GAVEL_FLEET, kinds, 30, 600.0, 0).jobs:
        one, two = job.seconds[GpuChoice("V100", 1)].mid, job.seconds[GpuChoice("V100", 2)].mid
        assert one / two == pytest.approx(1.6)
        assert 60 * 10**1.5 <= one <= 60 * 10**4


def test_kinds_that_run_nowhere_are_refused() -> None:
    with pytest.raises(BadInput, match="no kind of job runs"):
        gavel(GAVEL_FLEET, [{GpuChoice("H100", 1): 1.0}], 3, 60.0, 0)
