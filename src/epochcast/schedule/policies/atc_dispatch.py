"""Who gets what at a moment, by apparent tardiness cost; compiled.

StateArrays, one row per live job; choices c are (device, GPUs). Symbols:

    τ   seconds a job still takes with a choice          λ   price of a GPU second that others wait for
    w   dollars per second of lateness                   K   how far ahead urgency looks, in mean run times

A job prefers the choice with the least  g·τ·(price + λ) + w·lateness.  Where a cheap choice is too slow for the
deadline and a fast one faster than it needs to be, it may begin fast and go on cheap: the two legs meet the deadline
exactly, and the policy asks to be woken in between. Jobs are placed in the order of apparent tardiness cost per GPU

    (w · exp(−slack / (K·mean τ)) + m) / (g·τ)          (Vepsalainen & Morton 1987; m: what a second of waiting adds to
                                                         the job's own bill, because more of its run must then be fast)

A setting may also go by slack, as `local_search.Greedy` does: the least deadline − now − fastest τ first, each
with its cheapest choice that is in time, otherwise its fastest.

Limits: machines cost as their GPUs do in a full one.
"""

from typing import Any, NamedTuple

import numpy as np

from epochcast.schedule.policies.numba_functions import compiled

FAR = 1e30
"""Seconds or dollars that stand for never."""
# On top of choices that are late, for who goes by slack: they come after all that are in time.
LATE_DOLLARS = 1e12
# Seconds below which beginning fast is not worth a decision of its own.
SHORTEST_LEG = 1.0
# How far ahead, in mean run times, a waiting job raises the price of a GPU.
PRICE_AHEAD = 1.0


class DispatchQueue(NamedTuple):
    """The jobs.

    `run_seconds[j, c]`: the whole run; `restart`: owed if it starts now with another choice; `pay`: for a later change;
    `least` and `fastest`: dollars and seconds of the cheapest and of the fastest whole run; `steps[j, :]`: choices of
    which none is slower and dearer than another, from fast to slow, then −1.
    """

    left: Any
    run_seconds: Any
    owed: Any
    restart: Any
    pay: Any
    due: Any
    weight: Any
    now_on: Any
    held: Any
    least: Any
    fastest: Any
    steps: Any


class DispatchPlaces(NamedTuple):
    """The choices and the machines: `rate[c]` dollars per second, `size[d]` GPUs of a device's largest machine."""

    rate: Any
    device: Any
    gpus: Any
    size: Any
    quota: Any
    nodes: int
    capacity: float


class RollOutSetting(NamedTuple):
    """How a roll-out decides. `patience`: another choice than the best may cost so many times as much.

    `by_slack`: by time to spare instead, and none of the first three counts.
    """

    congestion: float
    ahead: float
    waiting_loss: float
    patience: float
    may_change: bool
    keeps: bool
    by_slack: bool


class ChoiceCosts(NamedTuple):
    """Of every job: dollars, when to change (leg) and what waiting loses by choice; the best choice and its seconds."""

    dollars: Any
    leg: Any
    loss: Any
    best: Any
    tau: Any


class DispatchRoom(NamedTuple):
    """Machines while a decision is made: `free[d, k]` have k free GPUs; `opened[d]` are rented, `used[0]` in all."""

    free: Any
    opened: Any
    used: Any


class DispatchBuffers(NamedTuple):
    """What a decision is worked out on."""

    wishes: ChoiceCosts
    room: DispatchRoom


@compiled
def _seconds_left(queue: DispatchQueue, job: int, choice: int) -> float:
    """Until the end with a choice, restart included where that is a change."""
    begin = queue.owed[job] if choice == queue.now_on[job] else queue.restart[job]
    return float(begin + queue.left[job] * queue.run_seconds[job, choice])


