"""What a plan says in words: the recommendation, the nearest misses, why rivals lost, spot, what to measure."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from epochcast.decide.plan.candidate import Candidate
from epochcast.decide.plan.certainty import RUNS, STEPS
from epochcast.decide.plan.choice import PlanLimits
from epochcast.decide.plan.spare import USUAL_INTERRUPTIONS_PER_HOUR
from epochcast.interval import Interval
from epochcast.units import show_dollars, show_seconds

if TYPE_CHECKING:
    from epochcast.decide.plan.plan_answer import Plan

_MEANING = {"cheapest": "cheapest", "fastest": "fastest", "knee": "best balance of time and cost"}


def recommendation(answer: "Plan") -> str:
    """The result in one sentence."""
    if not answer.candidates:
        if answer.missed is not None:
            return f"Not one epoch fits {_within(answer.limits)}. Nearest: {described(answer.missed)}."
        return f"Nothing runs this job: {next(iter(answer.reasons))}."
    chosen = answer.chosen
    if chosen is None:
        return " ".join([f"No offer is {_sure(answer.limits)}{_within(answer.limits)}.", *_misses(answer)])
    parts = [described(chosen), *odds_of(chosen, answer.limits)]
    if answer.counts_epochs:
        return f"{chosen.epochs:g} epochs fit {_within(answer.limits)}: {', '.join(parts)}."
    if not answer.limits:
        parts.append(f"the {_MEANING[answer.goal]}")
    return f"{', '.join(parts)}."


def described(candidate: Candidate) -> str:
    """8 × RTX 4090 on RunPod, 2 h 31 min (2 h 10 min … 3 h 5 min), $8.12 ($7.10 … $9.90)"""
    changes = "".join(f" with {value}" for _, value in candidate.variant)
    took = _with_ends(candidate.total_seconds, show_seconds)
    return f"{candidate.offer.title}{changes}, {took}, {_with_ends(candidate.dollars, show_dollars)}"


def odds_of(candidate: Candidate, limits: PlanLimits) -> tuple[str, ...]:
    """92 % sure to make the deadline, 99 % sure to stay in budget"""
    in_time, in_budget = limits.deadline_probability(candidate), limits.budget_probability(candidate)
    said = ((in_time, "make the deadline"), (in_budget, "stay in budget"))
    return tuple(f"{percent(chance)} sure to {what}" for chance, what in said if chance is not None)


def percent(chance: float) -> str:
    """A probability; never 0 % or 100 %."""
    if chance > 0.99:
        return ">99 %"
    return "<1 %" if chance < 0.01 else f"{100 * chance:.0f} %"


def compared(other: Candidate, choice: Candidate, limits: PlanLimits) -> str:
    """Why a rival is not the choice: what it saves, what it costs, and the limit it misses."""
    time = _difference(other.total_seconds.mid, choice.total_seconds.mid, show_seconds, "faster", "slower")
    money = _difference(other.dollars.mid, choice.dollars.mid, show_dollars, "cheaper", "dearer")
    parts = [part for part in (money, time) if part] or ["the same time and cost"]
    if limits.excess(other) <= 1:
        return " and ".join(parts)
    odds = " and ".join(odds_of(other, limits))
    return f"{' and '.join(parts)}, but only {odds}" if odds else " and ".join(parts)


def to_be_sure(answer: "Plan") -> str | None:
    """What measuring two offers costs and saves, in one sentence."""
    chosen = answer.chosen
    if chosen is None or not answer.rivals:
        return None
    best = answer.rivals[0]
    names = " or ".join(f"{rival.candidate.offer.title} ({percent(rival.probability)})" for rival in answer.rivals)
    goal = ("faster" if answer.goal == "fastest" else "cheaper") + (" and within the limits" if answer.limits else "")
    saved = show_seconds(best.saving) if answer.goal == "fastest" else show_dollars(best.saving)
    verdict = "" if answer.goal == "fastest" or best.saving > best.calibration_dollars else ": not worth it"
    return (
        f"might be {goal}: {names}; to be sure, {RUNS} runs of {STEPS} steps on {chosen.offer.title} and "
        f"{best.candidate.offer.title} cost {show_dollars(best.calibration_dollars)} and save {saved} on average"
        f"{verdict}"
    )


def as_spot(spare: Candidate) -> str:
    """What the choice would take and cost on spare capacity."""
    assert spare.interruptions is not None
    rate = f"{USUAL_INTERRUPTIONS_PER_HOUR:g}"
    return (
        f"As spot on {spare.offer.title} ({spare.offer.where}): {show_seconds(spare.total_seconds.mid)} for "
        f"{show_dollars(spare.dollars.mid)} with {spare.interruptions:.2g} expected restarts "
        f"(assuming {rate} interruptions per hour; --spot {rate} plans with it)."
    )


def _misses(answer: "Plan") -> list[str]:
    said = []
    if answer.nearest_by_time is not None:
        said.append(f"Nearest by time: {_missed(answer, answer.nearest_by_time)}.")
    if answer.nearest_by_money is not None and answer.nearest_by_money != answer.nearest_by_time:
        said.append(f"Nearest by money: {_missed(answer, answer.nearest_by_money)}.")
    return said


def _missed(answer: "Plan", candidate: Candidate) -> str:
    return ", ".join([described(candidate), *odds_of(candidate, answer.limits)])


def _sure(limits: PlanLimits) -> str:
    return "" if limits.sure is None else f"{100 * limits.sure:g} % sure to be "


def _within(limits: PlanLimits) -> str:
    limited: tuple[tuple[float | None, Callable[[float], str]], ...] = (
        (limits.deadline_seconds, show_seconds),
        (limits.budget_dollars, show_dollars),
    )
    return "within " + " and ".join(show(limit) for limit, show in limited if limit is not None)


def _with_ends(interval: Interval, show: Callable[[float], str]) -> str:
    if interval.low == interval.high:
        return show(interval.mid)
    return f"{show(interval.mid)} ({show(interval.low)} … {show(interval.high)})"


def _difference(other: float, mine: float, show: Callable[[float], str], less: str, more: str) -> str:
    """$3.20 cheaper; "" where the two print alike."""
    if show(other) == show(mine):
        return ""
    return f"{show(abs(other - mine))} {less if other < mine else more}"
