"""The compiled heart of the roll-out policy: who gets what at a moment, and what the rest of the queue then costs.

Arrays, one row per live job; choices c are (device, GPUs). Symbols:

    τ   seconds a job still takes with a choice          λ   price of a GPU second that others wait for
    w   dollars per second of lateness                   K   how far ahead urgency looks, in mean run times

A job prefers the choice with the least  g·τ·(price + λ) + w·lateness.  Where a cheap choice is too slow for the
deadline and a fast one faster than it needs to be, it may begin fast and go on cheap: the two legs meet the deadline
exactly, and the policy asks to be woken in between. Jobs are placed in the order of apparent tardiness cost

    w · exp(−slack / (K·mean τ)) / (g·τ)          (Vepsalainen & Morton 1987, per GPU)

Limits: machines cost as their GPUs do in a full one; boot times are left out; jobs that have not come yet are not seen.
"""

from typing import Any

import numpy as np

from epochcast.errors import MissingExtra

try:
    from numba import njit
except ImportError:  # pragma: no cover
    raise MissingExtra("schedule", "numba") from None

FAR = 1e30
# Seconds below which beginning fast is not worth a decision of its own.
SHORTEST_LEG = 1.0
# How far ahead, in mean run times, a waiting job raises the price of a GPU.
PRICE_AHEAD = 1.0


@njit(cache=True)
def _seconds_left(job: int, choice: int, left: Any, whole: Any, owed: Any, restart: Any, now_on: Any) -> float:
    """Until the end with a choice, restart included where that is a change."""
    if choice == now_on[job]:
        return float(owed[job] + left[job] * whole[job, choice])
    return float(restart[job] + left[job] * whole[job, choice])


@njit(cache=True)
def _prefer(
    job: int, now: float, price: float, left: Any, whole: Any, owed: Any, restart: Any, pay: Any, due: Any, weight: Any,
    now_on: Any, rate: Any, gpus: Any, order: Any, leg: Any, cost: Any, loss: Any,
) -> int:  # fmt: skip
    """Fill `order` with the job's choices from best to worst, `cost` by choice, and `leg`: when to change (FAR: never)."""
    count = 0
    choices = rate.shape[0]
    for c in range(choices):
        leg[c] = FAR
        loss[c] = 0.0
        if whole[job, c] >= FAR:
            cost[c] = FAR
            continue
        tau = _seconds_left(job, c, left, whole, owed, restart, now_on)
        per_second = rate[c] + price * gpus[c]
        late = now + tau - due[job]
        best = tau * per_second + (weight[job] * late if late > 0 else 0.0)
        if late < -1e-6 * tau:
            # Fast enough: how long must it stay, if a cheaper choice finishes the rest in time?
            spare = due[job] - now
            for d in range(choices):
                if d == c or whole[job, d] >= FAR:
                    continue
                per_second_then = rate[d] + price * gpus[d]
                slow, fast = whole[job, d], whole[job, c]
                if slow <= fast or per_second_then >= per_second:
                    continue
                begin = owed[job] if c == now_on[job] else restart[job]
                # begin + x + y + pay = spare, x/fast + y/slow = left
                x = (left[job] - (spare - begin - pay[job]) / slow) / (1.0 / fast - 1.0 / slow)
                if x <= SHORTEST_LEG:
                    continue
                y = spare - begin - pay[job] - x
                if y <= 0:
                    continue
                dollars = (begin + x) * per_second + (pay[job] + y) * per_second_then
                if dollars < best * (1 - 1e-9):
                    best = dollars
                    leg[c] = begin + x
                    # What a second of waiting adds to the bill: more of the run must then be fast.
                    loss[c] = max(0.0, (rate[c] - rate[d]) * fast / (slow - fast) - rate[d])
        cost[c] = best
        place = count
        while place > 0 and cost[order[place - 1]] > best:
            order[place] = order[place - 1]
            place -= 1
        order[place] = c
        count += 1
    return count


