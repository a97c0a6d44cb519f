"""Batch policies, learning limits, spot, what-ifs, hosts and the inverse question, on whole plans."""

from functools import cache
from itertools import pairwise
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import epochcast as ec
from epochcast.api import find_model
from epochcast.decide.plan.certainty import exchange_value, ratio_spread
from epochcast.decide.plan.choice import PlanLimits, knee
from epochcast.decide.plan.offers import offers, rentable
from epochcast.decide.plan.plan_answer import Plan
from epochcast.decide.plan.plan_request import parse_augment_epochs
from epochcast.errors import BadInput, UnknownName
from epochcast.interval import Interval
from epochcast.units import parse_counts

JOB: dict[str, Any] = {"samples": 50_000, "epochs": 10, "devices": ["T4", "A10G"], "clouds": ["aws"]}


@cache
def planned(**options: Any) -> Plan:
    return ec.plan(find_model("resnet18"), **{**JOB, **options})


def by_offer(plan: Plan) -> dict[tuple[str, int, str], Any]:
    return {(one.offer.name, one.offer.gpus, one.strategy): one for one in plan.candidates}


# ---- offers ----


@pytest.mark.parametrize(
    ("text", "counts"),
    [("1,2,8", (1, 2, 8)), ("1-64", (1, 2, 4, 8, 16, 32, 64)), ("3-12", (3, 4, 8, 12)), ("8", (8,)), ("2..4", (2, 4))],
)
def test_ranges_of_gpus(text: str, counts: tuple[int, ...]) -> None:
    assert parse_counts(text) == counts


@pytest.mark.parametrize("text", ["", "two", "4-2", "0-8", "1-9999"])
def test_a_range_makes_sense(text: str) -> None:
    with pytest.raises(BadInput, match="numbers of GPUs"):
        parse_counts(text)


def test_a_region_sets_the_price_and_leaves_out_who_is_not_there() -> None:
    (here,) = [one for one in rentable(clouds=["aws"], regions=["eu-north-1"]) if one.name == "p4d.24xlarge"]
    assert (here.region, here.dollars_per_hour) == ("eu-north-1", 23.7157)
    assert not [one for one in rentable(regions=["europe"]) if one.name == "p3dn.24xlarge" and one.region[:2] == "us"]
    with pytest.raises(UnknownName, match="no region called 'eu-nroth-1'; near: eu-north-1"):
        rentable(regions=["eu-nroth-1"])


def test_machines_whose_network_nobody_knows_are_offered_alone() -> None:
    found = offers((8, 16), clouds=["runpod"], devices=["H200"])
    assert {one.nodes for one in found} == {1}


def test_offers_of_like_machines_share_a_forecast() -> None:
    plan = ec.plan(find_model("resnet18"), samples=50_000, batch=256, devices=["RTX 5090"], clouds=["yotta"], gpus=(8,))
    assert len(plan.candidates) > 2
    assert len({one.total_seconds for one in plan.candidates}) == 1


# ---- batch policies and learning ----


def test_a_fixed_batch_is_shared_and_a_scaled_one_grows() -> None:
    fixed, scaled = (
        planned(batch=256, batch_policy=policy, gpus=(1, 4), max_global_batch=512) for policy in ("fixed", "scale")
    )
    assert {one.global_batch for one in fixed.candidates} == {256}
    assert {(one.offer.gpus, one.global_batch) for one in scaled.candidates} == {(1, 256), (4, 512)}
    assert fixed.candidates == planned(batch=256, gpus=(1, 4)).candidates


def test_no_automatic_batch_is_above_the_largest() -> None:
    found = planned(batch_policy="auto", max_global_batch=128, gpus=(1, 8)).candidates
    assert {one.global_batch for one in found} == {128}


def test_more_gpus_with_a_larger_batch_are_not_free() -> None:
    free, limited = (
        by_offer(planned(batch=64, batch_policy="scale", gpus=(1, 8), critical_batch=critical))
        for critical in (None, 500)
    )
    for key, one in limited.items():
        expected = 10 * (one.global_batch + 500) / (64 + 500)
        assert one.epochs == pytest.approx(expected)
        assert one.total_seconds.mid >= free[key].total_seconds.mid * (1 - 1e-9)