@compiled
def _legs(
    queue: DispatchQueue, place: DispatchPlaces, wishes: ChoiceCosts, job: int, now: float, on_top: float, step: int
) -> None:
    """Try to begin with a step c, which is in time, and to go on with a slower d that is not: the deadline is met.

    `on_top` is λ. The dollars of the best such pair, when to change, and what a second of waiting would add.
    """
    c = queue.steps[job, step]
    begin = queue.owed[job] if c == queue.now_on[job] else queue.restart[job]
    left, fast = queue.left[job], queue.run_seconds[job, c]
    first = place.rate[c] + on_top * place.gpus[c]
    # begin + x + pay + y = spare and x/fast + y/slow = left
    spare = queue.due[job] - now - begin - queue.pay[job]
    best = wishes.dollars[job, c] * (1 - 1e-9)
    for after in range(step + 1, queue.steps.shape[1]):
        d = queue.steps[job, after]
        if d < 0:
            break
        slow = queue.run_seconds[job, d]
        then = place.rate[d] + on_top * place.gpus[d]
        if then >= first or slow * left <= spare:
            continue
        x = (left * slow - spare) * fast / (slow - fast)
        y = spare - x
        if x <= SHORTEST_LEG or y <= 0:
            continue
        dollars = (begin + x) * first + (queue.pay[job] + y) * then
        if dollars < best:
            best = dollars
            wishes.dollars[job, c] = dollars
            wishes.leg[job, c] = begin + x
            gain = (place.rate[c] - place.rate[d]) * fast / (slow - fast) - place.rate[d]
            wishes.loss[job, c] = max(0.0, gain)


@compiled
def _wish(
    queue: DispatchQueue,
    place: DispatchPlaces,
    wishes: ChoiceCosts,
    job: int,
    now: float,
    on_top: float,
    may_change: bool,
) -> None:
    """Fill in what a job wants."""
    least, best, seconds = FAR, 0, FAR
    for c in range(place.rate.shape[0]):
        wishes.leg[job, c], wishes.loss[job, c], wishes.dollars[job, c] = FAR, 0.0, FAR
        if queue.run_seconds[job, c] >= FAR:
            continue
        tau = _seconds_left(queue, job, c)
        late = now + tau - queue.due[job]
        wishes.dollars[job, c] = tau * (place.rate[c] + on_top * place.gpus[c])
        if late > 0:
            wishes.dollars[job, c] += queue.weight[job] * late
        if wishes.dollars[job, c] < least:
            least, best, seconds = wishes.dollars[job, c], c, tau
    wishes.best[job], wishes.tau[job] = best, seconds
    if not may_change or now + _seconds_left(queue, job, queue.steps[job, 0]) >= queue.due[job]:
        return
    for step in range(queue.steps.shape[1] - 1):
        c = queue.steps[job, step]
        if c < 0:
            break
        tau = _seconds_left(queue, job, c)
        if now + tau - queue.due[job] >= -1e-6 * tau:
            break
        _legs(queue, place, wishes, job, now, on_top, step)
        if wishes.dollars[job, c] < least:
            least, wishes.best[job], wishes.tau[job] = wishes.dollars[job, c], c, tau


@compiled
def _plain_wish(queue: DispatchQueue, place: DispatchPlaces, wishes: ChoiceCosts, job: int, now: float) -> None:
    """Fill in what a job wants that goes by slack; its seconds are those of its fastest choice."""
    least, best, fastest = FAR, 0, FAR
    for c in range(place.rate.shape[0]):
        wishes.leg[job, c], wishes.loss[job, c], wishes.dollars[job, c] = FAR, 0.0, FAR
        if queue.run_seconds[job, c] >= FAR:
            continue
        tau = _seconds_left(queue, job, c)
        in_time = now + tau <= queue.due[job]
        wishes.dollars[job, c] = tau * place.rate[c] if in_time else LATE_DOLLARS + tau
        fastest = min(fastest, tau)
        if wishes.dollars[job, c] < least:
            least, best = wishes.dollars[job, c], c
    wishes.best[job], wishes.tau[job] = best, fastest


@compiled
def _urgency(slack: float, scale: float) -> float:
    return float(np.exp(-slack / scale)) if slack > 0 else 1.0


