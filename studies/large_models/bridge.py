"""What NVIDIA publishes for pre-training today's language models (source megatron_bridge of the runs) against forecasts
from nothing: H100 to GB300, bf16 to four bits, tensor, pipeline, context and expert parallel.

A question is a model, a device, a precision, a layout and a batch. Rows that ask the same differ in the release of the
software alone; each is held against the same answer. How far they are from each other is said beside: a row against the
median of the others. The rule of thumb is 40 % of the peak of bf16 for the products of the model.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from epochcast.describe.capture.resolve import find_model
from epochcast.errors import EpochcastError
from epochcast.interval import Interval
from epochcast.measure.evaluate.refusals import refusals
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun, read_runs
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.session import Session

SOURCE = "megatron_bridge"
RULE_FRACTION = 0.4
Question = tuple[Any, ...]


@dataclass(frozen=True)
class Scored:
    """A row, our answer, the rule of thumb's, and the rows that ask the same."""

    run: MeasuredRun
    seconds: Interval
    rule_seconds: float
    question: Question

    @property
    def ratio(self) -> float:
        """Forecast over measured."""
        return self.seconds.mid / self.run.step_seconds


def bridge(data: Path, model: CostModel) -> tuple[list[Scored], Mapping[str, int]]:
    """Every row that can be asked, and why others cannot, by kind."""
    table = [row for row in read_table(data / "runs.parquet").to_dicts() if row["source"] == SOURCE]
    runs, failures = read_runs(table)
    reasons = Counter({group.reason: group.rows for group in refusals(failures)})
    scored: list[Scored] = []
    for reference, shape in dict.fromkeys((run.reference, run.input_shape) for run in runs):
        network = find_model(reference, shape, allow_code=False)
        answers: dict[Question, tuple[Interval, float] | str] = {}
        for run in runs:
            if (run.reference, run.input_shape) != (reference, shape):
                continue
            key = (run.recipe, run.device.name, run.strategy, run.gpus, run.nodes)
            if key not in answers:
                answers[key] = _answer(network, run, model)
            answer = answers[key]
            if isinstance(answer, str):
                reasons[answer] += 1
            else:
                scored.append(Scored(run, *answer, (reference, *key)))
    return scored, reasons


def _answer(network: Any, run: MeasuredRun, model: CostModel) -> tuple[Interval, float] | str:
    try:
        placement = run_placement(run)
        session = Session(model, with_own_profiles=False, with_layer_steps=False)
        answer = forecast_job(replace(run.job, model=network), placement, session, step_only=True)
    except EpochcastError as error:
        return str(error)
    flops = answer.details.trace.flops["forward"] + answer.details.trace.flops["backward"]
    share = run.recipe.accumulate * placement.replicas / run.gpus
    return answer.step_seconds, flops * share / (RULE_FRACTION * run.device.peak_flops_per_second["bf16"])


def tables(scored: Sequence[Scored], reasons: Mapping[str, int]) -> Iterator[str]:
    """Lines of the page."""
    rows = len(scored) + sum(reasons.values())
    yield f"{len(scored)} of {rows} rows are answered, {len({s.question for s in scored})} questions."
    yield ""
    yield (
        "| rows | n | ours | ours, median | forecast over measured, median | inside our interval | rule of thumb "
        "| same question, other release |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    yield _line("**all**", scored)
    kinds: tuple[Callable[[MeasuredRun], str], ...] = (
        lambda run: run.model,
        lambda run: run.device.name,
        lambda run: run.recipe.precision,
    )
    for kind in kinds:
        for name in sorted({kind(s.run) for s in scored}):
            yield _line(name, [s for s in scored if kind(s.run) == name])
    yield ""
    yield "| rows | why they cannot be asked |"
    yield "|---|---|"
    yield from (f"| {count} | {reason} |" for reason, count in sorted(reasons.items(), key=lambda item: -item[1]))


def _line(name: str, scored: Sequence[Scored]) -> str:
    errors = [abs(s.ratio - 1) for s in scored]
    rule = [abs(s.rule_seconds / s.run.step_seconds - 1) for s in scored]
    inside = mean(s.seconds.holds(s.run.step_seconds) for s in scored)
    again = repeats(scored)
    cells = [
        f"{100 * mean(errors):.0f} %",
        f"{100 * median(errors):.0f} %",
        f"{median(s.ratio for s in scored):.2f}",
        f"{100 * inside:.0f} %",
        f"{100 * mean(rule):.0f} %",
        f"{100 * mean(again):.0f} % ({len(again)})" if again else "–",
    ]
    return f"| {name} | {len(scored)} | {' | '.join(cells)} |"


def repeats(scored: Sequence[Scored]) -> list[float]:
    """How far every row is from the median of the others that ask the same."""
    groups: dict[Question, list[float]] = {}
    for s in scored:
        groups.setdefault(s.question, []).append(s.run.step_seconds)
    return [
        abs(median([*group[:place], *group[place + 1 :]]) / seconds - 1)
        for group in groups.values()
        if len(group) > 1
        for place, seconds in enumerate(group)
    ]