def test_a_critical_batch_makes_automatic_batches_smaller() -> None:
    free = by_offer(planned(gpus=(8,), batch_policy="auto"))
    limited = by_offer(planned(gpus=(8,), batch=64, batch_policy="auto", critical_batch=100))
    for key, one in limited.items():
        assert one.global_batch < free[key].global_batch


def test_epochs_are_meant_for_some_batch() -> None:
    with pytest.raises(BadInput, match="give `batch`: the batch that the number of epochs is meant for"):
        planned(critical_batch=100)
    with pytest.raises(BadInput, match="batch policy 'scale' needs a batch"):
        planned(batch_policy="scale")
    with pytest.raises(UnknownName, match="no batch policy called 'grow'"):
        planned(batch=8, batch_policy="grow")


# ---- spot, boot and bills ----


def test_spot_costs_less_per_hour_and_takes_longer() -> None:
    steady, spare = by_offer(planned(batch=256, gpus=(1, 8))), by_offer(planned(batch=256, gpus=(1, 8), spot=0.1))
    for key, one in spare.items():
        assert one.total_seconds.mid > steady[key].total_seconds.mid
        assert one.offer.dollars_per_hour < one.offer.nodes * one.offer.instance.dollars_per_hour
        trained = one.total_seconds.mid - 320  # less boot and image
        assert one.interruptions == pytest.approx(0.1 * one.offer.nodes * trained / 3600)
        entry = one.as_dict()
        assert entry["is_spot"] and entry["on_demand_dollars_per_hour"] > entry["dollars_per_hour"]


def test_a_job_interrupted_all_the_time_is_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match="is interrupted too often to get on"):
        planned(batch=256, gpus=(1,), spot=60, checkpoint_seconds=3600, restart_seconds=3600)


def test_boot_and_hours_are_paid_for() -> None:
    plain = by_offer(planned(batch=256, gpus=(1,), boot_seconds=0.0))
    paid = by_offer(planned(batch=256, gpus=(1,), billing="hour", boot_seconds=300))
    for key, one in paid.items():
        assert one.total_seconds.mid == pytest.approx(plain[key].total_seconds.mid + 300)
        hours = one.dollars.mid / one.offer.dollars_per_hour
        assert hours >= 1 and isclose(hours, round(hours))


# ---- choices ----


def test_objectives_need_no_limits() -> None:
    plan = planned(batch=256)
    cheapest, fastest, middle = (plan.within(objective=each).chosen for each in ("cheapest", "fastest", "knee"))
    assert cheapest == plan.frontier[0] and fastest == plan.frontier[-1]
    assert middle in plan.frontier
    with pytest.raises(UnknownName, match="no objective called 'best'"):
        planned(batch=256, objective="best")


class _Point:
    def __init__(self, seconds: float, dollars: float) -> None:
        self.total_seconds, self.dollars = Interval.exact(seconds), Interval.exact(dollars)


# by hand: from 10 s at 1 dollar to 1 s at 10 dollars; 2 s at 2 dollars is far below the line, 5 s at 2 is on it
def test_the_knee_by_hand() -> None:
    points = [_Point(10, 1), _Point(2, 2), _Point(1, 10)]
    assert knee(points) is points[1]
    assert knee(points[:1]) is points[0] and knee([]) is None


def test_the_most_epochs_are_within_the_limit_and_one_more_is_not() -> None:
    plan = planned(batch=256, budget_dollars=5.0, most_epochs=True)
    assert plan.chosen is not None
    assert plan.chosen.epochs == max(one.epochs for one in plan.candidates)
    assert all(one.dollars.high <= 5 * (1 + 1e-9) for one in plan.candidates)
    assert all(first.epochs >= second.epochs for first, second in pairwise(plan.candidates))
    more = planned(batch=256, epochs=int(plan.chosen.epochs) + 1)
    same = by_offer(more)[plan.chosen.offer.name, plan.chosen.offer.gpus, plan.chosen.strategy]
    assert same.dollars.high > 5
    assert "epochs fit within $5.00: " in plan.sentence and "95 % sure to stay in budget" in plan.sentence


def test_counting_epochs_needs_a_limit() -> None:
    with pytest.raises(BadInput, match="give a deadline or a budget"):
        planned(batch=256, most_epochs=True)
    none = planned(batch=256, budget_dollars=0.0001, most_epochs=True)
    assert none.chosen is None and none.missed is not None
    assert none.sentence.startswith("Not one epoch fits within $0.0001. Nearest: ")


