"""How often the intervals of a timetable hold the truth: under their own law, and under wrong ones.

    python -m studies timetables        writes docs/accuracy/schedule-accuracy.md and result.csv; a minute or two

Queues are the talk's random instances, all jobs waiting at second 0, their seconds with the interval mid/1.5 … mid·1.5.
A timetable is made once; then true run times are drawn many times, the policy itself plays each to the end, and every
start, end and bill is looked for in its interval. Where truths are drawn by the law of the timetable this is coverage
under the model: it tests the arithmetic and the stand-in, not the forecasts. The other laws say what is lost where the
model is wrong. Starts at second 0 are sure and left out.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from epochcast.interval import Interval
from epochcast.schedule.generators import talk
from epochcast.schedule.policies.policy_table import POLICIES, policy_named
from epochcast.schedule.projection import in_draws, project
from epochcast.schedule.queue_clock import QueueClock
from epochcast.schedule.queue_now import QueueNow, queue_now
from epochcast.schedule.runtime_draws import RunTimeLaw
from epochcast.schedule.schedule_request import ScheduleRequest
from epochcast.schedule.simulator import SimulationRules, simulate
from epochcast.schedule.timetable import Timetable

NEEDS_DATA = False
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy" / "schedule-accuracy.md"
RESULT = Path(__file__).with_name("result.csv")
BEGIN, END = "<!-- intervals: written by python -m studies timetables -->\n", "<!-- end of intervals -->"

FACTOR = 1.5
SEEDS = range(3)
TRIALS = 20
# Policy, jobs, and who decides in the draws where that is not the stand-in: the roll-outs do so themselves in the
# shortest queue; in the others fewer roll-outs, or the index alone, decide for them.
CASES = (
    ("edf_shared", 12, None),
    ("atc", 12, None),
    ("atc_rollout", 6, None),
    ("atc_rollout", 12, None),
    ("atc_rollout", 12, "atc"),
)
LAWS: Mapping[str, RunTimeLaw] = {
    "the timetable's own": RunTimeLaw(),
    "every error of its own": RunTimeLaw(0.0, 0.0),
    "all jobs of a device alike": RunTimeLaw(0.0, 1.0),
    "twice as wide": RunTimeLaw(factor=2.0),
}
# Of ends, under the timetable's own law: what nine in ten may be by chance over hundreds of jobs that hang together.
LEAST, MOST = 0.85, 0.97


@dataclass
class Count:
    """How many were looked for, and how many were inside."""

    looked: int = 0
    inside: int = 0

    def look(self, told: Interval, truth: float) -> None:
        self.looked += 1
        # To a second: sums of floats differ in their last digits.
        self.inside += told.low - 1 <= truth <= told.high + 1

    @property
    def share(self) -> float:
        return self.inside / self.looked if self.looked else float("nan")


@dataclass
class Counts:
    """Of starts that are not sure, ends and bills."""

    starts: Count = field(default_factory=Count)
    ends: Count = field(default_factory=Count)
    dollars: Count = field(default_factory=Count)


def main() -> int:
    rows = []
    for policy, jobs, drawn_by in CASES:
        label = policy if drawn_by is None else f"{policy} ({drawn_by} in the draws)"
        rows += [(label, jobs, law, counts) for law, counts in _case(policy, jobs, drawn_by)]
        print(policy, jobs, *(f"{c.ends.share:.3f}" for *_, c in rows[-len(LAWS) :]), flush=True)
    with RESULT.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["policy", "jobs", "truths", "what", "looked_for", "inside"])
        for policy, jobs, law, counts in rows:
            for what in ("starts", "ends", "dollars"):
                count = getattr(counts, what)
                writer.writerow([policy, jobs, law, what, count.looked, count.inside])
    text = _text(rows)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.split(BEGIN)[0] + BEGIN + text + END + page.split(END)[1], encoding="utf-8")
    print(text)
    own = next(iter(LAWS))
    bad = [
        (p, n) for p, n, law, counts in rows if law == own and p in POLICIES and not LEAST <= counts.ends.share <= MOST
    ]
    for policy, jobs in bad:
        print(f"{policy}, {jobs} jobs: ends outside {LEAST:.0%} … {MOST:.0%}")
    return 1 if bad else 0


def _case(policy: str, jobs: int, drawn_by: str | None) -> Iterator[tuple[str, Counts]]:
    found = {name: Counts() for name in LAWS}
    for seed in SEEDS:
        queue = _queue(jobs, seed)
        clock = QueueClock(datetime(2026, 1, 1, tzinfo=UTC))
        told = project(queue, clock, ScheduleRequest(policy, seed=seed), SimulationRules(), drawn_by=drawn_by)
        for name, law in LAWS.items():
            for trial in range(TRIALS):
                _look(told, queue, law, policy, Random(f"truth {seed} {trial}"), found[name])
    yield from found.items()


def _queue(jobs: int, seed: int) -> QueueNow:
    drawn = talk(max(2, jobs // 5), "overload", seed, jobs=jobs)
    waiting = tuple(
        replace(
            job,
            submit_seconds=0.0,
            seconds={choice: Interval.around(told.mid, FACTOR) for choice, told in job.seconds.items()},
        )
        for job in drawn.jobs
    )
    return queue_now(replace(drawn, jobs=waiting), {}, 0.0)


def _look(told: Timetable, queue: QueueNow, law: RunTimeLaw, policy: str, random: Random, counts: Counts) -> None:
    truth = law.draw(queue, random)
    workload = replace(queue.workload, true_seconds=truth)
    outcome = simulate(
        workload, policy_named(policy), in_draws(SimulationRules(), random.randrange(10**6)), queue.state
    )
    lines = {line.job: line for line in told.lines}
    for end in outcome.ends:
        line = lines[end.job]
        if line.start.high > 0 or end.start_seconds > 0:
            counts.starts.look(line.start, end.start_seconds)
        counts.ends.look(line.end, end.end_seconds)
    counts.dollars.look(told.dollars_interval, outcome.dollars)


def _text(rows: list[tuple[str, int, str, Counts]]) -> str:
    lines = [
        "### How often they hold\n",
        f"Truths inside the 90 % interval: {len(SEEDS)} queues of each kind, {TRIALS} times played to the end,",
        f"seconds within a factor of {FACTOR} (nine in ten). Where truths follow the timetable's own law this is",
        "coverage under the model; the other rows show what a wrong model costs. Starts that are sure are left out.\n",
        "| policy, jobs | truths drawn | starts | ends | dollars |",
        "|---|---|---|---|---|",
    ]
    for policy, jobs, law, counts in rows:
        shares = " | ".join(f"{count.share:.0%}" for count in (counts.starts, counts.ends, counts.dollars))
        lines.append(f"| {policy}, {jobs} | {law} | {shares} |")
    return "\n".join(lines) + "\n"
