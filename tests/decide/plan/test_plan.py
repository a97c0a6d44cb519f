"""Whole plans of small networks."""

from datetime import date
from functools import cache
from typing import Any

import pytest
from tests.every import every

import epochcast as ec
from epochcast.api import find_model
from epochcast.decide.plan.candidate import TOO_LARGE, Candidate
from epochcast.decide.plan.plan_answer import Plan
from epochcast.decide.plan.plan_search import strategies_in
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.machines import find_instance
from epochcast.predict.forecast.strategies.strategy_table import STRATEGIES
from epochcast.surfaces import charts

READY: dict[str, Any] = {"boot_seconds": 0.0, "image_seconds": 0.0, "data_seconds": 0.0}
JOB: dict[str, Any] = {"samples": 50_000, "epochs": 10, "devices": ["T4", "V100"], "clouds": ["aws"], **READY}


@cache
def planned(**options: Any) -> Plan:
    return ec.plan(find_model("resnet18"), **{**JOB, **options})


def as_forecast(candidate: Candidate, **options: Any) -> Any:
    """The same way by `epochcast forecast`."""
    offer = candidate.offer
    return ec.forecast(
        find_model("resnet18"),
        device=offer.instance.device,
        batch=candidate.batch_per_gpu // options.get("accumulate", 1),
        samples=JOB["samples"],
        epochs=JOB["epochs"],
        gpus=offer.gpus,
        nodes=offer.nodes,
        strategy=candidate.strategy,
        topology=offer.instance.name if offer.instance.gpus > 1 else None,
        link=offer.instance.outer_link if offer.instance.gpus == 1 and offer.nodes > 1 else None,
        dollars_per_gpu_hour=offer.instance.dollars_per_gpu_hour,
        **options,
    )


def test_two_offers_by_hand() -> None:
    """One box of four T4s, and four boxes of one: it costs what the boxes cost for as long as it takes."""
    answer = ec.plan(
        "mnist_cnn", samples=60_000, epochs=5, batch=256, devices=["T4"], clouds=["azure"], gpus=(4,), nodes=(1, 4)
    )
    assert answer.considered == 2
    for found in answer.candidates:
        hourly = 4.352 if found.offer.nodes == 1 else 4 * 0.526
        assert find_instance(found.offer.instance.name).gpus * found.offer.nodes == 4
        assert found.dollars.mid == pytest.approx(hourly * found.total_seconds.mid / 3600)
        assert (found.batch_per_gpu, found.global_batch) == (64, 256)


def test_a_box_has_its_own_wires_whatever_else_was_asked_for() -> None:
    """Lambda's box of one H100 names NVLink, its box of four NVSwitch."""
    asked: dict[str, Any] = {
        "samples": 50_000,
        "nodes": (1,),
        "devices": ["H100-SXM5-80GB"],
        "clouds": ["lambda"],
        "batch": 256,
    }
    alone, beside = (
        [each for each in ec.plan("resnet18", gpus=gpus, **asked).candidates if each.offer.instance.gpus == 4]
        for gpus in ((4,), (1, 4))
    )
    assert beside == alone != []


def test_a_way_is_what_forecast_says_of_it() -> None:
    for candidate in planned(batch=256).candidates[::4]:
        answer = as_forecast(candidate)
        assert answer.total_seconds.as_dict() == pytest.approx(candidate.total_seconds.as_dict())
        assert answer.dollars.as_dict() == pytest.approx(candidate.dollars.as_dict())
        assert answer.fits


@pytest.mark.parametrize("strategy", ["horovod", "zero1", "zero3", "pipeline", "parameter_server:2"])
def test_so_it_is_by_any_strategy(strategy: str) -> None:
    found = planned(batch=512, strategies=(strategy,), gpus=(8,), accumulate=2, optimizer="adam").candidates
    for candidate in (found[0], found[-1]):
        answer = as_forecast(candidate, accumulate=2, optimizer="adam")
        assert answer.total_seconds.as_dict() == pytest.approx(candidate.total_seconds.as_dict())
        assert answer.global_batch == candidate.global_batch == 512


