"""Training steps of language models on 2 to 2,304 GPUs (`llm_runs`), time and memory from nothing; and layouts that
failed (`llm_failed`).

Of each source every so many rows are taken, in an order that mixes models and layouts. A micro-batch of one on many
GPUs is bound by the host, which no table describes. The forecast takes the host of large trainers
(`predict/cost/hosts.toml`), whose seconds per kernel were chosen on the rows of vtrain_single; beside it stands the
one with the host of plain PyTorch. The playbook's runs over several nodes are disturbed, by
the table's own account; several nodes are shown with and without them.

Memory is what the allocator gave out, as the table says. Runs of nanotron keep the gathered input of a product for the
backward pass or gather it again, by a setting that is not in the table; ours gathers again. The oracle takes whichever
of the two is nearer to the row, which nobody could know before: it bounds what that setting may explain.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from typing import Any

from epochcast.errors import EpochcastError
from epochcast.interval import Interval
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.launch import launch_seconds
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.rank_memory import rank_memory
from epochcast.predict.forecast.session import Session
from epochcast.predict.memory.peak import PeakMemory
from studies.large_models.rows import Row, job_of, place_of

RULE_FRACTION = 0.4
TIMED = {"vtrain_single": 240, "ultrascale_playbook": 240, "dgxc_benchmarking": 120, "bigscience_tr11": 46}
REMEMBERED = 400
FAILED = 240
ALLOCATED = "torch max_memory_allocated"


@dataclass(frozen=True)
class Timed:
    """A row, the step from nothing and with the host of plain PyTorch, and the rule of thumb's."""

    row: Row
    seconds: Interval
    plain: Interval
    rule_seconds: float


@dataclass(frozen=True)
class Held:
    """A row and its memory; `kept_bytes` come on top where gathered inputs are kept."""

    row: Row
    memory: PeakMemory
    kept_bytes: float

    @property
    def ours_bytes(self) -> float:
        """What the row counts: allocated, or all that nvidia-smi shows."""
        is_allocated = str(self.row["memory_kind"] or ALLOCATED).startswith(ALLOCATED)
        return self.memory.allocated_bytes if is_allocated else self.memory.bytes.mid


def every(rows: Sequence[Row], count: int) -> list[Row]:
    """So many of the rows, spread over models and layouts."""
    names = ("model", "tp", "pp", "micro_batch", "zero", "gpus", "step_seconds")
    ordered = sorted(rows, key=lambda row: tuple(str(row[name]) for name in names))
    step = max(1.0, len(ordered) / count)
    return [ordered[int(place * step)] for place in range(min(count, len(ordered)))]


def timed(data: Path, model: CostModel) -> tuple[list[Timed], Counter[str]]:
    """Steps against the clock, and why others cannot be asked."""
    rows = [row for row in _rows(data, "llm_runs") if row["quality"] == "ok"]
    found: list[Timed] = []
    reasons: Counter[str] = Counter()
    session = Session(model, with_own_profiles=False, with_layer_steps=False)
    for source, count in TIMED.items():
        for row in every([row for row in rows if row["source"] == source], count):
            try:
                found.append(_timed(row, session))
            except EpochcastError as error:
                reasons[str(error)] += 1
    return found, reasons


def _timed(row: Row, session: Session) -> Timed:
    job, placement = job_of(row), place_of(row)
    answer = forecast_job(job, placement, session, step_only=True)
    quicker = placement.with_device(replace(placement.device, launch_seconds=launch_seconds(placement.device)))
    plain = forecast_job(job, quicker, session, step_only=True)
    flops = answer.details.trace.flops["forward"] + answer.details.trace.flops["backward"]
    share = job.accumulate * placement.replicas / placement.gpus
    peak = placement.device.peak_flops_per_second["bf16"]
    return Timed(row, answer.step_seconds, plain.step_seconds, flops * share / (RULE_FRACTION * peak))


def held(data: Path) -> tuple[list[Held], list[Held]]:
    """Memory of rows that say theirs, and of layouts that failed."""
    session = Session()
    runs = [row for row in _rows(data, "llm_runs") if row["peak_memory_bytes"] and row["tp"]]
    failed = [row for row in _rows(data, "llm_failed") if "was logged" not in str(row["note"])]
    return _held(every(runs, REMEMBERED), session), _held(every(failed, FAILED), session)


def _held(rows: Sequence[Row], session: Session) -> list[Held]:
    found = []
    for row in rows:
        try:
            job, placement = job_of(row), place_of(row)
            trace = session.trace(session.model(job), job.recipe(int(row["micro_batch"])))
            found.append(Held(row, rank_memory(job, placement, trace), _kept_bytes(row)))
        except EpochcastError:
            continue
    return found


def _kept_bytes(row: Row) -> float:
    """The gathered inputs of two products of every layer, of all micro-batches in flight on the first stage."""
    tensor, stages = int(row["tp"] or 1), int(row["pp"] or 1)
    in_flight = min(stages, int(row["grad_accum"] or 1))
    each = 2 * int(row["sequence_length"]) * int(row["micro_batch"]) * int(row["hidden"])
    return 2 * int(row["layers"]) / stages * in_flight * each * (1 - 1 / tensor)


def _rows(data: Path, table: str) -> list[dict[str, Any]]:
    return read_table(data / f"{table}.parquet").to_dicts()


# ---- tables -------------------------------------------------------------------------------------


