"""When trainings that were run here would end, told from their logs and from callbacks, against the usual rivals.

    python -m studies trainings        runs what is not there yet (45 minutes), writes its page and result.csv

Forty small trainings on the processor, one after the other, each a real one: its log is what the framework printed, its
total is measured. EPOCHCAST_TRAININGS names the folder where logs are kept; a campaign that was interrupted goes on.
What ends the memory of a pace and what makes the interval wide for runs that are short was found on these runs; the
interval is fitted on them and on other people's logs together (`python -m studies track`, which reads result.csv: run
this before it, and after it again for the intervals of this page).
"""

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path

from studies.track.replay import PERCENTS, Case, cases, read
from studies.track.table import METHODS, behind, score, table
from studies.trainings.campaign import run_all, scratch
from studies.trainings.cases import TRAININGS, Training

NEEDS_DATA = False
BY_HAND = True
PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "trainings-accuracy.md"
RESULT = Path(__file__).with_name("result.csv")
BEGIN, END = "<!-- trainings: written by python -m studies trainings -->\n", "<!-- end of trainings -->"
LEAST_TRAININGS = 30
# What a bar expects for the whole run; the others speak of the epoch.
WHOLE_RUN_BARS = ("transformers",)


@dataclass(frozen=True)
class Told:
    """A case, of which training, and told by its `log` or by the `callback`."""

    training: Training
    source: str
    case: Case
    load: float = 0.0


@dataclass(frozen=True)
class Recorded:
    """What the campaign kept of a training: its moments are seconds since 1970."""

    log: bytes
    arrivals: Sequence[tuple[float, int]]
    rows: Sequence[tuple[float, int]]
    callback: bytes
    begin_seconds: float
    end_seconds: float
    attempts: int

    def cut(self, arrivals: Sequence[tuple[float, int]], percent: int) -> int:
        """Bytes that had come when so much of the time had passed."""
        moment = self.begin_seconds + percent / 100 * (self.end_seconds - self.begin_seconds)
        return max((size for at, size in arrivals if at <= moment), default=0)


def main() -> int:
    folder = scratch()
    failed = run_all(folder)
    found = [told for training in TRAININGS for told in _told(training, folder / training.name)]
    count = len({told.training.name for told in found})
    if failed or count < LEAST_TRAININGS:
        print(f"{count} trainings are there; failed: {', '.join(failed) or 'none'}")
        return 1
    _write(found)
    page = PAGE.read_text(encoding="utf-8")
    head, tail = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(head + BEGIN + measured(found) + END + tail, encoding="utf-8")
    print(measured(found))
    return 0


def _told(training: Training, place: Path) -> Iterator[Told]:
    if not (place / "whole.json").exists():
        return
    kept = recorded(place)
    load = json.loads((place / "whole.json").read_text(encoding="utf-8"))["load"][0]
    sources = (("log", kept.log, kept.arrivals), ("callback", kept.callback, kept.rows))
    for source, data, arrivals in sources:
        row = _index_row(training, kept, arrivals, source)
        for case in cases(read(row, data)):
            if case.asked == "end":
                yield Told(training, source, case, load)


def _index_row(
    training: Training, kept: Recorded, arrivals: Sequence[tuple[float, int]], source: str
) -> dict[str, str]:
    """As the index of the logs has it."""
    total = kept.end_seconds - kept.begin_seconds
    cuts = {f"cut_bytes_{percent}": str(kept.cut(arrivals, percent)) for percent in PERCENTS}
    return {
        "id": training.name,
        "format": source if source == "callback" else f"{training.framework} {training.printer}",
        "restarts": str(kept.attempts - 1),
        "eta_scope": "run" if source == "log" and training.framework in WHOLE_RUN_BARS else "",
        "true_total_seconds": str(total),
        **cuts,
        **{f"t_at_{percent}": str(total * percent / 100) for percent in PERCENTS},
    }


def recorded(place: Path) -> Recorded:
    """A training's files; it begins and ends where the callback says."""
    callback = (place / "callback.jsonl").read_bytes()
    rows, size, heads, last = [], 0, [], 0.0
    for line in callback.splitlines(keepends=True):
        size += len(line)
        record = json.loads(line)
        if "epochcast_track" in record:
            heads.append(record)
        last = max(last, record["at"])
        rows.append((last, size))
    arrivals = [line.split() for line in (place / "arrivals").read_text(encoding="utf-8").splitlines()]
    return Recorded(
        log=(place / "log").read_bytes(),
        arrivals=[(float(at), int(seen)) for at, seen in arrivals],
        rows=rows,
        callback=callback,
        begin_seconds=heads[0]["at"],
        end_seconds=last,
        attempts=len({head["attempt"] for head in heads}),
    )