@every("strategy", STRATEGIES)
def test_every_strategy_of_forecast_is_accepted(strategy: str) -> None:
    answer = ec.plan(
        find_model("alexnet"), samples=10_000, batch=128, strategies=(strategy,), gpus=(1, 8), devices=["V100"]
    )
    assert answer.considered == len(answer.candidates) + len(answer.refusals)
    assert any(candidate.strategy == "single" for candidate in answer.candidates)
    if strategy == "single":
        assert "strategy 'single' runs on one GPU, not 8" in next(iter(answer.reasons))
    if strategy not in ("single", "tensor", "mirrored"):
        assert strategy in {candidate.strategy for candidate in answer.candidates}


def test_one_gpu_is_asked_once_whatever_the_strategies() -> None:
    answer = planned(batch=256, gpus=(1,), strategies=("ddp", "zero1", "horovod"))
    assert [candidate.strategy for candidate in answer.candidates] == ["single"] * answer.considered
    assert answer.considered == len({(one.offer.where, one.offer.name) for one in answer.candidates}) > 1


def test_without_a_batch_every_gpu_takes_a_power_of_two_that_fits() -> None:
    found = planned(gpus=(1, 8)).candidates
    for candidate in found:
        assert candidate.batch_per_gpu.bit_count() == 1
        assert candidate.global_batch <= JOB["samples"]
    assert as_forecast(found[0]).fits


def test_what_does_not_fit_is_counted_and_no_number() -> None:
    answer = planned(batch=8192, gpus=(1, 16))
    assert answer.reasons[TOO_LARGE.reason] == len(answer.refusals) > 0
    assert all(candidate.offer.gpus == 16 for candidate in answer.candidates)


def test_a_batch_that_does_not_divide_is_counted() -> None:
    answer = planned(batch=4, gpus=(1, 8))
    assert answer.reasons == {"a batch of 4 does not divide over 8 replicas": len(answer.refusals)}


def test_a_job_that_fits_nowhere_has_no_frontier() -> None:
    answer = ec.plan(find_model("vgg16"), samples=10**6, batch=4096, gpus=(1,), devices=["T4"], budget_dollars=5)
    assert (answer.fits, answer.frontier, answer.chosen) == (False, (), None)
    assert answer.sentence == "Nothing runs this job: does not fit in memory."
    with pytest.raises(BadInput, match="nothing to draw: Nothing runs this job"):
        charts.plan(answer)


def test_raising_limits_buys_more() -> None:
    answer = planned(batch=256)
    dearest = max(candidate.dollars.high for candidate in answer.candidates)
    chosen = [answer.within(budget_dollars=part * dearest).chosen for part in (0.1, 0.3, 1)]
    taken = [candidate.total_seconds.mid for candidate in chosen if candidate is not None]
    assert taken == sorted(taken, reverse=True)
    assert taken[-1] == min(candidate.total_seconds.mid for candidate in answer.candidates)


def test_the_nearest_miss_is_named() -> None:
    answer = planned(batch=256, deadline_seconds=1.0)
    assert not answer.is_within_limits
    fastest = min(answer.candidates, key=lambda candidate: candidate.total_seconds.mid)
    assert answer.nearest_by_time == fastest and answer.nearest_by_money is None
    assert answer.sentence.startswith(f"No offer is within 1 s. Nearest by time: {fastest.offer.title}, ")
    both = answer.within(deadline_seconds=1.0, budget_dollars=0.01)
    assert both.nearest_by_money == min(answer.candidates, key=lambda candidate: candidate.dollars.mid)
    assert "Nearest by money: " in both.sentence


def test_one_machine_is_planned_unless_it_meets_no_limit() -> None:
    alone = planned(batch=256)
    assert {each.offer.nodes for each in alone.candidates} == {1}
    fastest = min(each.total_seconds.mid for each in alone.candidates)
    hurried = planned(batch=256, deadline_seconds=0.9 * fastest)
    assert hurried.chosen is not None and hurried.chosen.offer.nodes > 1
    assert {each.offer.nodes for each in planned(batch=256, nodes=(2,)).candidates} == {2}
    assert planned(batch=256, gpus=(32,)).candidates  # no single machine has so many


