from pathlib import Path

import pytest
from studies.scaling import fit, run
from studies.scaling.rows import scaling_rows

from epochcast.cost.registry import find_cost_model


def test_what_was_left_out_is_scored_for_every_source() -> None:
    assert [line[0] for line in run._left_out()] == ["nvidia_dle", "tf_benchmarks_2017", "pollux_osdi21"]
    assert all(float(line[2]) < 0.12 for line in run._left_out())


def test_a_measured_all_reduce_has_the_wires_its_table_describes() -> None:
    row = {"interconnect": "10-GPU node, PCIe3 single root", "device": "GTX 1080 Ti", "nodes": 2, "ranks": 16}
    group = run.collective_group(row)
    assert (group.ranks_per_node, group.inner.name, group.outer.name) == (8, "pcie3_switch", "infiniband_fdr")


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
    shipped = fit.log_errors(rows, [row.seconds() for row in rows]).mean()
    guessed = fit.log_errors(rows, fit.forecasts(rows, dict.fromkeys(fit.GUESSES, 0.0))).mean()
    assert shipped < guessed + 0.01
