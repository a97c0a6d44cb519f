"""When real runs end, told at 1 to 50 % of their time: ours against tqdm, means, medians and the log's own estimate.

    python -m studies track        writes docs/track.md, docs/track-fan.svg and tracking/spread.toml; about a minute

The logs are other people's, of many licences: they are read from a folder beside the data and never copied.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from studies.track.fan import draw
from studies.track.replay import PERCENTS, RIVALS, Case, cases, logs_folder
from studies.track.spread import as_toml, fit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "track.md"
BEGIN, END = "<!-- measured: written by python -m studies track -->\n", "<!-- end of measured -->"
METHODS = ("epochcast", *RIVALS, "log's ETA")
# What the study must not fall behind: median and 90th percentile of the error at 10 and at 50 %.
LIMITS = {10: (0.015, 0.3), 50: (0.005, 0.13)}


def main() -> int:
    folder = logs_folder()
    if not (folder / "index.csv").exists():
        print(f"no logs in {folder}")
        return 0
    found = list(cases(folder))
    fitted = fit(found)
    (ROOT / "src/epochcast/tracking/spread.toml").write_text(as_toml(fitted), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(head + BEGIN + _measured(found, fitted.coverage) + END + tail, encoding="utf-8")
    draw(found, ROOT / "docs" / "track-fan.svg")
    print(_table([case for case in found if case.restarts == 0]))
    return 1 if _failures(found) else 0


def _failures(found: Sequence[Case]) -> list[str]:
    failures = []
    for percent, limits in LIMITS.items():
        kept = [case for case in found if case.restarts == 0 and case.percent == percent]
        for name, value, limit in zip(("median", "p90"), _score(kept, "epochcast"), limits, strict=True):
            if value > limit:
                failures.append(f"{name} at {percent} % is {value:.1%}, more than {limit:.1%}")
    print("\n".join(failures))
    return failures


def _score(kept: Sequence[Case], method: str) -> tuple[float, float]:
    errors = [abs(error) for case in kept if (error := case.error(method)) is not None]
    return (median(errors), float(np.percentile(errors, 90))) if errors else (float("nan"), float("nan"))


def _is_answered(case: Case, method: str) -> bool:
    """By the method and by all that can answer from two reports, so that all are scored on the same runs."""
    return all(case.error(name) is not None for name in (method, "epochcast", *RIVALS))


def _table(kept: Sequence[Case]) -> str:
    lines = [f"| | {' | '.join(f'{percent} %' for percent in PERCENTS)} |", "|---" * (len(PERCENTS) + 1) + "|"]
    for method in METHODS:
        cells = []
        for percent in PERCENTS:
            here = [case for case in kept if case.percent == percent and _is_answered(case, method)]
            middle, high = _score(here, method)
            cells.append(f"{100 * middle:.2f} / {100 * high:.1f} ({len(here)})" if here else "–")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _measured(found: Sequence[Case], coverage: dict[int, float]) -> str:
    whole = [case for case in found if case.restarts == 0]
    again = [case for case in found if case.restarts]
    worst = sorted(
        (case for case in whole if case.percent == 10 and case.error("epochcast") is not None),
        key=lambda case: -abs(case.error("epochcast") or 0.0),
    )[:10]
    silent = sum(1 for case in whole if case.percent == 10 and case.error("epochcast") is None)
    lost = [
        f"| {case.format} | {100 * (case.error('epochcast') or 0):+.0f} % | "
        + ("–" if (mean := case.error("mean so far")) is None else f"{100 * mean:+.0f} %")
        + f" | {'the clock was misread' if case.is_misread else ''} |"
        for case in worst
    ]
    told = ", ".join(f"{share:.0%} at {percent} %".replace("%", " %", 1) for percent, share in coverage.items())
    return "\n".join(
        [
            f"### Where it fails\n\nThe ten worst of {len({case.log for case in whole})} runs without restarts, told "
            f"at 10 % of their time; {silent} more had not timed a step by then.\n",
            "| format | error of the total | mean so far | |",
            "|---|---|---|---|",
            *lost,
            "\n### Error of the total\n\nMedian / 90th percentile in % (number of runs, "
            "all but the log's own ETA on the same); runs without restarts, steps in all given.\n",
            _table(whole),
            f"Runs with restarts ({len({case.log for case in again})}): nobody foresees the time between attempts, "
            "nor runs appended to one file.\n",
            _table(again),
            f"Coverage of the 90 % interval, each half of the logs under quantiles of the other: {told}.\n",
            "![Told over true total, at 1 to 50 % of the run: the band narrows](track-fan.svg)\n",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
