"""The compiled heart of the roll-out policy: who gets what at a moment, and what the rest of the queue then costs.

Arrays, one row per live job; choices c are (device, GPUs). Symbols:

    τ   seconds a job still takes with a choice          λ   price of a GPU second that others wait for
    w   dollars per second of lateness                   K   how far ahead urgency looks, in mean run times

A job prefers the choice with the least  g·τ·(price + λ) + w·lateness.  Where a cheap choice is too slow for the
deadline and a fast one faster than it needs to be, it may begin fast and go on cheap: the two legs meet the deadline
exactly, and the policy asks to be woken in between. Jobs are placed in the order of apparent tardiness cost per GPU

    (w · exp(−slack / (K·mean τ)) + m) / (g·τ)          (Vepsalainen & Morton 1987; m: what a second of waiting adds to
                                                         the job's own bill, because more of its run must then be fast)

Limits: machines cost as their GPUs do in a full one; boot times are left out; jobs that have not come yet are not seen.
"""

from typing import Any, NamedTuple

import numpy as np

from epochcast.errors import MissingExtra

try:
    from numba import njit
except ImportError:
    raise MissingExtra("schedule", "numba") from None

FAR = 1e30
"""Seconds or dollars that stand for never."""
# Seconds below which beginning fast is not worth a decision of its own.
SHORTEST_LEG = 1.0
# How far ahead, in mean run times, a waiting job raises the price of a GPU.
PRICE_AHEAD = 1.0


class Queue(NamedTuple):
    """The jobs.

    `whole[j, c]`: the whole run; `restart`: owed if it starts now with another choice; `pay`: for any later
    change.
    """

    left: Any
    whole: Any
    owed: Any
    restart: Any
    pay: Any
    due: Any
    weight: Any
    now_on: Any
    held: Any
    alive: Any


class Place(NamedTuple):
    """The choices and the machines: `rate[c]` dollars per second, `size[d]` GPUs of a device's largest machine."""

    rate: Any
    device: Any
    gpus: Any
    size: Any
    quota: Any
    nodes: int
    capacity: float


class Way(NamedTuple):
    """How a roll-out decides. `patience`: another choice than the best may cost so many times as much."""

    congestion: float
    ahead: float
    waiting_loss: float
    patience: float
    may_change: bool
    keeps: bool


class Wishes(NamedTuple):
    """Of every job: dollars, when to change (leg) and what waiting loses by choice; choices from best to worst."""

    dollars: Any
    leg: Any
    loss: Any
    order: Any
    tau: Any


@njit(cache=True)
def _seconds_left(queue: Queue, job: int, choice: int) -> float:
    """Until the end with a choice, restart included where that is a change."""
    begin = queue.owed[job] if choice == queue.now_on[job] else queue.restart[job]
    return float(begin + queue.left[job] * queue.whole[job, choice])


@njit(cache=True)
def _two_legs(queue: Queue, place: Place, job: int, now: float, on_top: float, c: int, d: int) -> tuple[float, float]:
    """Dollars of beginning with c and going on with d so that the deadline is met exactly, and when to change.

    `on_top` is λ, dollars per GPU second.
    """
    fast, slow = queue.whole[job, c], queue.whole[job, d]
    first, then = place.rate[c] + on_top * place.gpus[c], place.rate[d] + on_top * place.gpus[d]
    if slow >= FAR or slow <= fast or then >= first:
        return FAR, FAR
    begin = queue.owed[job] if c == queue.now_on[job] else queue.restart[job]
    # begin + x + pay + y = spare and x/fast + y/slow = left
    spare = queue.due[job] - now - begin - queue.pay[job]
    x = (queue.left[job] - spare / slow) / (1.0 / fast - 1.0 / slow)
    y = spare - x
    if x <= SHORTEST_LEG or y <= 0:
        return FAR, FAR
    return (begin + x) * first + (queue.pay[job] + y) * then, begin + x


@njit(cache=True)
def _wish(queue: Queue, place: Place, wishes: Wishes, job: int, now: float, on_top: float, may_change: bool) -> None:
    """Fill in what a job wants."""
    for c in range(place.rate.shape[0]):
        wishes.leg[job, c], wishes.loss[job, c], wishes.dollars[job, c] = FAR, 0.0, FAR
        if queue.whole[job, c] >= FAR:
            continue
        tau = _seconds_left(queue, job, c)
        late = now + tau - queue.due[job]
        best = tau * (place.rate[c] + on_top * place.gpus[c]) + queue.weight[job] * max(0.0, late)
        if may_change and late < -1e-6 * tau:
            for d in range(place.rate.shape[0]):
                dollars, leg = _two_legs(queue, place, job, now, on_top, c, d)
                if dollars < best * (1 - 1e-9):
                    best = dollars
                    wishes.leg[job, c] = leg
                    fast, slow = queue.whole[job, c], queue.whole[job, d]
                    gain = (place.rate[c] - place.rate[d]) * fast / (slow - fast) - place.rate[d]
                    wishes.loss[job, c] = max(0.0, gain)
        wishes.dollars[job, c] = best
    wishes.order[job, :] = np.argsort(wishes.dollars[job], kind="mergesort")
    wishes.tau[job] = _seconds_left(queue, job, wishes.order[job, 0])


