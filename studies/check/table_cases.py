"""Measured steps of public tables of runs, described as they ran, or with one setting wrong.

The verdict on a run that is described as it ran should be normal; where one setting is described wrong, as people do
who ask why their training is slow or fast, the cause is known:

    precision        ran in float32 or TF32, described as mixed precision on tensor cores; and the other way round
    accumulation     several passes a step, described as one
    checkpointing    blocks recomputed, described as kept
    compilation      compiled, described as eager
    another GPU      ran on a board whose name continues that of another (RTX 3080 Ti), described as the other

Cases are drawn by source and network, at most three of each. The cost model was fitted to some of these rows.
"""

import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from epochcast.hardware.catalogue import devices
from epochcast.interval import Interval
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table
from epochcast.observe.check.observation import LOG, Observation, RunSigns
from epochcast.observe.check.speed_check import SpeedCheck, check_speed
from epochcast.observe.runs.speed_verdict import FASTER, NORMAL, SLOWER
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session

TABLES = ("runs", "runs_2026")
SOURCES = (
    *("lambda", "sia_sosp23", "zeus_nsdi23", "dlperf", "timm", "torchvision_gpu_bench", "aws_gpu_benchmark"),
    *("simpletuner_sweep", "fms_acceleration", "cs336", "litgpt", "llm_foundry", "u39kun", "peft_method_comparison"),
)
SEED, MOST_OF_EACH, MOST_OF_KIND = 34, 3, 6
NOTHING = "none"
STEPS = 1000.0


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A measured run, the job as it is described, and the cause of the difference."""

    cause: str
    run: MeasuredRun
    job: Job
    placement: Placement


def table_cases() -> list[SpeedCase]:
    """All cases of the tables."""
    return _chosen([case for run in _runs() for case in _cases(run)], random.Random(SEED))


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
    yield SpeedCase(NOTHING, run, job, place)
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
        chosen += [case for _, case in ranked[: MOST_OF_KIND * (3 if cause == NOTHING else 1)]]
    return chosen


def checked(case: SpeedCase, session: Session) -> tuple[SpeedCheck, str]:
    """The answer, and the verdict that would be right."""
    seen = Interval.exact(case.run.step_seconds)
    observation = Observation("measured", seen, source=LOG, signs=RunSigns(steps=STEPS))
    answer = check_speed(case.job, case.placement, observation, session)
    if case.cause == NOTHING:
        return answer, NORMAL
    truth = forecast_job(case.run.job, run_placement(case.run), session, step_only=True)
    return answer, SLOWER if truth.step_seconds.mid > answer.forecast.step_seconds.mid else FASTER