@njit(cache=True)
def _place(choice: int, device: Any, gpus: Any, size: Any, free: Any, opened: Any, quota: Any, nodes: int) -> bool:
    """Take GPUs for a choice: of the fullest open machine that has room, or of a new one. free[d, k]: machines with k free."""
    d, g = device[choice], gpus[choice]
    for k in range(g, size[d]):
        if free[d, k] > 0:
            free[d, k] -= 1
            free[d, k - g] += 1
            return True
    if g > size[d] or opened.sum() >= nodes or opened[d] >= quota[d]:
        return False
    opened[d] += 1
    free[d, size[d] - g] += 1
    return True


@njit(cache=True)
def dispatch(
    now: float, alive: Any, left: Any, whole: Any, owed: Any, restart: Any, pay: Any, due: Any, weight: Any, now_on: Any,
    held: Any, noise: Any, rate: Any, device: Any, gpus: Any, size: Any, quota: Any, nodes: int, capacity: float,
    congestion: float, ahead: float, waiting_loss: float, chosen: Any,
) -> float:  # fmt: skip
    """Who runs from now on with which choice (−1: waits), into `chosen`; returns after how many seconds to look again."""
    jobs, choices = whole.shape
    price = 0.0
    order = np.empty(choices, np.int64)
    leg = np.empty(choices)
    cost = np.empty(choices)
    loss = np.empty(choices)
    losses = np.zeros(jobs)
    index = np.empty(jobs)
    first = np.empty((jobs, choices), np.int64)
    counts = np.zeros(jobs, np.int64)
    legs = np.empty((jobs, choices))
    costs = np.empty((jobs, choices))
    taus = np.empty(jobs)
    free = np.zeros((size.shape[0], size.max() + 1), np.int64)
    opened = np.zeros(size.shape[0], np.int64)
    wake = FAR
    for attempt in range(2):
        total, many, wanted = 0.0, 0, 0.0
        for j in range(jobs):
            chosen[j] = -1
            if not alive[j]:
                continue
            counts[j] = _prefer(j, now, price, left, whole, owed, restart, pay, due, weight, now_on, rate, gpus, order, leg, cost, loss)
            for c in range(counts[j]):
                first[j, c] = order[c]
            for c in range(choices):
                legs[j, c] = leg[c]
                costs[j, c] = cost[c]
            best = order[0]
            losses[j] = loss[best]
            taus[j] = _seconds_left(j, best, left, whole, owed, restart, now_on)
            total += taus[j]
            many += 1
            wanted += gpus[best]
        scale = ahead * total / max(1, many)
        for j in range(jobs):
            if alive[j]:
                slack = due[j] - now - taus[j]
                urgency = np.exp(-slack / scale) if slack > 0 else 1.0
                index[j] = -((weight[j] + 1e-12) * urgency + waiting_loss * losses[j]) / (gpus[first[j, 0]] * taus[j]) * noise[j]
                if held[j]:
                    index[j] = -FAR
            else:
                index[j] = FAR
        ranked = np.argsort(index, kind="mergesort")
        free[:] = 0
        opened[:] = 0
        wake = FAR
        waiting = 0.0
        for r in range(many):
            j = ranked[r]
            if held[j]:
                c = now_on[j]
                _place(c, device, gpus, size, free, opened, quota, nodes)
                chosen[j] = c
                continue
            for n in range(counts[j]):
                c = first[j, n]
                if _place(c, device, gpus, size, free, opened, quota, nodes):
                    chosen[j] = c
                    if legs[j, c] < wake:
                        wake = legs[j, c]
                    break
            if chosen[j] < 0:
                slack = due[j] - now - taus[j]
                waiting += weight[j] * (np.exp(-slack * ahead / (scale * PRICE_AHEAD)) if slack > 0 else 1.0)
        if attempt == 0:
            price = congestion * waiting / capacity
            if price <= 0.0:
                break
    _enlarge(now, alive, left, whole, owed, restart, due, weight, now_on, held, rate, device, gpus, size, quota, nodes, free, opened, chosen)
    return wake