@njit(cache=True)
def _urgency(slack: float, scale: float) -> float:
    return float(np.exp(-slack / scale)) if slack > 0 else 1.0


@njit(cache=True)
def _ranked(queue: Queue, place: Place, way: Way, wishes: Wishes, now: float, noise: Any, mean: float) -> Any:
    """Jobs by their index, the most urgent first; those that are held to their GPUs before all others."""
    index = np.full(queue.left.shape[0], FAR)
    for j in range(index.shape[0]):
        if not queue.alive[j]:
            continue
        if queue.held[j]:
            index[j] = -FAR
            continue
        best = wishes.order[j, 0]
        urgency = _urgency(queue.due[j] - now - wishes.tau[j], way.ahead * mean)
        worth = (queue.weight[j] + 1e-12) * urgency + way.waiting_loss * wishes.loss[j, best]
        index[j] = -worth / (place.gpus[best] * wishes.tau[j]) * noise[j]
    return np.argsort(index, kind="mergesort")


@njit(cache=True)
def _take(place: Place, free: Any, opened: Any, choice: int) -> bool:
    """GPUs of the fullest open machine that has room, or of a new one. free[d, k]: machines with k free GPUs."""
    d, g = place.device[choice], place.gpus[choice]
    for k in range(g, place.size[d]):
        if free[d, k] > 0:
            free[d, k] -= 1
            free[d, k - g] += 1
            return True
    if g > place.size[d] or opened.sum() >= place.nodes or opened[d] >= place.quota[d]:
        return False
    opened[d] += 1
    free[d, place.size[d] - g] += 1
    return True


@njit(cache=True)
def _first_fitting(queue: Queue, place: Place, wishes: Wishes, way: Way, free: Any, opened: Any, job: int) -> int:
    """The best choice of a job that has room, or −1."""
    if queue.held[job]:
        _take(place, free, opened, queue.now_on[job])
        return int(queue.now_on[job])
    best = wishes.dollars[job, wishes.order[job, 0]]
    for n in range(wishes.order.shape[1]):
        c = wishes.order[job, n]
        if queue.whole[job, c] >= FAR or wishes.dollars[job, c] > way.patience * best:
            break
        if _take(place, free, opened, c):
            return int(c)
    return -1


@njit(cache=True)
def dispatch(queue: Queue, place: Place, way: Way, now: float, noise: Any, chosen: Any) -> float:
    """Who runs from now on with which choice (−1.

    Waits), into `chosen`; returns after how many seconds to look again.
    """
    jobs, choices = queue.whole.shape
    wishes = Wishes(
        np.empty((jobs, choices)),
        np.empty((jobs, choices)),
        np.empty((jobs, choices)),
        np.empty((jobs, choices), np.int64),
        np.empty(jobs),
    )
    free = np.zeros((place.size.shape[0], place.size.max() + 1), np.int64)
    opened = np.zeros(place.size.shape[0], np.int64)
    on_top, wake = 0.0, FAR
    many = max(1, queue.alive.sum())
    for attempt in range(2):
        total = 0.0
        for j in range(jobs):
            chosen[j] = -1
            if queue.alive[j]:
                _wish(queue, place, wishes, j, now, on_top, way.may_change)
                total += wishes.tau[j]
        ranked = _ranked(queue, place, way, wishes, now, noise, total / many)
        free[:], opened[:] = 0, 0
        wake, waiting = FAR, 0.0
        for r in range(queue.alive.sum()):
            j = ranked[r]
            c = _first_fitting(queue, place, wishes, way, free, opened, j)
            chosen[j] = c
            if c >= 0:
                wake = min(wake, FAR if queue.held[j] else wishes.leg[j, c])
            else:
                slack = queue.due[j] - now - wishes.tau[j]
                waiting += queue.weight[j] * _urgency(slack, PRICE_AHEAD * total / many)
        # The first attempt finds out who would wait, the second lets them raise the price.
        on_top = way.congestion * waiting / place.capacity
        if attempt == 0 and on_top <= 0.0:
            break
    _enlarge(queue, place, now, free, chosen)
    return float(wake)