def tables(
    steps: Sequence[Timed], reasons: Counter[str], runs: Sequence[Held], failed: Sequence[Held]
) -> Iterator[str]:
    """Lines of the page."""
    yield from _time_table(steps)
    yield ""
    yield f"{len(steps)} rows are asked. {sum(reasons.values())} more cannot be: " + "; ".join(
        f"{reason} ({count})" for reason, count in reasons.most_common()
    )
    yield ""
    yield from _memory_table(runs)
    yield ""
    yield from _fit_table(runs, failed)


def _time_table(steps: Sequence[Timed]) -> Iterator[str]:
    yield (
        "| rows | n | from nothing, mean / median | forecast over measured | inside our interval "
        "| with the host of plain PyTorch | rule of thumb | others' own claim |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    disturbed = "ultrascale_playbook"
    kinds: tuple[tuple[str, str, Callable[[Row], bool]], ...] = (
        ("**one node**", "vTrain 8.4 %, SimuMax 5.6 %", lambda row: row["nodes"] == 1),
        ("vtrain_single, 2 to 8 A100", "vTrain 8.4 %", lambda row: row["source"] == "vtrain_single"),
        ("the playbook, 8 H100", "–", lambda row: row["source"] == disturbed and row["nodes"] == 1),
        ("**several nodes**, all", "vTrain 14.7 %", lambda row: row["nodes"] > 1),
        ("**several nodes**, without the playbook", "–", lambda row: row["nodes"] > 1 and row["source"] != disturbed),
        ("dgxc_benchmarking, bf16", "–", lambda row: _is(row, "dgxc_benchmarking", "bf16")),
        ("dgxc_benchmarking, fp8", "–", lambda row: _is(row, "dgxc_benchmarking", "fp8")),
        ("bigscience_tr11 (BLOOM)", "–", lambda row: row["source"] == "bigscience_tr11" and row["nodes"] > 1),
        ("the playbook, 16 and 32 H100", "–", lambda row: row["source"] == disturbed and 2 <= row["nodes"] <= 4),
        ("the playbook, more", "–", lambda row: row["source"] == disturbed and row["nodes"] > 4),
    )
    for name, claim, belongs in kinds:
        of_kind = [step for step in steps if belongs(step.row)]
        if of_kind:
            yield _time_line(name, claim, of_kind)


def _is(row: Row, source: str, precision: str) -> bool:
    return bool(row["source"] == source and row["precision"] == precision and row["nodes"] > 1)


def _time_line(name: str, claim: str, steps: Sequence[Timed]) -> str:
    ratios = [step.seconds.mid / step.row["step_seconds"] for step in steps]
    plain = [step.plain.mid / step.row["step_seconds"] for step in steps]
    rule = [step.rule_seconds / step.row["step_seconds"] for step in steps]
    inside = mean(step.seconds.holds(step.row["step_seconds"]) for step in steps)
    cells = [_errors(ratios), f"{median(ratios):.2f}", f"{100 * inside:.0f} %", _errors(plain), _errors(rule), claim]
    return f"| {name} | {len(steps)} | {' | '.join(cells)} |"


def _errors(ratios: Sequence[float]) -> str:
    errors = [abs(ratio - 1) for ratio in ratios]
    return f"{100 * mean(errors):.1f} / {100 * median(errors):.1f} %"


def _memory_table(runs: Sequence[Held]) -> Iterator[str]:
    yield (
        "| memory of a GPU | n | error, mean / median | forecast over measured "
        "| the nearer of gathered again and kept (oracle) | others' own claim |"
    )
    yield "|---|---|---|---|---|---|"
    kinds: tuple[tuple[str, Callable[[Row], bool]], ...] = (
        ("**the playbook, allocated**", lambda row: True),
        ("without tensor parallelism", lambda row: row["tp"] == 1),
        ("tensor parallel over 2 to 8", lambda row: 1 < row["tp"] <= 8),
        ("over 16 and 32", lambda row: row["tp"] > 8),
        ("no pipeline", lambda row: row["pp"] == 1),
        ("pipelines", lambda row: row["pp"] > 1),
        ("zero1", lambda row: row["zero"] == 1),
    )
    playbook = [run for run in runs if run.row["source"] == "ultrascale_playbook"]
    for name, belongs in kinds:
        claim = "SimuMax 0.5 %" if name.startswith("**") else "–"
        yield _memory_line(name, claim, [run for run in playbook if belongs(run.row)])
    others = [run for run in runs if run.row["source"] == "bigscience_tr11"]
    if others:
        yield _memory_line("bigscience_tr11, as reported", "–", others)


def _memory_line(name: str, claim: str, runs: Sequence[Held]) -> str:
    ratios = [run.ours_bytes / run.row["peak_memory_bytes"] for run in runs]
    kept = [(run.ours_bytes + run.kept_bytes) / run.row["peak_memory_bytes"] for run in runs]
    nearer = [min(pair, key=lambda ratio: abs(ratio - 1)) for pair in zip(ratios, kept, strict=True)]
    oracle = _errors(nearer) if any(run.row["source"] == "ultrascale_playbook" for run in runs) else "–"
    return f"| {name} | {len(runs)} | {_errors(ratios)} | {median(ratios):.2f} | {oracle} | {claim} |"


def _fit_table(runs: Sequence[Held], failed: Sequence[Held]) -> Iterator[str]:
    yield "| layouts | n | said to fit | said not to fit |"
    yield "|---|---|---|---|"
    for name, some in (("that ran", runs), ("that failed, by whatever cause", failed)):
        fits = sum(bool(run.memory.fits) for run in some)
        yield f"| {name} | {len(some)} | {fits} | {len(some) - fits} |"