@compiled
def _ranked(
    queue: DispatchQueue,
    place: DispatchPlaces,
    setting: RollOutSetting,
    wishes: ChoiceCosts,
    live: Any,
    now: float,
    noise: Any,
    mean: float,
) -> Any:
    """Live jobs, the most urgent first; those that are held to their GPUs before all others."""
    index = np.empty(live.shape[0])
    for n in range(live.shape[0]):
        j = live[n]
        if queue.held[j]:
            index[n] = -FAR
            continue
        if setting.by_slack:
            index[n] = queue.due[j] - now - wishes.tau[j] - np.log(noise[j]) * mean
            continue
        best = wishes.best[j]
        urgency = _urgency(queue.due[j] - now - wishes.tau[j], setting.ahead * mean)
        worth = (queue.weight[j] + 1e-12) * urgency + setting.waiting_loss * wishes.loss[j, best]
        index[n] = -worth / (place.gpus[best] * wishes.tau[j]) * noise[j]
    return live[np.argsort(index)]


@compiled
def _take(place: DispatchPlaces, room: DispatchRoom, choice: int) -> bool:
    """GPUs of the fullest open machine that has room, or of a new one."""
    d, g = place.device[choice], place.gpus[choice]
    for k in range(g, place.size[d]):
        if room.free[d, k] > 0:
            room.free[d, k] -= 1
            room.free[d, k - g] += 1
            return True
    if g > place.size[d] or room.used[0] >= place.nodes or room.opened[d] >= place.quota[d]:
        return False
    room.opened[d] += 1
    room.used[0] += 1
    room.free[d, place.size[d] - g] += 1
    return True


@compiled
def _is_full(place: DispatchPlaces, room: DispatchRoom) -> bool:
    """Whether no GPU is left, and no machine may be rented."""
    return bool(room.used[0] >= place.nodes and room.free[:, 1:].sum() == 0)


@compiled
def _first_fitting(
    queue: DispatchQueue,
    place: DispatchPlaces,
    wishes: ChoiceCosts,
    setting: RollOutSetting,
    room: DispatchRoom,
    job: int,
) -> int:
    """The best choice of a job that has room, or −1."""
    if queue.held[job]:
        _take(place, room, queue.now_on[job])
        return int(queue.now_on[job])
    c = wishes.best[job]
    if _take(place, room, c):
        return int(c)
    most = setting.patience * wishes.dollars[job, c]
    last, tried = wishes.dollars[job, c], c
    for _ in range(place.rate.shape[0] - 1):
        # The next dearer one; among equals by number.
        c, least = -1, FAR
        for other in range(place.rate.shape[0]):
            dollars = wishes.dollars[job, other]
            if dollars < least and (dollars > last or (dollars == last and other > tried)):
                c, least = other, dollars
        if c < 0 or least > most:
            return -1
        if _take(place, room, c):
            return int(c)
        last, tried = least, c
    return -1


@compiled
def _place_all(
    queue: DispatchQueue,
    place: DispatchPlaces,
    setting: RollOutSetting,
    buffers: DispatchBuffers,
    live: Any,
    now: float,
    noise: Any,
    on_top: float,
    chosen: Any,
) -> tuple[float, float]:
    """Give every job its wish, in order, while there is room.

    Returns when the first leg ends, and what those that wait would pay for a second, in dollars.
    """
    wishes, room, total = buffers.wishes, buffers.room, 0.0
    for n in range(live.shape[0]):
        if setting.by_slack:
            _plain_wish(queue, place, wishes, live[n], now)
        else:
            _wish(queue, place, wishes, live[n], now, on_top, setting.may_change)
        total += wishes.tau[live[n]]
    mean = total / max(1, live.shape[0])
    ranked = _ranked(queue, place, setting, wishes, live, now, noise, mean)
    room.free[:], room.opened[:], room.used[0] = 0, 0, 0
    wake, waiting, is_full = FAR, 0.0, False
    for n in range(ranked.shape[0]):
        j = ranked[n]
        c = -1 if is_full else _first_fitting(queue, place, wishes, setting, room, j)
        chosen[j] = c
        if c >= 0:
            wake = min(wake, FAR if queue.held[j] else wishes.leg[j, c])
        else:
            is_full = is_full or _is_full(place, room)
            waiting += queue.weight[j] * _urgency(queue.due[j] - now - wishes.tau[j], PRICE_AHEAD * mean)
    return wake, waiting


@compiled
def _room_left(room: DispatchRoom, device: int, gpus: int) -> int:
    """The least room of an open machine that has so many GPUs to spare; 0 where none has."""
    for k in range(gpus, room.free.shape[1]):
        if room.free[device, k] > 0:
            return int(k)
    return 0


