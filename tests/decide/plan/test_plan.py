"""Whole plans of small networks."""

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

JOB: dict[str, Any] = {"samples": 50_000, "epochs": 10, "devices": ["T4", "V100"], "clouds": ["aws"]}


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
    answer = ec.plan("mnist_cnn", samples=60_000, epochs=5, batch=256, devices=["T4"], clouds=["azure"], gpus=(4,))
    assert answer.considered == 2
    for found in answer.candidates:
        hourly = 4.352 if found.offer.nodes == 1 else 4 * 0.526
        assert find_instance(found.offer.instance.name).gpus * found.offer.nodes == 4
        assert found.dollars.mid == pytest.approx(hourly * found.total_seconds.mid / 3600)
        assert (found.batch_per_gpu, found.global_batch) == (64, 256)


def test_a_box_has_its_own_wires_whatever_else_was_asked_for() -> None:
    """Lambda's box of one H100 names NVLink, its box of four NVSwitch."""
    asked: dict[str, Any] = {"samples": 50_000, "devices": ["H100-SXM5-80GB"], "clouds": ["lambda"], "batch": 256}
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
    assert answer.sentence == "nothing runs this job: does not fit in memory"
    with pytest.raises(BadInput, match="nothing to draw: nothing runs this job"):
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
    assert answer.sentence.startswith("no offer whose high end (90 % interval) is within 1 s; the nearest: ")
    fastest = min(answer.candidates, key=lambda candidate: candidate.total_seconds.high)
    assert fastest.offer.name in answer.sentence


def test_a_product_is_one_strategy_and_a_list_several() -> None:
    assert strategies_in(["ddp,zero3", "tp4,pp2"]) == ("ddp", "zero3", "tp4,pp2")
    assert strategies_in([]) == ()


def test_the_answer_draws_itself() -> None:
    assert "on the frontier" in planned(batch=256)._repr_html_()
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
