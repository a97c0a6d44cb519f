"""Collectives between real processes over gloo, and α and B from what they took."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.errors import BadInput, MissingExtra, UnknownName
from epochcast.hardware.cluster import Group
from epochcast.hardware.link import Link
from epochcast.measure.bench import campaign
from epochcast.measure.bench.bench_children import ChildFailed, Children
from epochcast.measure.bench.collectives_bench import (
    SIZES_BYTES,
    ends_first,
    measure,
    question_of,
    questions,
    reused_groups,
)
from epochcast.measure.bench.link_fit import link_fits
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import Appender, MeasuredMachine, Measurement, read
from epochcast.predict.comm.allreduce import all_reduce_seconds


def alive(process: int) -> bool:
    """Whether a process is there; one that was reaped is not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


# Measured for real: two processes.


def test_a_sweep_is_measured_and_fitted_and_nobody_stays(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from epochcast.measure.bench import collectives_bench as collectives

    asked = questions(2, (4096, 2**25), names=("all_reduce", "reduce_scatter"), limit_seconds=0.4)
    with Appender(tmp_path / "m.jsonl") as out, reused_groups():
        report = campaign.run(asked, out, machine("cpu", 1))
        assert collectives._reused is not None
        (group,) = collectives._reused.values()
        processes = group.processes
        assert len(processes) == 2 and all(alive(process) for process in processes)
    assert not any(alive(process) for process in processes)
    assert report.measured == 4
    rows = read(tmp_path / "m.jsonl").of("collective")
    assert [row.failed for row in rows if row.question["collective"] == "all_reduce"] == [None, None]
    fits = {fit.collective: fit for fit in link_fits(rows)}
    assert fits["all_reduce"].bytes_per_second > 1e6


def test_a_group_that_cannot_be_is_a_row_that_says_why() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("nccl is there")
    asked = question_of("all_reduce", 2, 4096)
    row = measure(replace(asked, ask={**asked.ask, "backend": "nccl"}))
    assert row.failed is not None and "nccl" in row.failed


# Children.


def test_children_end_with_their_input_and_are_reaped() -> None:
    with Children("epochcast.measure.bench.collective_rank", [{"RANK": "0"}, {"RANK": "1"}]) as children:
        processes = children.processes
    assert not any(alive(process) for process in processes)


def test_a_child_that_dies_tells_its_last_line() -> None:
    with (
        Children("epochcast.measure.bench.no_such_module", [{}]) as children,
        pytest.raises(ChildFailed, match=r"a child process ended: .*no_such_module"),
    ):
        children.ask({"do": "join"}, 60)


# The fit, on made-up measurements.


def row(name: str, ranks: int, size_bytes: int, seconds: float) -> Measurement:
    asked = question_of(name, ranks, size_bytes)
    return Measurement(asked.kind, asked.key, MeasuredMachine("m"), asked.ask, seconds, low_seconds=seconds)


@given(
    latency=st.floats(1e-7, 1e-2),
    rate=st.floats(1e7, 1e12),
    ranks=st.integers(2, 64),
    name=st.sampled_from(["all_reduce", "all_gather", "reduce_scatter"]),
)
def test_a_ring_that_follows_the_formula_is_found_again(latency: float, rate: float, ranks: int, name: str) -> None:
    group = Group(1, ranks, Link(latency, rate), Link(latency, rate))
    part = 1.0 if name == "all_reduce" else 0.5
    rows = [row(name, ranks, n, part * all_reduce_seconds(n, group, "ring")) for n in SIZES_BYTES]
    (fit,) = link_fits(rows)
    assert fit.error_fraction < 1e-6
    sent = [group.inner.seconds(n / ranks) for n in SIZES_BYTES]
    assert [fit.link().seconds(n / ranks) for n in SIZES_BYTES] == pytest.approx(sent, rel=1e-6)


def test_two_sizes_by_hand() -> None:
    """Two ranks: T = 2(α + n/2B). 1 kB in 2.1 ms and 1 MB in 102 ms: α = 1 ms, B = 10 MB/s."""
    (fit,) = link_fits([row("all_reduce", 2, 10**3, 2.1e-3), row("all_reduce", 2, 10**6, 0.102)])
    assert fit.latency_seconds == pytest.approx(1e-3)
    assert fit.bytes_per_second == pytest.approx(1e7)


def test_latency_is_never_negative() -> None:
    (fit,) = link_fits([row("all_reduce", 2, 10**3, 1e-6), row("all_reduce", 2, 10**6, 0.1)])
    assert fit.latency_seconds == 0
    assert fit.error_fraction > 0.1


def test_one_size_or_no_growth_is_no_fit() -> None:
    assert link_fits([row("all_reduce", 2, 10**3, 1e-3)]) == []
    assert link_fits([row("all_reduce", 2, 10**3, 1e-3), row("all_reduce", 2, 10**6, 1e-6)]) == []


# What is asked.


@given(st.lists(st.integers(1, 10**9), unique=True, max_size=20).map(sorted))
def test_the_order_has_every_size_once_and_both_ends_first(sizes: list[int]) -> None:
    ordered = ends_first(sizes)
    assert sorted(ordered) == sizes
    assert set(ordered[:2]) == set(sizes[:1] + sizes[-1:])


def test_one_rank_has_nobody_to_talk_to() -> None:
    with pytest.raises(BadInput, match="at least 2 ranks, got 1"):
        questions(1)


def test_an_unknown_collective_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="known: all_gather, all_reduce, reduce_scatter"):
        questions(2, names=("gossip",))


def test_a_size_has_a_number_for_every_rank() -> None:
    with pytest.raises(BadInput, match="8 bytes are too few for 4 ranks"):
        questions(4, (8,))


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epochcast.measure.bench.collectives_bench.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[torch\]'"):
        questions(2)


def test_a_torch_without_distributed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from epochcast.measure.bench.collective_rank import handle

    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    with pytest.raises(BadInput, match=r"built without torch\.distributed"):
        handle({"do": "join"})
