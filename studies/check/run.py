"""How often `epochcast check` is right about real runs: false alarms, and whether it names a cause that is known.

    python -m studies check             writes studies/check/result.csv

Steps are measured (public tables of runs), and the job is described either as it ran (the verdict should be normal) or
with one setting wrong, as people do who ask why their training is slow or fast. The cause is then known:

    precision        ran in float32 or TF32, described as mixed precision on tensor cores; and the other way round
    accumulation     several passes a step, described as one
    checkpointing    blocks recomputed, described as kept
    compilation      compiled, described as eager
    another GPU      ran on a board whose name continues that of another (RTX 3080 Ti), described as the other

Verdicts follow the forecast's interval, so a fault that changes the step by less than the interval is wide stays
unseen: the figures say how many. The cost model was fitted to some of these rows, so false alarms on unseen sources are
what `docs/accuracy/accuracy.md` says of intervals there. Cases are drawn by source and network, at most three of each.
Fails where more than a fifth of the normal runs is called abnormal.
"""

import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import devices
from epochcast.interval import Interval
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table
from epochcast.observe.check.observation import LOG, Observation, RunSigns
from epochcast.observe.check.speed_check import SpeedCheck, check_speed
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from studies.figures_csv import figures_csv

RESULT = Path(__file__).with_name("result.csv")
TABLES = ("runs", "runs_2026")
SOURCES = (
    *("lambda", "sia_sosp23", "zeus_nsdi23", "dlperf", "timm", "torchvision_gpu_bench", "aws_gpu_benchmark"),
    *("simpletuner_sweep", "fms_acceleration", "cs336", "litgpt", "llm_foundry", "u39kun", "peft_method_comparison"),
)
SEED, MOST_OF_EACH, MOST_OF_KIND = 34, 3, 14
MOST_FALSE_ALARMS = 0.2
NORMAL = "none"
STEPS = 1000.0


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A measured run, the job as it is described, and the cause of the difference."""

    cause: str
    run: MeasuredRun
    job: Job
    placement: Placement


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """Of all cases with one cause: how many a verdict calls abnormal, and where the cause stands among those named."""

    cause: str
    cases: int
    abnormal: int
    wrong_direction: int
    first: int
    named: int


def main() -> int:
    """Score all cases; 1 where normal runs raise too many alarms."""
    draw = random.Random(SEED)
    cases = _chosen([case for run in _runs() for case in _cases(run)], draw)
    outcomes: dict[str, list[tuple[SpeedCase, SpeedCheck]]] = defaultdict(list)
    session = Session(with_own_profiles=False)
    for case in cases:
        seen = Interval.exact(case.run.step_seconds)
        observation = Observation("measured", seen, source=LOG, signs=RunSigns(steps=STEPS))
        try:
            outcomes[case.cause].append((case, check_speed(case.job, case.placement, observation, session)))
        except EpochcastError as error:
            print(f"left out: {case.run.model} on {case.run.device.name}: {error}", file=sys.stderr)
    figures = [_figures(cause, each) for cause, each in sorted(outcomes.items())]
    columns = ("cause", "cases", "abnormal", "wrong_direction", "first", "named")
    RESULT.write_text(figures_csv(columns, figures), encoding="utf-8")
    for each in figures:
        print(
            f"{each.cause:15s} {each.cases:3d} cases, {each.abnormal} abnormal, {each.first} first, {each.named} named"
        )
    normal = next(each for each in figures if each.cause == NORMAL)
    return int(normal.abnormal > MOST_FALSE_ALARMS * normal.cases)


def _runs() -> list[MeasuredRun]:
    """Trainings on one GPU."""
    folder = Path(os.environ["EPOCHCAST_DATA"])
    rows = [row for name in TABLES for row in read_table(folder / f"{name}.parquet").to_dicts()]
    wanted = [row for row in rows if row["source"] in SOURCES and (row["gpus"] or 1) == 1]
    wanted = [row for row in wanted if row["mode"] in (None, "", "training") and row["optimizer"] != "none"]
    random.Random(SEED).shuffle(wanted)
    alike: Counter[tuple[str, str, str]] = Counter()
    few = []
    for row in wanted:
        key = row["source"], row["model"], str(row["precision"])
        alike[key] += 1
        if alike[key] <= MOST_OF_EACH:
            few.append(row)
    runs, _ = read_runs(few)
    return [run for run in runs if run.device.kind == "gpu" and run.job.framework == "pytorch"]


def _cases(run: MeasuredRun) -> Iterator[SpeedCase]:
    """The run as it was, and with each setting wrong that it can be described without."""
    job, place = run.job, run_placement(run)
    yield SpeedCase(NORMAL, run, job, place)
    rules = job.recipe(1, run.device).precision_rules
    if rules.is_single and run.device.tensor_cores:
        yield SpeedCase("precision", run, replace(job, precision="amp_fp16", weights=None), place)
    elif job.precision in ("amp_fp16", "amp_bf16"):
        yield SpeedCase("precision", run, replace(job, precision="fp32", weights=None), place)
    if job.accumulate > 1:
        yield SpeedCase("accumulation", run, replace(job, accumulate=1), place)
    if job.checkpointing:
        yield SpeedCase("checkpointing", run, replace(job, checkpointing=False), place)
    if job.compile == "inductor":
        yield SpeedCase("compilation", run, replace(job, compile="none"), place)
    for other in devices():
        if run.device.name.startswith(f"{other.name} "):
            yield SpeedCase("another GPU", run, job, place.with_device(other))


def _chosen(cases: Sequence[SpeedCase], draw: random.Random) -> list[SpeedCase]:
    """At most so many of each cause, of different sources and networks first."""
    by_cause: dict[str, list[SpeedCase]] = defaultdict(list)
    for case in cases:
        by_cause[case.cause].append(case)
    chosen = []
    for cause, each in sorted(by_cause.items()):
        draw.shuffle(each)
        alike: Counter[tuple[str, str]] = Counter()
        ranked = []
        for case in each:
            alike[case.run.source, case.run.model] += 1
            ranked.append((alike[case.run.source, case.run.model], case))
        ranked.sort(key=lambda pair: pair[0])
        chosen += [case for _, case in ranked[: MOST_OF_KIND * (2 if cause == NORMAL else 1)]]
    return chosen


def _figures(cause: str, outcomes: Sequence[tuple[SpeedCase, SpeedCheck]]) -> CauseFigures:
    unusual = [(case, answer) for case, answer in outcomes if answer.verdict != "normal"]
    names = [[each.name for each in answer.causes] for _, answer in unusual]
    faults = [(case, answer) for case, answer in unusual if cause != NORMAL]
    wrong = sum((answer.factor.mid > 1) != _is_slower(case, answer) for case, answer in faults)
    first = sum(each[:1] == [cause] for each in names)
    return CauseFigures(cause, len(outcomes), len(unusual), wrong, first, sum(cause in each for each in names))


def _is_slower(case: SpeedCase, answer: SpeedCheck) -> bool:
    """Whether the job as it ran is forecast to be slower than as it was described."""
    truth = forecast_job(case.run.job, run_placement(case.run), Session(with_own_profiles=False), step_only=True)
    return truth.step_seconds.mid > answer.forecast.step_seconds.mid


if __name__ == "__main__":
    raise SystemExit(main())