def test_start_up_is_counted_and_called_an_assumption() -> None:
    asked = {name: value for name, value in JOB.items() if name not in READY}
    ready, answer = planned(batch=256, gpus=(1,)), ec.plan(find_model("resnet18"), **asked, batch=256, gpus=(1,))
    for mine, theirs in zip(answer.candidates, ready.candidates, strict=True):
        assert mine.total_seconds.mid == pytest.approx(theirs.total_seconds.mid + 320)
    assumed = answer.as_dict()["assumed"]
    assert (assumed["boot_seconds"], assumed["image_seconds"], assumed["data_seconds"]) == (120, 200, 0)
    assert any("no data transfer, as its size is unknown" in note for note in answer.warnings)
    known = ec.plan("resnet18", dataset="cifar10", devices=["T4"], clouds=["aws"], batch=256, gpus=(1,))
    assert known.terms.extras.data_seconds == 1  # 154 MB


def test_offers_of_the_same_gpus_are_one_row() -> None:
    answer = ec.plan("resnet18", samples=50_000, epochs=10, batch=256, gpus=(1, 8), devices=["H100", "A100"])
    kinds = [(each.offer.instance.device, each.offer.gpus) for each in answer.shown]
    assert len(kinds) == len(set(kinds)) < len(answer.unfolded)
    assert answer.chosen in answer.shown
    assert max(row["sellers"] for row in answer.as_dict()["rows"]) > 1
    cheapest = min(answer.candidates, key=lambda each: each.dollars.mid)
    assert answer.unfolded[0] == cheapest


def test_the_runner_up_lost_for_a_reason() -> None:
    answer = planned(batch=256, deadline_seconds=3600.0 * 4)
    assert answer.chosen is not None and answer.runners_up
    for runner in answer.runners_up:
        assert runner.candidate.offer.instance.device != answer.chosen.offer.instance.device or (
            runner.candidate.offer.gpus != answer.chosen.offer.gpus
        )
        is_within = answer.limits.excess(runner.candidate) <= 1
        assert ("but only" in runner.why) is not is_within
        assert is_within or runner.candidate.dollars.mid < answer.chosen.dollars.mid


def test_spot_is_offered_with_its_expected_restarts() -> None:
    answer = planned(batch=256, budget_dollars=50.0, devices=("T4",))
    assert answer.chosen is not None and answer.spare is not None and answer.spare.interruptions is not None
    assert answer.spare.dollars.mid < answer.chosen.dollars.mid
    hours = answer.spare.total_seconds.mid / 3600
    assert answer.spare.interruptions == pytest.approx(0.1 * hours, rel=0.05)
    assert "expected restarts (assuming 0.1 interruptions per hour" in (answer.spot_sentence or "")
    assert planned(batch=256, spot=0.1, budget_dollars=50.0, devices=("T4",)).spare is None


def test_old_prices_are_left_out_on_request() -> None:
    today = date(2026, 8, 30)
    asked: dict[str, Any] = {**JOB, "clouds": ["aws"], "gpus": (1,), "batch": 256, "today": today}
    assert ec.plan("resnet18", **asked, max_age_seconds=30 * 86400.0).candidates
    with pytest.raises(
        BadInput, match="no price is at most 1 d 0 h old, the newest is 8 d 0 h: run `epochcast instances"
    ):
        ec.plan("resnet18", **asked, max_age_seconds=86400.0)


def test_a_product_is_one_strategy_and_a_list_several() -> None:
    assert strategies_in(["ddp,zero3", "tp4,pp2"]) == ("ddp", "zero3", "tp4,pp2")
    assert strategies_in([]) == ()


def test_the_answer_draws_itself() -> None:
    assert "▸" in planned(batch=256)._repr_html_()
    assert "Plan(resnet18: " in repr(planned(batch=256))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"samples": None}, "a plan is for a whole job: give a dataset or its samples"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        (
            {"strategies": ("tensor",), "gpus": (4,)},
            "no offer can run this job: tensor parallel: resnet18 has no two products",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        planned(**asked)
    assert str(caught.value).startswith(message)


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(UnknownName, match="no strategy called 'ddpp'; near: ddp"):
        planned(strategies=("ddpp",))