# ---- what if ----


def test_every_change_is_tried_and_its_gain_told() -> None:
    plan = planned(batch=256, gpus=(1,), what_if=("precision=amp", "compile=inductor"), objective="cheapest")
    assert {one.variant for one in plan.candidates} == {
        (),
        (("precision", "amp"),),
        (("compile", "inductor"),),
        (("precision", "amp"), ("compile", "inductor")),
    }
    amp, compiled = plan.gains
    assert amp.seconds_ratio is not None and amp.seconds_ratio < 1
    assert (amp.option, compiled.option) == ("precision", "compile")
    assert plan.chosen is not None and dict(plan.chosen.variant)["precision"] == "amp"


@pytest.mark.parametrize("wrong", ["precision", "precision=", "batch=3", "checkpointing=some"])
def test_what_cannot_be_tried_is_refused(wrong: str) -> None:
    with pytest.raises((BadInput, UnknownName)):
        planned(batch=256, what_if=(wrong,))


def test_copies_of_samples_are_compared_by_the_time_to_an_accuracy() -> None:
    plan = planned(batch=64, gpus=(1,), devices=("T4",), epochs=3)
    tried = ec.plan(
        find_model("resnet18"), **{**JOB, "epochs": 1}, batch=64, gpus=(1,), augment_epochs={1: 3, 4: 2}
    ).candidates
    assert {one.variant for one in tried} == {(("augment", "1:3"),), (("augment", "4:2"),)}
    once = {one.offer.name: one.total_seconds.mid for one in plan.candidates}
    for one in tried:
        if one.variant == (("augment", "1:3"),) and one.offer.name in once:
            assert one.total_seconds.mid == pytest.approx(once[one.offer.name])
            assert (one.epochs, one.forecast.augment) == (3, 1)
    with pytest.raises(BadInput, match="copies and their epochs are written"):
        parse_augment_epochs("4,5")


# ---- hosts ----


def test_a_machine_whose_processors_cannot_feed_its_gpus_says_so() -> None:
    found = by_offer(planned(batch=256, gpus=(1,), devices=("T4",), loader_seconds=0.01))
    few, many = found["g4dn.xlarge", 1, "single"], found["g4dn.16xlarge", 1, "single"]
    assert few.host_note is not None and few.host_note.startswith("4 CPUs cannot feed the GPU: ")
    assert many.host_note is None
    assert few.total_seconds.mid > many.total_seconds.mid


# ---- how sure ----


# by hand: two prices of 10 with a spread of 20 %: an option at the money is worth 10·(2Φ(0.1) − 1) = 0.797
def test_the_value_of_knowing_by_hand() -> None:
    assert exchange_value(10, 10, 0.2) == pytest.approx(0.797, abs=0.001)
    assert exchange_value(10, 12, 0) == 0 and exchange_value(12, 10, 0) == 2


@given(mine=st.floats(0.1, 100), factor=st.floats(1, 3), spread=st.floats(0.01, 1), more=st.floats(0, 1))
def test_knowing_is_worth_more_the_less_is_known(mine: float, factor: float, spread: float, more: float) -> None:
    less, much = (exchange_value(mine, factor * mine, each) for each in (spread, spread + more))
    assert -1e-9 <= less <= much + 1e-9
    assert much <= mine


def test_what_like_devices_share_cancels() -> None:
    one = Interval.around(10, 1.5)
    assert ratio_spread(one, one, 1.0) == pytest.approx(0, abs=1e-9)
    assert ratio_spread(one, one, 0.0) > ratio_spread(one, one, 0.5) > 0


def test_rivals_are_on_other_devices_and_might_be_better() -> None:
    plan = planned(batch=256, objective="cheapest")
    assert plan.chosen is not None and plan.rivals and plan.certainty is not None
    for rival in plan.rivals:
        assert rival.candidate.offer.instance.device != plan.chosen.offer.instance.device
        assert 0 < rival.probability < 0.6
        assert rival.calibration_dollars > 0
    assert "runs of 100 steps on" in plan.certainty


def test_limits_that_no_rival_meets_leave_none() -> None:
    plan = planned(batch=256, budget_dollars=0.0001)
    assert plan.chosen is None and plan.rivals == () and PlanLimits(budget_dollars=0.0001) == plan.limits