def _write(found: Sequence[Told]) -> None:
    with RESULT.open("w", encoding="utf-8", newline="") as file:
        columns = ["training", "happens", "source", "percent", "restarts", "true_seconds", "passed_seconds"]
        methods = [name.replace(" ", "_").replace("'", "") + "_left_seconds" for name in METHODS]
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*columns, *methods, "low_seconds", "high_seconds", "doubt"])
        for told in found:
            case = told.case
            known = [case.true_seconds, case.passed_seconds, *(case.told_seconds[name] for name in METHODS)]
            numbers = [
                "" if value is None else f"{value:.3f}" for value in (*known, case.low_seconds, case.high_seconds)
            ]
            about = [told.training.name, told.training.happens, told.source, case.percent, case.restarts]
            writer.writerow([*about, *numbers, "" if case.doubt is None else f"{case.doubt:.4f}"])


def measured(found: Sequence[Told]) -> str:
    """The section of the page."""
    names = {told.training.name for told in found}
    by_log, by_callback = (
        [told.case for told in found if told.source == source and not told.case.restarts]
        for source in ("log", "callback")
    )
    again = [told.case for told in found if told.case.restarts]
    frameworks = sorted({told.training.framework for told in found})
    loads = [told.load for told in found]
    seconds = sorted(told.case.true_seconds for told in found if told.source == "log" and told.case.percent == 50)
    return "\n".join(
        [
            "### Trainings run for this",
            "",
            f"{len(names)} small trainings ({', '.join(frameworks)}; {seconds[0]:.0f} to {seconds[-1]:.0f} s each) on "
            f"{os.cpu_count()} cores that others used at the same time (load {min(loads):.0f} to {max(loads):.0f}, "
            "rising): what they show is a machine that gets busier and busier. It is the second campaign; the "
            "first, on a calmer machine, showed that the clock of Keras 3's bars was misread, that a lasting "
            "change of pace was followed too slowly and that the interval was too narrow for short runs. On "
            "this one nothing was chosen but the width of the interval. They are short: 1 % is less than a "
            "second, and start-up weighs more than in a run of hours. "
            "The total is what the clock showed from the first step's beginning to the last one's end, "
            "pauses included.",
            "",
            "The ten worst of all without restarts, told at 10 % of the time:",
            "",
            "| training | by | what happens | error of the total | mean so far |",
            "|---|---|---|---|---|",
            *_worst(found),
            "",
            "Told from the logs, median / 90th percentile of the error of the total in % (number of runs), steps in "
            "all given, runs without restarts:",
            "",
            table(by_log),
            *behind(by_log),
            "",
            "The same runs told by the callbacks:",
            "",
            table(by_callback),
            *behind(by_callback),
            "",
            "Runs that fell over and went on from a checkpoint, logs and callbacks; nobody foresees that:",
            "",
            table(again),
            *_shapes(found),
            f"The 90 % interval, whose width was set on these rows and on other people's logs together, held "
            f"{_coverage(by_log)} of the answers from logs and {_coverage(by_callback)} of those from callbacks; under "
            "quantiles of the other half, see above.",
            "",
        ]
    )


def _worst(found: Sequence[Told]) -> list[str]:
    told = [
        (abs(error), one, error)
        for one in found
        if one.case.percent == 10 and not one.case.restarts and (error := one.case.error("epochcast")) is not None
    ]
    told.sort(key=lambda each: -each[0])
    lines = []
    for _, one, error in told[:10]:
        mean = one.case.error("mean so far")
        rival = "–" if mean is None else f"{100 * mean:+.0f} %"
        lines.append(
            f"| {one.training.name} | {one.source} | {one.training.happens} | {100 * error:+.0f} % | {rival} |"
        )
    return lines


def _shapes(found: Sequence[Told]) -> Iterator[str]:
    """By what happens: where the rest is like the beginning, and where it is not."""
    yield "By what happens, at 10 and at 50 % (median of the error in %, logs and callbacks together):"
    yield ""
    yield "| what happens | runs | at 10 %: ours, mean so far, tqdm's EMA | at 50 % |"
    yield "|---|---|---|---|"
    for happens in sorted({told.training.happens for told in found}):
        here = [told for told in found if told.training.happens == happens]
        cells = []
        for percent in (10, 50):
            kept = [told.case for told in here if told.case.percent == percent]
            errors = [score(kept, method)[0] for method in ("epochcast", "mean so far", "tqdm's EMA")]
            cells.append(", ".join("–" if isnan(error) else f"{100 * error:.1f}" for error in errors))
        yield f"| {happens} | {len({told.training.name for told in here})} | {' | '.join(cells)} |"
    yield ""


def _coverage(kept: Sequence[Case]) -> str:
    inside = [case.is_inside for case in kept if case.is_inside is not None]
    return f"{100 * sum(inside) / len(inside):.0f} %"


if __name__ == "__main__":
    sys.exit(main())
