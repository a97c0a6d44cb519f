"""Siblings: devices of one vendor and generation of which one has at least the other's rates: every peak, at the boost
clock and at the one that its power sustains (`hardware.power_law`), and the bandwidth. What is fitted for each alone is
noisy, and would make the faster one slower now and then.

Of every component of speed (a rate, or how quickly a group of ops runs), logarithms y with weights w are moved until
y_slow − y_fast ≤ slack for all pairs, by projecting on the bound that is missed most: both ends move, the one with less
weight more (Agmon 1954, "The relaxation method for linear inequalities"). What is left after that, a rounding, is
taken off the slower ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from epochcast.hardware.device import Device
from epochcast.hardware.power_law import sustained_peak

Pairs = Sequence[tuple[str, str]]

# Logarithms closer than this are equal, and how often the worst pair may be looked for.
_NEAR, _ROUNDS = 1e-7, 20_000


def is_sibling(slower: Device, faster: Device) -> bool:
    """Whether `faster` has at least the rates of `slower`, and is of the same vendor and generation."""
    if (slower.vendor, slower.generation, slower.kind) != (faster.vendor, faster.generation, faster.kind):
        return False
    peaks, more = slower.peak_flops_per_second, faster.peak_flops_per_second
    return (
        set(peaks) <= set(more)
        and all(more[math] >= peak for math, peak in peaks.items())
        and all(sustained_peak(faster, math) >= sustained_peak(slower, math) for math in peaks)
        and faster.memory_bytes_per_second >= slower.memory_bytes_per_second
    )


def sibling_pairs(devices: Sequence[Device]) -> Pairs:
    """Names of (slower, faster) siblings; boards that are equal appear both ways."""
    return [(a.name, b.name) for a in devices for b in devices if a.name != b.name and is_sibling(a, b)]


def ordered(
    values: Mapping[str, float],
    weights: Mapping[str, float],
    pairs: Pairs,
    slacks: Sequence[float] | None = None,
) -> dict[str, float]:
    """Values in which no slower sibling has more than a faster one and the slack of the pair, none by default."""
    names = list(values)
    places = {name: place for place, name in enumerate(names)}
    usable = [place for place, (slow, fast) in enumerate(pairs) if slow in places and fast in places]
    if not usable:
        return dict(values)
    slow = np.array([places[pairs[place][0]] for place in usable])
    fast = np.array([places[pairs[place][1]] for place in usable])
    slack = np.zeros(len(usable)) if slacks is None else np.array([slacks[place] for place in usable])
    level = np.array([values[name] for name in names])
    weight = np.array([weights[name] for name in names])
    for _ in range(_ROUNDS):
        missed = level[slow] - level[fast] - slack
        worst = int(missed.argmax())
        if missed[worst] <= _NEAR:
            break
        slower, faster = slow[worst], fast[worst]
        share = weight[faster] / (weight[slower] + weight[faster])
        level[slower] -= missed[worst] * share
        level[faster] += missed[worst] * (1 - share)
    while (missed := level[slow] - level[fast] - slack).max() > 0:
        np.minimum.at(level, slow, level[fast] + slack)
        if missed.max() < 1e-12:  # what rounding makes of equal boards
            break
    return dict(zip(names, level.tolist(), strict=True))