@compiled
def _gain(queue: DispatchQueue, place: DispatchPlaces, now: float, job: int, c: int, e: int) -> float:
    """Dollars saved by giving a late job more GPUs."""
    tau, then = _seconds_left(queue, job, c), _seconds_left(queue, job, e)
    late, late_then = max(0.0, now + tau - queue.due[job]), max(0.0, now + then - queue.due[job])
    return float(tau * place.rate[c] - then * place.rate[e] + queue.weight[job] * (late - late_then))


@compiled
def _enlarge(
    queue: DispatchQueue, place: DispatchPlaces, live: Any, now: float, room: DispatchRoom, chosen: Any
) -> None:
    """Give idle GPUs of open machines to running jobs that are late without them, the largest gain first."""
    if room.free[:, 1:].sum() == 0:
        return
    late, many = np.empty(live.shape[0], np.int64), 0
    for n in range(live.shape[0]):
        j = live[n]
        if chosen[j] >= 0 and not queue.held[j] and now + _seconds_left(queue, j, chosen[j]) > queue.due[j]:
            late[many] = j
            many += 1
    for _ in range(live.shape[0]):
        most, winner, better = 1e-9, -1, -1
        for n in range(many):
            j = late[n]
            c = chosen[j]
            for e in range(place.rate.shape[0]):
                more = place.gpus[e] - place.gpus[c]
                is_larger = place.device[e] == place.device[c] and more > 0 and queue.run_seconds[j, e] < FAR
                if is_larger and _room_left(room, place.device[e], more) > 0:
                    gain = _gain(queue, place, now, j, c, e)
                    if gain > most:
                        most, winner, better = gain, j, e
        if winner < 0:
            return
        d, more = place.device[better], place.gpus[better] - place.gpus[chosen[winner]]
        k = _room_left(room, d, more)
        room.free[d, k] -= 1
        room.free[d, k - more] += 1
        chosen[winner] = better


@compiled
def dispatch(
    queue: DispatchQueue,
    place: DispatchPlaces,
    setting: RollOutSetting,
    buffers: DispatchBuffers,
    live: Any,
    now: float,
    noise: Any,
    chosen: Any,
    waited: float,
) -> tuple[float, float]:
    """Who runs from now on with which choice (−1: waits), into `chosen`.

    `waited` is what those that waited until now would have paid for a second: they raise the price. Where that is not
    known (−1), a first attempt finds it out. Returns after how many seconds to look again, and what those that wait
    now would pay.
    """
    is_first = waited < 0
    on_top = 0.0 if is_first else setting.congestion * waited / place.capacity
    wake, waited = _place_all(queue, place, setting, buffers, live, now, noise, on_top, chosen)
    if is_first and setting.congestion * waited > 0:
        on_top = setting.congestion * waited / place.capacity
        wake, _ = _place_all(queue, place, setting, buffers, live, now, noise, on_top, chosen)
    if not setting.by_slack:
        _enlarge(queue, place, live, now, buffers.room, chosen)
    return wake, waited


@compiled
def empty_buffers(queue: DispatchQueue, place: DispatchPlaces) -> DispatchBuffers:
    """Arrays that `dispatch` fills."""
    jobs, choices = queue.run_seconds.shape
    wishes = ChoiceCosts(
        np.empty((jobs, choices)),
        np.empty((jobs, choices)),
        np.empty((jobs, choices)),
        np.empty(jobs, np.int64),
        np.empty(jobs),
    )
    devices = place.size.shape[0]
    room = DispatchRoom(
        np.zeros((devices, place.size.max() + 1), np.int64), np.zeros(devices, np.int64), np.zeros(1, np.int64)
    )
    return DispatchBuffers(wishes, room)


@compiled
def first_decision(
    queue: DispatchQueue, place: DispatchPlaces, setting: RollOutSetting, now: float, noise: Any, chosen: Any
) -> float:
    """`dispatch` of a whole queue, by itself."""
    buffers = empty_buffers(queue, place)
    live = np.arange(queue.left.shape[0])
    return float(dispatch(queue, place, setting, buffers, live, now, noise, chosen, -1.0)[0])
