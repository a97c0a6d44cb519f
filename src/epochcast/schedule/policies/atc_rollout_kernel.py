"""Roll-outs, compiled: a queue is played to its end by `dispatching`, to see what its first decision leads to.

A roll-out ends early when its bill so far, and the least that the jobs still there can pay, are above the best bill
that is known.

Limits: boot times are left out; jobs that have not come yet are not seen.
"""

from typing import Any

import numpy as np

from epochcast.schedule.policies.atc_dispatch import (
    FAR,
    DispatchPlaces,
    DispatchQueue,
    RollOutSetting,
    dispatch,
    empty_buffers,
)
from epochcast.schedule.policies.numba_functions import compiled


@compiled
def _start(
    queue: DispatchQueue, place: DispatchPlaces, setting: RollOutSetting, live: Any, chosen: Any
) -> tuple[float, float]:
    """Let a decision hold: what changes owes a restart. Returns dollars per second, and when the first job ends."""
    spent, soonest = 0.0, FAR
    for n in range(live.shape[0]):
        j = live[n]
        c = chosen[j]
        if c != queue.now_on[j]:
            if queue.now_on[j] >= 0:
                queue.restart[j] = queue.pay[j]
            queue.owed[j] = queue.restart[j] if c >= 0 else 0.0
            queue.now_on[j] = c
        if c >= 0:
            queue.restart[j] = queue.pay[j]
            queue.held[j] = queue.held[j] or setting.keeps
            spent += place.rate[c]
            soonest = min(soonest, queue.owed[j] + queue.left[j] * queue.run_seconds[j, c])
    return spent, soonest


@compiled
def _work(queue: DispatchQueue, live: Any, now: float, seconds: float) -> tuple[float, float, int]:
    """Let time pass until `now`. Who is still there is moved to the front of `live`.

    Returns what lateness costs those that end, the least that the others can still pay, and how many they are.
    """
    late_dollars, least, many = 0.0, 0.0, 0
    for n in range(live.shape[0]):
        j = live[n]
        c = queue.now_on[j]
        if c >= 0:
            worked = seconds - queue.owed[j]
            queue.owed[j] = max(0.0, -worked)
            if worked > 0:
                queue.left[j] -= worked / queue.run_seconds[j, c]
            if queue.left[j] <= 1e-9 and queue.owed[j] <= 0:
                late_dollars += queue.weight[j] * max(0.0, now - queue.due[j])
                continue
        live[many] = j
        many += 1
        least += queue.left[j] * queue.least[j]
        late = now + queue.left[j] * queue.fastest[j] - queue.due[j]
        if late > 0:
            least += queue.weight[j] * late
    return late_dollars, least, many


@compiled
def roll_out(
    jobs: DispatchQueue,
    place: DispatchPlaces,
    setting: RollOutSetting,
    now: float,
    noise: Any,
    first: Any,
    limit: float,
) -> tuple[float, float, int]:
    """Dollars until the last job has ended, when the first decision wants to be looked at again, and the work.

    The first decision is left in `first`; the jobs stay as they were. It ends as soon as the bill must become larger
    than `limit`. The work is the number of jobs looked at, over all decisions.
    """
    queue = DispatchQueue(
        jobs.left.copy(), jobs.run_seconds, jobs.owed.copy(), jobs.restart.copy(), jobs.pay, jobs.due, jobs.weight,
        jobs.now_on.copy(), jobs.held.copy(), jobs.least, jobs.fastest, jobs.steps,
    )  # fmt: skip
    many = queue.left.shape[0]
    every, chosen = np.arange(many), np.empty(many, np.int64)
    buffers = empty_buffers(queue, place)
    dollars, first_wake, work, waited = 0.0, FAR, 0, -1.0
    for event in range(20 * many + 20):
        live = every[:many]
        work += many
        wake, waited = dispatch(queue, place, setting, buffers, live, now, noise, chosen, waited)
        if event == 0:
            first[:] = chosen
            first_wake = wake
        spent, ends = _start(queue, place, setting, live, chosen)
        seconds = min(wake, ends)
        if seconds >= FAR:
            break
        now += seconds
        late_dollars, least, many = _work(queue, live, now, seconds)
        dollars += spent * seconds + late_dollars
        if many == 0:
            return dollars, first_wake, work
        if dollars + least > limit:
            break
    return FAR, first_wake, work