@njit(cache=True)
def _room(free: Any, device: int, gpus: int) -> int:
    """The least room of an open machine that has so many GPUs to spare; 0 where none has."""
    for k in range(gpus, free.shape[1]):
        if free[device, k] > 0:
            return int(k)
    return 0


@njit(cache=True)
def _gain(queue: Queue, place: Place, now: float, job: int, c: int, e: int) -> float:
    """Dollars saved by giving a late job more GPUs."""
    tau, then = _seconds_left(queue, job, c), _seconds_left(queue, job, e)
    late, late_then = max(0.0, now + tau - queue.due[job]), max(0.0, now + then - queue.due[job])
    return float(tau * place.rate[c] - then * place.rate[e] + queue.weight[job] * (late - late_then))


@njit(cache=True)
def _enlarge(queue: Queue, place: Place, now: float, free: Any, chosen: Any) -> None:
    """Give idle GPUs of open machines to running jobs that are late without them, the largest gain first."""
    for _ in range(chosen.shape[0]):
        most, winner, better = 1e-9, -1, -1
        for j in range(chosen.shape[0]):
            c = chosen[j]
            if not queue.alive[j] or c < 0 or queue.held[j]:
                continue
            if now + _seconds_left(queue, j, c) <= queue.due[j]:
                continue
            for e in range(place.rate.shape[0]):
                more = place.gpus[e] - place.gpus[c]
                is_larger = place.device[e] == place.device[c] and more > 0 and queue.whole[j, e] < FAR
                if is_larger and _room(free, place.device[e], more) > 0:
                    gain = _gain(queue, place, now, j, c, e)
                    if gain > most:
                        most, winner, better = gain, j, e
        if winner < 0:
            return
        d, more = place.device[better], place.gpus[better] - place.gpus[chosen[winner]]
        k = _room(free, d, more)
        free[d, k] -= 1
        free[d, k - more] += 1
        chosen[winner] = better


@njit(cache=True)
def _start(queue: Queue, place: Place, way: Way, chosen: Any) -> tuple[float, float]:
    """Let a decision hold: what changes owes a restart. Returns dollars per second, and when the first job ends."""
    spent, soonest = 0.0, FAR
    for j in range(chosen.shape[0]):
        c = chosen[j]
        if not queue.alive[j]:
            continue
        if c != queue.now_on[j]:
            if queue.now_on[j] >= 0:
                queue.restart[j] = queue.pay[j]
            queue.owed[j] = queue.restart[j] if c >= 0 else 0.0
            queue.now_on[j] = c
        if c >= 0:
            queue.restart[j] = queue.pay[j]
            queue.held[j] = queue.held[j] or way.keeps
            spent += place.rate[c]
            soonest = min(soonest, queue.owed[j] + queue.left[j] * queue.whole[j, c])
    return spent, soonest


@njit(cache=True)
def _work(queue: Queue, now: float, seconds: float) -> float:
    """Let time pass until `now`; returns what lateness costs those that end."""
    dollars = 0.0
    for j in range(queue.left.shape[0]):
        c = queue.now_on[j]
        if not queue.alive[j] or c < 0:
            continue
        worked = seconds - queue.owed[j]
        queue.owed[j] = max(0.0, -worked)
        if worked > 0:
            queue.left[j] -= worked / queue.whole[j, c]
        if queue.left[j] <= 1e-9 and queue.owed[j] <= 0:
            queue.alive[j] = False
            queue.now_on[j] = -1
            dollars += queue.weight[j] * max(0.0, now - queue.due[j])
    return dollars


@njit(cache=True)
def roll_out(
    jobs: Queue, place: Place, way: Way, now: float, noise: Any, first: Any, limit: float
) -> tuple[float, float]:
    """Dollars until the last job has ended, and after how many seconds the first decision wants to be looked at again.

    The first decision is left in `first`; the jobs stay as they were. It ends as soon as the bill is above `limit`.
    """
    queue = Queue(
        jobs.left.copy(), jobs.whole, jobs.owed.copy(), jobs.restart.copy(), jobs.pay, jobs.due, jobs.weight,
        jobs.now_on.copy(), jobs.held.copy(), jobs.alive.copy(),
    )  # fmt: skip
    chosen = np.empty(queue.left.shape[0], np.int64)
    dollars, first_wake = 0.0, FAR
    for event in range(20 * chosen.shape[0] + 20):
        wake = dispatch(queue, place, way, now, noise, chosen)
        if event == 0:
            first[:] = chosen
            first_wake = wake
        spent, ends = _start(queue, place, way, chosen)
        seconds = min(wake, ends)
        if seconds >= FAR:
            break
        now += seconds
        dollars += spent * seconds + _work(queue, now, seconds)
        if not queue.alive.any():
            return dollars, first_wake
        if dollars > limit:
            break
    return FAR, first_wake
