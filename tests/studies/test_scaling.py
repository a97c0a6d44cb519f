from pathlib import Path

import pytest

from epochcast.predict.cost.cost_models import find_cost_model
from studies.scaling import fit, nothing, repeats, run
from studies.scaling.rows import log_errors, scaling_rows


def test_what_was_left_out_is_scored_for_every_source() -> None:
    assert [line[0] for line in run._left_out()] == ["nvidia_dle", "tf_benchmarks_2017", "pollux_osdi21"]
    assert all(float(line[2]) < 0.15 for line in run._left_out())


def test_a_measured_all_reduce_has_the_wires_its_table_describes() -> None:
    row = {"interconnect": "10-GPU node, PCIe3 single root", "device": "GTX 1080 Ti", "nodes": 2, "ranks": 16}
    group = run.collective_group(row)
    assert (group.ranks_per_node, group.inner.name, group.outer.name) == (8, "pcie3_switch", "infiniband_fdr")


def test_a_step_that_was_measured_again_is_held_against_the_others() -> None:
    """1 + 2 and 2 + 1 are the same job: 1.0 s beside 1.25, and 1.25 beside 1.0."""
    row = {"source": "pollux_osdi21", "model": "a", "batch_per_gpu": 8, "grad_accum": 1, "nodes": 2}
    table = [{**row, "placement": placed, "step_seconds": s} for placed, s in (("12", 1.0), ("21", 1.25), ("3", 9.0))]
    assert repeats.repeat_errors(table) == {"a": [0.25, pytest.approx(0.2)]}


@pytest.mark.needs_data
def test_rows_are_asked_from_nothing(data: Path) -> None:
    (source,) = nothing.from_nothing(data, find_cost_model("analytic"), ["tf_benchmarks_2017"], most=1)
    assert len(source.asked) == 1
    assert source.asked[0].roofline_seconds > 0
    assert source.rows > 100


@pytest.mark.needs_data
def test_ours_beats_the_peers_on_one_cluster(data: Path) -> None:
    rows = scaling_rows(data, find_cost_model("analytic"), sources=("tf_benchmarks_2017",))
    assert len(rows) > 100
    peers = [run.mape(rows, forecast) for _, forecast in run.PEERS]
    assert peers[0] == min(peers) < 0.06


@pytest.mark.needs_data
def test_the_shipped_constants_are_near_the_best(data: Path) -> None:
    """On one cluster alone a search that begins with round guesses hardly does better than what is shipped."""
    rows = scaling_rows(data, find_cost_model("analytic"), sources=("tf_benchmarks_2017",))
    shipped = log_errors(rows, [row.seconds() for row in rows]).mean()
    guessed = log_errors(rows, fit.forecasts(rows, dict.fromkeys(fit.GUESSES, 0.0))).mean()
    assert shipped < guessed + 0.01