@njit(cache=True)
def _enlarge(
    now: float, alive: Any, left: Any, whole: Any, owed: Any, restart: Any, due: Any, weight: Any, now_on: Any, held: Any,
    rate: Any, device: Any, gpus: Any, size: Any, quota: Any, nodes: int, free: Any, opened: Any, chosen: Any,
) -> None:  # fmt: skip
    """Give idle GPUs of open machines to running jobs that are late without them, the largest gain first."""
    jobs, choices = whole.shape
    for _ in range(jobs):
        idle = 0
        for d in range(size.shape[0]):
            for k in range(1, size[d] + 1):
                idle += k * free[d, k]
        if idle == 0 and opened.sum() >= nodes:
            return
        most, winner, better = 1e-9, -1, -1
        for j in range(jobs):
            if not alive[j] or chosen[j] < 0 or held[j]:
                continue
            c = chosen[j]
            tau = _seconds_left(j, c, left, whole, owed, restart, now_on)
            late = now + tau - due[j]
            if late <= 0:
                continue
            old = tau * rate[c] + weight[j] * late
            for e in range(choices):
                if device[e] != device[c] or gpus[e] <= gpus[c] or whole[j, e] >= FAR:
                    continue
                more = gpus[e] - gpus[c]
                room = False
                for k in range(more, size[device[e]] + 1):
                    if free[device[e], k] > 0:
                        room = True
                if not room:
                    continue
                then = _seconds_left(j, e, left, whole, owed, restart, now_on)
                late_then = max(0.0, now + then - due[j])
                gain = old - then * rate[e] - weight[j] * late_then
                if gain > most:
                    most, winner, better = gain, j, e
        if winner < 0:
            return
        more = gpus[better] - gpus[chosen[winner]]
        for k in range(more, size[device[better]] + 1):
            if free[device[better], k] > 0:
                free[device[better], k] -= 1
                free[device[better], k - more] += 1
                break
        chosen[winner] = better


@njit(cache=True)
def roll_out(
    now: float, left0: Any, whole: Any, owed0: Any, restart: Any, pay: Any, due: Any, weight: Any, now_on0: Any, held: Any,
    noise: Any, rate: Any, device: Any, gpus: Any, size: Any, quota: Any, nodes: int, capacity: float, congestion: float,
    ahead: float, waiting_loss: float, keeps: bool, first: Any, limit: float,
) -> tuple[float, float]:  # fmt: skip
    """Dollars until the last job has ended, and after how many seconds the first decision wants to be looked at again.

    The first decision is left in `first`. `keeps`: jobs that run keep what they have (no preemption, no resizing). It ends
    as soon as the bill is above `limit`.
    """
    jobs = whole.shape[0]
    left, owed, now_on = left0.copy(), owed0.copy(), now_on0.copy()
    again = restart.copy()
    stays = held.copy()
    alive = np.ones(jobs, np.bool_)
    chosen = np.empty(jobs, np.int64)
    dollars, first_wake, todo = 0.0, FAR, jobs
    is_first = True
    for _ in range(20 * jobs + 20):
        wake = dispatch(now, alive, left, whole, owed, again, pay, due, weight, now_on, stays, noise, rate, device, gpus, size, quota, nodes, capacity, congestion, ahead, waiting_loss, chosen)
        if is_first:
            first[:] = chosen
            first_wake = wake
            is_first = False
        soonest, spent = wake, 0.0
        for j in range(jobs):
            if not alive[j]:
                continue
            c = chosen[j]
            if c != now_on[j]:
                if now_on[j] >= 0:
                    again[j] = pay[j]
                owed[j] = again[j] if c >= 0 else 0.0
                now_on[j] = c
            if c >= 0:
                again[j] = pay[j]
                if keeps:
                    stays[j] = True
                spent += rate[c]
                tau = owed[j] + left[j] * whole[j, c]
                if tau < soonest:
                    soonest = tau
        if soonest >= FAR:
            return FAR, first_wake
        now += soonest
        dollars += spent * soonest
        for j in range(jobs):
            c = now_on[j]
            if not alive[j] or c < 0:
                continue
            worked = soonest - owed[j]
            owed[j] = max(0.0, -worked)
            if worked > 0:
                left[j] -= worked / whole[j, c]
            if left[j] <= 1e-9 and owed[j] <= 0:
                alive[j] = False
                now_on[j] = -1
                todo -= 1
                if now > due[j]:
                    dollars += weight[j] * (now - due[j])
        if todo == 0:
            return dollars, first_wake
        if dollars > limit:
            return FAR, first_wake
    return FAR, first_wake
