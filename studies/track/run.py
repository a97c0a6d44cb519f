"""When real runs end, told at 1 to 50 % of their time: ours against tqdm, means, medians and the log's own estimate.

    python -m studies track        writes its page of docs/accuracy, the picture and observe/runs/remaining_spread.toml;
    some two minutes

The logs are other people's, of many licences: they are read from a folder beside the data and never copied.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from studies.track import alarms, constants
from studies.track.attempts import attempt_cases
from studies.track.fan import draw
from studies.track.happened import HAPPENED
from studies.track.replay import PERCENTS, Case, cases, logs, logs_folder
from studies.track.spread import Fitted, as_toml, fit, half, in_words
from studies.track.table import behind, score, table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy" / "track-accuracy.md"
BEGIN, END = "<!-- measured: written by python -m studies track -->\n", "<!-- end of measured -->"
# Where the worst are listed.
WORST_AT = (10, 50)
# What the study must not fall behind: median and 90th percentile of the error at 10 and at 50 %.
LIMITS = {10: (0.015, 0.25), 50: (0.004, 0.10)}


def main() -> int:
    folder = logs_folder()
    if not (folder / "index.csv").exists():
        print(f"no logs in {folder}")
        return 0
    found: list[Case] = []
    kept: list[constants.Snapshot] = []
    spans: list[alarms.SpanList] = []
    for log in logs(folder):
        found += [*cases(log), *attempt_cases(log)]
        kept += constants.snapshots(log)
        spans.append(alarms.spans_of(log.seen))
    fitted = fit(found)
    (ROOT / "src/epochcast/observe/runs/remaining_spread.toml").write_text(as_toml(fitted), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    text = _measured(found, fitted) + _beside(kept, spans)
    PAGE.write_text(head + BEGIN + text + END + tail, encoding="utf-8")
    draw(found, ROOT / "docs" / "pictures" / "track-fan.svg")
    print(table([case for case in found if case.restarts == 0]))
    return 1 if _failures(found) else 0


def _failures(found: Sequence[Case]) -> list[str]:
    failures = []
    for percent, limits in LIMITS.items():
        kept = [case for case in found if case.restarts == 0 and case.percent == percent]
        for name, value, limit in zip(("median", "p90"), score(kept, "epochcast"), limits, strict=True):
            if value > limit:
                failures.append(f"{name} at {percent} % is {value:.1%}, more than {limit:.1%}")
    print("\n".join(failures))
    return failures


def _measured(found: Sequence[Case], fitted: Fitted) -> str:
    whole = [case for case in found if case.restarts == 0]
    again = [case for case in found if case.restarts and case.asked == "end"]
    work = [case for case in found if case.asked == "work"]
    attempts = [case for case in found if case.asked == "attempt"]
    return "\n".join(
        [
            _worst(whole),
            "\n### Error of the total\n\nMedian / 90th percentile in % (number of runs, "
            "all but the log's own ETA on the same); runs without restarts, steps in all given.\n",
            table(whole),
            "The same in either half of the logs (by number, neighbours together: often one model trained twice).\n",
            *(table([case for case in whole if half(case) == part]) for part in (0, 1)),
            f"### Runs with restarts\n\n{len({case.log for case in work})} runs, asked for the time of the steps that "
            "are still to be made (replayed ones and those of later attempts given, time between attempts left out):\n",
            table(work),
            "Most of these files hold several runs, one after the other. Asked when the attempt under way has made its "
            f"steps, at 1 to 50 % of each of {_attempts(attempts)} (all that stands before them is known, too):\n",
            table(attempts),
            "To the end of the file nobody can tell: the time until somebody starts the job again, and whole runs "
            "appended to the same file, are in the truth.\n",
            table(again),
            "### The interval\n",
            _coverage(whole, work, attempts, fitted),
            "![Told over true total, at 1 to 50 % of the run: the band narrows](../pictures/track-fan.svg)\n",
        ]
    )


def _worst(whole: Sequence[Case]) -> str:
    return "\n".join(
        [
            f"### Where it fails\n\nThe worst of {len({case.log for case in whole})} runs without restarts.\n",
            *(line for percent in WORST_AT for line in _worst_at(whole, percent)),
            *behind(whole),
        ]
    )


def _worst_at(whole: Sequence[Case], percent: int) -> list[str]:
    here = [case for case in whole if case.percent == percent]
    told = [case for case in here if case.error("epochcast") is not None]
    worst = sorted(told, key=lambda case: -abs(case.error("epochcast") or 0.0))[:10]
    lost = [
        f"| {case.format} | {100 * (case.error('epochcast') or 0):+.0f} % | "
        + ("–" if (mean := case.error("mean so far")) is None else f"{100 * mean:+.0f} %")
        + f" | {HAPPENED.get(case.log, '')}{' (the clock was misread)' if case.is_misread else ''} |"
        for case in worst
    ]
    silent = len(here) - len(told)
    return [
        f"Told at {percent} % of their time"
        + (f"; {silent} more had not timed a step by then" if silent else "")
        + ":\n",
        "| format | error of the total | mean so far | what happened |",
        "|---|---|---|---|",
        *lost,
        "",
    ]


def _attempts(attempts: Sequence[Case]) -> str:
    count = sum(case.percent == PERCENTS[-1] for case in attempts)
    return f"{count} attempts in {len({case.log for case in attempts})} files"


def _held(kept: Sequence[Case]) -> str:
    held = [case.is_inside for case in kept if case.is_inside is not None]
    return f"{100 * sum(held) / len(held):.0f} % of {len(held)}"


def _coverage(whole: Sequence[Case], work: Sequence[Case], attempts: Sequence[Case], fitted: Fitted) -> str:
    by_percent = ", ".join(f"{_held([c for c in attempts if c.percent == p])} at {p} %" for p in PERCENTS)
    return (
        f"Its width was fitted on {fitted.logs} of these logs and on the {fitted.trainings} trainings below without "
        "restarts together. Coverage of the 90 % interval, each half of both under quantiles of the other: of the logs "
        f"{fitted.held('logs')} (each format under quantiles of all others: "
        f"{in_words(fitted.format_left_out)}); of the trainings told by their log {fitted.held('log')}, told by the "
        f"callback {fitted.held('callback')}. Runs with restarts set no quantile: of the attempts under way "
        f"{by_percent}; of the work of all attempts (all cuts) {_held(work)}, since later attempts often run "
        "at another pace.\n"
    )


def _beside(kept: Sequence[constants.Snapshot], spans: Sequence[alarms.SpanList]) -> str:
    return "\n".join(
        [
            "\n### The drift alarm\n",
            alarms.as_text(alarms.measured(spans)),
            "### What the constants do\n\nEach halved and doubled alone; median / 90th percentile in % of all runs "
            "without restarts that have an answer.\n",
            constants.as_text(kept),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
