"""Errors of the total as a table: every method at every cut, on the same runs."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from studies.track.replay import PERCENTS, RIVALS, Case

METHODS = ("epochcast", *RIVALS, "log's ETA")


def score(kept: Sequence[Case], method: str) -> tuple[float, float]:
    errors = [abs(error) for case in kept if (error := case.error(method)) is not None]
    return (median(errors), float(np.percentile(errors, 90))) if errors else (float("nan"), float("nan"))


def is_answered(case: Case, method: str) -> bool:
    """By the method and by all that can answer from two reports, so that all are scored on the same runs."""
    return all(case.error(name) is not None for name in (method, "epochcast", *RIVALS))


def table(kept: Sequence[Case]) -> str:
    lines = [f"| | {' | '.join(f'{percent} %' for percent in PERCENTS)} |", "|---" * (len(PERCENTS) + 1) + "|"]
    for method in METHODS:
        cells = []
        for percent in PERCENTS:
            here = [case for case in kept if case.percent == percent and is_answered(case, method)]
            middle, high = score(here, method)
            cells.append(f"{100 * middle:.2f} / {100 * high:.1f} ({len(here)})" if here else "–")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join([*lines, _in_hindsight(kept)]) + "\n"


def _in_hindsight(kept: Sequence[Case]) -> str:
    """The smallest error of all methods, run by run: what no choice between them can go below."""
    cells = []
    for percent in PERCENTS:
        here = [case for case in kept if case.percent == percent and is_answered(case, "epochcast")]
        least = [min(abs(error) for name in METHODS if (error := case.error(name)) is not None) for case in here]
        cells.append(f"{100 * median(least):.2f} / {100 * float(np.percentile(least, 90)):.1f}" if least else "–")
    return f"| *the best of them for each run, in hindsight* | {' | '.join(cells)} |"


def behind(kept: Sequence[Case]) -> list[str]:
    """Where a rival has the lower figure, on the same runs."""
    found = []
    for percent in PERCENTS:
        for method in METHODS[1:]:
            here = [case for case in kept if case.percent == percent and is_answered(case, method)]
            for name, ours, theirs in zip(
                ("median", "p90"), score(here, "epochcast"), score(here, method), strict=True
            ):
                if theirs < ours:
                    found.append(f"{name} at {percent} %: {method} {100 * theirs:.2f}, we {100 * ours:.2f}")
    return [
        f"Behind a rival in {len(found)} of {2 * len(PERCENTS) * (len(METHODS) - 1)} comparisons"
        + (": " + "; ".join(found) if found else "")
        + "."
    ]
