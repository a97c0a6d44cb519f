"""How right a paired comparison is: its sign, its size, and whether its interval holds the measured change.

python -m studies diff            scores, `result.csv` and docs/accuracy/diff-accuracy.md
python -m studies.diff.run --fit  also writes the widths into src/epochcast/decide/diff/paired.toml
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epochcast.decide.diff.paired_interval import NOTHING, constants
from studies.diff.pairs import Array, Pairs, measured_pairs
from studies.figures_csv import figures_csv

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "accuracy" / "diff-accuracy.md"
WIDTHS = HERE.parents[1] / "src" / "epochcast" / "decide" / "diff" / "paired.toml"
REAL_CHANGE = 0.05
"""Smaller measured changes are not scored by their sign."""
WANTED_SIGN, WANTED_POINTS = 0.97, 0.05
COVERAGE = 0.9
COLUMNS = ("what", "pairs", "changed", "sign", "median_points", "mean_points", "p90_points", "inside")

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure:
    """Scores of some pairs; `changed` are those whose measured change is real, which sign and points are of.

    Points are |forecast - measured| of head ÷ base; every pair counts in both directions.
    """

    what: str
    pairs: int
    changed: int
    sign: float
    median_points: float
    mean_points: float
    p90_points: float
    inside: float


def width(errors: Array, unlike: Array) -> float:
    """c: the least with which nine of ten errors are within c·√u."""
    some = (unlike > 0) & np.isfinite(errors)
    return float(np.quantile(np.abs(errors[some]) / np.sqrt(unlike[some]), COVERAGE))


def inside(pairs: Pairs, forecast: Array) -> Array:
    """1 where the interval holds, its width from the other families alone; NaN where steps are equal."""
    errors = forecast - pairs.measured
    held = np.full(len(pairs), np.nan)
    for family in np.unique(pairs.family):
        mine = pairs.family == family
        half = width(errors[~mine], pairs.unlike[~mine]) * np.sqrt(pairs.unlike[mine])
        held[mine] = np.where(half > 0, np.abs(errors[mine]) <= half, np.nan)
    return held


def figure(what: str, pairs: Pairs, forecast: Array, held: Array, some: Mask) -> Figure:
    """The scores of some of the pairs."""
    measured = pairs.measured
    real = some & (np.abs(np.expm1(np.abs(measured))) > REAL_CHANGE) & np.isfinite(forecast)
    points = np.concatenate([np.abs(np.exp(way * forecast) - np.exp(way * measured))[real] for way in (1, -1)])
    return Figure(
        what,
        int(some.sum()),
        int(real.sum()),
        float(np.mean(np.sign(forecast[real]) == np.sign(measured[real]))),
        float(np.median(points)),
        float(points.mean()),
        float(np.quantile(points, 0.9)),
        float(np.nanmean(held[some])) if np.isfinite(held[some]).any() else float("nan"),
    )


def figures(pairs: Pairs) -> list[Figure]:
    """All pairs by three forecasts, then those with the family left out: by likeness, by change, by family."""
    everything = np.ones(len(pairs), dtype=np.bool_)
    splits = {
        "family never seen": pairs.without_family,
        "GPU never seen": pairs.without_device,
        "as shipped (trained on these steps)": pairs.shipped,
    }
    found = [figure(f"all, {name}", pairs, one, inside(pairs, one), everything) for name, one in splits.items()]
    forecast, held = pairs.without_family, inside(pairs, pairs.without_family)
    cuts = [
        *_cuts("unlikeness", pairs.unlike, (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 1.2, 1.5)),
        *_cuts("measured change", np.expm1(np.abs(pairs.measured)), (0.05, 0.1, 0.2, 0.5, 1.0, 20.0)),
        *((str(name), pairs.family == name) for name in np.unique(pairs.family)),
    ]
    cut_figures = [figure(what, pairs, forecast, held, some) for what, some in cuts if _has_real(pairs, some)]
    return [*found, *cut_figures]


def _cuts(what: str, values: Array, edges: tuple[float, ...]) -> Iterator[tuple[str, Mask]]:
    for low, high in pairwise(edges):
        yield f"{what} {low:g} to {high:g}", (values >= low) & (values < high)


def _has_real(pairs: Pairs, some: Mask) -> bool:
    return bool((np.expm1(np.abs(pairs.measured[some])) > REAL_CHANGE).any())


def wrong_signs(pairs: Pairs) -> list[tuple[str, int]]:
    """The networks that most pairs with a wrong sign have in common."""
    real = np.expm1(np.abs(pairs.measured)) > REAL_CHANGE
    wrong = real & (np.sign(pairs.without_family) != np.sign(pairs.measured))
    names, counts = np.unique(np.concatenate([pairs.base[wrong], pairs.head[wrong]]), return_counts=True)
    return [(str(names[place]), int(counts[place])) for place in np.argsort(-counts, kind="stable")[:12]]


def containments(pairs: Pairs) -> tuple[int, int]:
    """Pairs in which one step has next to nothing that the other has not, and how many of the larger were faster."""
    grows = (pairs.base_alone < NOTHING) & (pairs.head_alone > 2 * NOTHING)
    shrinks = (pairs.head_alone < NOTHING) & (pairs.base_alone > 2 * NOTHING)
    changes = np.concatenate([pairs.measured[grows], -pairs.measured[shrinks]])
    return len(changes), int((changes < 0).sum())


def fitted_widths(pairs: Pairs) -> dict[str, float]:
    """c of all pairs, for devices with measured steps and for others."""
    errors = {"known": pairs.without_family, "unseen": pairs.without_device}
    return {name: round(width(one - pairs.measured, pairs.unlike), 3) for name, one in errors.items()}


def other_counts(pairs: Pairs) -> dict[str, float]:
    """The median of points, counted otherwise: the mean of both directions of a pair, or one direction alone."""
    real = np.expm1(np.abs(pairs.measured)) > REAL_CHANGE
    forecast, measured = pairs.without_family[real], pairs.measured[real]
    slower, faster = (
        np.abs(np.exp(way * forecast) - np.exp(way * measured)) for way in (np.sign(measured), -np.sign(measured))
    )
    counted = {"mean": (slower + faster) / 2, "slower": slower, "faster": faster}
    return {name: 100 * float(np.nanmedian(points)) for name, points in counted.items()}


def page(pairs: Pairs, all_figures: list[Figure]) -> str:
    """docs/accuracy/diff-accuracy.md, failures first."""
    main = all_figures[0]
    widths = fitted_widths(pairs)
    names = ", ".join(f"{name} ({count})" for name, count in wrong_signs(pairs))
    count, faster = containments(pairs)
    by_family = [one for one in all_figures[3:] if not one.what.startswith(("unlikeness", "measured"))]
    other = [one for one in all_figures[3:] if one not in by_family]
    largest = max(by_family, key=lambda one: one.pairs)
    return (
        "\n\n".join(
            [
                "# Comparisons, measured",
                INTRODUCTION.format(pairs=len(pairs), families=len(np.unique(pairs.family))),
                _targets(main),
                COUNTS.format(both=100 * main.median_points, **other_counts(pairs)),
                f"Networks in most of the pairs whose sign is wrong: {names}.\n\n{WHY}",
                "\n".join(_table(all_figures[:3])),
                "## By how unlike the steps are, and by the size of the change",
                BY_CUT,
                "\n".join(_table(other)),
                "## By family, the worst first",
                "\n".join(_table(sorted(by_family, key=lambda one: (one.sign, -one.median_points)))),
                "## The interval of a change",
                WIDTH.format(
                    **widths,
                    count=count,
                    faster=faster,
                    outside=main.inside,
                    families=_mean_of(by_family),
                    family=largest.what,
                    most=largest.pairs / len(pairs),
                ),
            ]
        )
        + "\n"
    )


def _mean_of(rows: list[Figure]) -> float:
    """How often the interval holds where every family counts the same."""
    return float(np.nanmean([one.inside for one in rows]))


def _targets(main: Figure) -> str:
    sign = "met" if main.sign >= WANTED_SIGN else f"missed by {100 * (WANTED_SIGN - main.sign):.1f} points"
    size = "met by this count" if main.median_points <= WANTED_POINTS else "missed"
    return (
        f"| target | ours | |\n|---|---|---|\n"
        f"| sign right in 97 % where the measured change exceeds 5 % | {100 * main.sign:.1f} % | {sign} |\n"
        f"| size within 5 points (median) | {100 * main.median_points:.1f} points | {size} |"
    )


def _table(rows: list[Figure]) -> list[str]:
    lines = [
        "| pairs | n | change > 5 % | sign right, % | points, median | mean | p90 | inside the interval, % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        numbers = (one.sign, one.median_points, one.mean_points, one.p90_points, one.inside)
        cells = " | ".join(f"{100 * number:.1f}" for number in numbers)
        lines.append(f"| {one.what} | {one.pairs} | {one.changed} | {cells} |")
    return lines


def main() -> int:
    """Score, write; an exit code of 1 where the shipped widths are not those of the pairs."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--fit", action="store_true", help="write paired.toml")
    is_fit = arguments.parse_args().fit
    pairs = measured_pairs(Path(os.environ["EPOCHCAST_DATA"]))
    all_figures = figures(pairs)
    (HERE / "result.csv").write_text(figures_csv(COLUMNS, all_figures), encoding="utf-8")
    PAGE.write_text(page(pairs, all_figures), encoding="utf-8")
    widths = fitted_widths(pairs)
    if is_fit:
        WIDTHS.write_text(TOML.format(pairs=len(pairs), **widths), encoding="utf-8")
    elif any(abs(constants()[name] - value) > 0.01 for name, value in widths.items()):
        print(f"paired.toml has {dict(constants())}, the pairs say {widths}: run with --fit")
        return 1
    for one in all_figures[:3]:
        print(f"{one.what}: sign {one.sign:.1%}, median {one.median_points:.1%}, inside {one.inside:.1%}")
    return 0


