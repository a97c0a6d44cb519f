import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.choice import (
    PlanLimits,
    chosen,
    frontier,
    nearest,
    nearest_by_money,
    nearest_by_time,
    objective_of,
)
from epochcast.decide.plan.offers import Offer
from epochcast.errors import BadInput
from epochcast.hardware.instance import Instance
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast

BOX = Instance("box", "cloud", "A100", 1, 1.0, 8, 2**36, "pcie4", "ethernet_10g", "a test", "2024", True)


def configuration(seconds: float, dollars: float, spread: float = 1.0) -> Candidate:
    took, paid = Interval.around(seconds, spread), Interval.around(dollars, spread)
    return Candidate(Offer(BOX), Forecast("own", "A100", took), took, paid)


numbers = st.floats(0.01, 1e6)
configurations = st.builds(configuration, numbers, numbers, st.floats(1, 3))
several = st.lists(configurations, min_size=1, max_size=12)


def dominates(better: Candidate, worse: Candidate) -> bool:
    ours = better.total_seconds.mid, better.dollars.mid
    theirs = worse.total_seconds.mid, worse.dollars.mid
    return ours[0] <= theirs[0] and ours[1] <= theirs[1] and ours != theirs


# By hand: the slow one is cheapest, the fast one dear; the third takes as long as the slow one and costs more.
SLOW, FAST, BAD = configuration(10, 1), configuration(1, 10), configuration(10, 2)


def test_the_frontier_by_hand() -> None:
    assert frontier([FAST, BAD, SLOW]) == (SLOW, FAST)


def test_of_equals_the_first_is_kept() -> None:
    twin = configuration(10, 1, spread=2)
    assert frontier([SLOW, twin]) == (SLOW,)
    assert frontier([twin, SLOW]) == (twin,)


def test_a_deadline_picks_the_cheapest_in_time() -> None:
    assert chosen([SLOW, FAST, BAD], PlanLimits(deadline_seconds=10)) == SLOW
    assert chosen([SLOW, FAST, BAD], PlanLimits(deadline_seconds=9)) == FAST
    assert chosen([SLOW, FAST, BAD], PlanLimits(deadline_seconds=0.5)) is None


def test_a_budget_picks_the_fastest_for_the_money() -> None:
    assert chosen([SLOW, FAST, BAD], PlanLimits(budget_dollars=10)) == FAST
    assert chosen([SLOW, FAST, BAD], PlanLimits(budget_dollars=9)) == SLOW


def test_both_pick_the_cheapest_that_meets_both() -> None:
    assert chosen([SLOW, FAST, BAD], PlanLimits(10, 10)) == SLOW
    assert chosen([SLOW, FAST, BAD], PlanLimits(9, 9)) is None


def test_without_limits_the_knee_is_chosen() -> None:
    middle = configuration(2, 2)
    assert objective_of(PlanLimits()) == "knee"
    assert chosen([SLOW, FAST, middle], PlanLimits()) == middle
    assert nearest([SLOW, FAST], PlanLimits()) is None


def test_expected_values_count_unless_a_probability_is_asked_for() -> None:
    unsure, sure = configuration(8, 1, spread=2), configuration(9, 2, spread=1.1)
    assert frontier([unsure, sure]) == (unsure,)
    assert chosen([unsure, sure], PlanLimits(deadline_seconds=10)) == unsure
    assert chosen([unsure, sure], PlanLimits(deadline_seconds=10, sure=0.95)) == sure
    assert chosen([unsure, sure], PlanLimits(deadline_seconds=10, sure=0.6)) == unsure


def test_the_nearest_miss_by_time_keeps_the_budget_and_the_one_by_money_the_deadline() -> None:
    both = PlanLimits(deadline_seconds=0.5, budget_dollars=5)
    assert nearest_by_time([SLOW, FAST, BAD], both) == SLOW
    assert nearest_by_money([SLOW, FAST, BAD], PlanLimits(deadline_seconds=2, budget_dollars=5)) == FAST
    assert nearest_by_time([SLOW, FAST], PlanLimits(deadline_seconds=0.5, budget_dollars=0.5)) == FAST
    assert nearest_by_money([SLOW, FAST], PlanLimits(deadline_seconds=0.5)) is None


def test_the_nearest_exceeds_its_limits_by_the_least_factor() -> None:
    assert nearest([SLOW, FAST], PlanLimits(deadline_seconds=0.5)) == FAST
    assert nearest([SLOW, FAST], PlanLimits(deadline_seconds=0.5, budget_dollars=0.1)) == SLOW  # 20 times, not 100


@given(found=several)
def test_the_frontier_holds_no_dominated_configuration(found: list[Candidate]) -> None:
    kept = frontier(found)
    assert not any(dominates(other, one) for one in kept for other in found)


@given(found=several)
def test_every_way_is_on_the_frontier_or_no_better_than_one_of_it(found: list[Candidate]) -> None:
    kept = frontier(found)
    for one in found:
        assert any(
            other.total_seconds.mid <= one.total_seconds.mid and other.dollars.mid <= one.dollars.mid for other in kept
        )


@given(found=several, budget=numbers, more=numbers)
def test_a_larger_budget_never_chooses_a_slower_one(found: list[Candidate], budget: float, more: float) -> None:
    small, large = (chosen(found, PlanLimits(budget_dollars=limit)) for limit in (budget, budget + more))
    if small is not None:
        assert large is not None
        assert large.total_seconds.mid <= small.total_seconds.mid


@given(found=several, deadline=numbers, more=numbers)
def test_a_later_deadline_never_chooses_a_dearer_one(found: list[Candidate], deadline: float, more: float) -> None:
    early, late = (chosen(found, PlanLimits(deadline_seconds=limit)) for limit in (deadline, deadline + more))
    if early is not None:
        assert late is not None
        assert late.dollars.mid <= early.dollars.mid


@given(found=several, deadline=numbers, budget=numbers)
def test_what_is_chosen_meets_both_limits(found: list[Candidate], deadline: float, budget: float) -> None:
    picked = chosen(found, PlanLimits(deadline, budget))
    if picked is not None:
        assert picked.total_seconds.mid <= deadline
        assert picked.dollars.mid <= budget
    sure = chosen(found, PlanLimits(deadline, budget, sure=0.95))
    if sure is not None:
        assert sure.total_seconds.high <= deadline * (1 + 1e-9)
        assert sure.dollars.high <= budget * (1 + 1e-9)


@pytest.mark.parametrize("sure", [0.0, 0.3, 1.0, float("nan")])
def test_a_probability_is_between_a_half_and_one(sure: float) -> None:
    with pytest.raises(BadInput, match="a limit is met with a probability of 50%"):
        PlanLimits(deadline_seconds=1.0, sure=sure)


@pytest.mark.parametrize("limit", [0.0, -5.0, float("nan"), float("inf")])
def test_a_limit_is_above_zero(limit: float) -> None:
    with pytest.raises(BadInput, match="a deadline must be above 0"):
        PlanLimits(deadline_seconds=limit)
    with pytest.raises(BadInput, match="a budget must be above 0"):
        PlanLimits(budget_dollars=limit)
