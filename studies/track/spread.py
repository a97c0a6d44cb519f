"""The quantiles of `tracking/spread.toml`: fitted on all logs, their coverage measured across two halves of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, log

import numpy as np

from studies.track.replay import PERCENTS, Case

FLOOR = 0.02
COVERAGE = 0.9


@dataclass(frozen=True)
class Fitted:
    """|score| within which nine of ten lie, by percent; and coverage of each half under the other's quantiles."""

    quantiles: dict[int, float]
    coverage: dict[int, float]
    logs: int


def usable(found: Sequence[Case]) -> list[Case]:
    """Runs without restarts that have an answer, and whose clock was read rightly."""
    return [c for c in found if c.restarts == 0 and c.doubt is not None and c.told_seconds["epochcast"] and is_open(c)]


def is_open(case: Case) -> bool:
    return case.left_seconds > 0 and not case.is_misread


def fit(found: Sequence[Case]) -> Fitted:
    kept = usable(found)
    inside = {
        percent: [
            score(case) <= quantile([c for c in kept if c.percent == percent and half(c) != half(case)])
            for case in kept
            if case.percent == percent
        ]
        for percent in PERCENTS
    }
    return Fitted(
        quantiles={percent: quantile([c for c in kept if c.percent == percent]) for percent in PERCENTS},
        coverage={percent: float(np.mean(hits)) for percent, hits in inside.items()},
        logs=len({case.log for case in kept}),
    )


def half(case: Case) -> int:
    """Files in two halves by their number; the same model trained twice is often in both neighbours, so in one half."""
    return int(case.log.removeprefix("L")) // 2 % 2


def score(case: Case) -> float:
    told, doubt = case.told_seconds["epochcast"], case.doubt
    assert told is not None and doubt is not None
    return abs(log(case.left_seconds / told)) / hypot(FLOOR, doubt)


def quantile(kept: Sequence[Case]) -> float:
    """The finite-sample quantile of split conformal prediction: ⌈0.9·(n + 1)⌉ of n."""
    scores = [score(case) for case in kept]
    return float(np.quantile(scores, min(1.0, COVERAGE * (len(scores) + 1) / len(scores))))


def as_toml(fitted: Fitted) -> str:
    quantiles = [round(fitted.quantiles[percent], 2) for percent in PERCENTS]
    coverage = ", ".join(f"{percent} %: {share:.0%}" for percent, share in fitted.coverage.items())
    return (
        f'source = "python -m studies track: {fitted.logs} real logs without restarts; coverage of each half '
        f'under the quantiles of the other: {coverage}"\n'
        f"floor = {FLOOR}\n"
        f"fractions = {[percent / 100 for percent in PERCENTS]}\n"
        f"low = {[-value for value in quantiles]}\n"
        f"high = {quantiles}\n"
    )