INTRODUCTION = """\
How right `epochcast diff` is about a *change*, on {pairs} pairs of timm networks of {families} families: both trained
on the same GPU (RTX 3090 or RTX 4090) by the same benchmark, in mixed precision, in the same layout, at the same
batch and input size. Points are the difference between forecast and measured head ÷ base, in percent; every pair
counts in both directions. By `python -m studies diff`; the forecasts with the family or the GPU never seen are those
of `studies/accuracy/left_out.csv`.

"Family never seen" is by the first word of a name: a left-out `resnet` may have a relative under another name in the
training ([accuracy](accuracy.md) counts them). Each is the answer of one net, where the shipped model is the mean of
three. Kernels are compared by the shipped model's seconds. All rows are of convolutional and vision networks on two
GPUs: what holds for language models, other devices and several GPUs was not measured here."""

COUNTS = """\
How the size is counted decides it. {both:.1f} points is the median over both directions of every pair, each on its own.
That count was chosen after another had been seen: with the mean of the two directions of each pair the median is
{mean:.1f}. From the faster network to the slower one alone it is {slower:.1f}, the other way round {faster:.1f}."""

WHY = """\
Networks with `rpn` in their name (transformers whose norms stand behind their blocks) ran up to half again as long as
their twins of nearly the same work; the forecast knows no reason for it."""

BY_CUT = """\
Family never seen. Unlikeness is *u* of [the interval](../explanation/intervals.md#how-sure-a-change-is): 0 is the same
step, √2 nothing in common. A change in a pull request is mostly below 0.4."""

WIDTH = """\
log(head ÷ base) is within ±c·√u in nine of ten pairs with c = {known} (family never seen) and {unseen} (GPU never
seen); these are shipped. The form √u was chosen on these pairs, of powers from 0.35 to 1, for the most even coverage.
"Inside the interval" above takes c from the other families alone, which is {outside:.0%} of all pairs, and
{families:.0%} where every family counts the same: {most:.0%} of the pairs are of the family `{family}`, and the
others have smaller errors. In {count} pairs one step has less than 1 % that the other has not, and the other more
than 2 %: the larger was faster in {faster} of them. So such a change is taken to have a sign."""

TOML = """\
# How far log(head ÷ base) of a step is off in nine of ten pairs, over √u (`paired.py`).
# Written by `python -m studies.diff.run --fit`.

[known]
log_error = {known}
source = "studies/diff: {pairs} pairs of timm networks of one family, RTX 3090 and RTX 4090, mixed precision, same \
batch; the family left out of the cost model's training"

[unseen]
log_error = {unseen}
source = "studies/diff: the same pairs, with the GPU left out of the cost model's training"
"""

if __name__ == "__main__":
    raise SystemExit(main())
