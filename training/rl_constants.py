"""What trainers add to the parts of a post-training step: writes `predict/post_training/rl_constants.toml`.

A part's factor is the geometric middle of measured ÷ forecast over rows of `rl_runs` that time the part, one vote per
source and framework. That of a framework's own loop (`generation_eager`) is what is left of whole steps. verl counts
the sync of weights, waking and sleeping of its engine as generation where it prints no other key. `low` and `high` of a
step are the 5th and 95th percentile of measured ÷ forecast, each source left out of the factors.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.forecast.session import Session
from epochcast.predict.post_training.post_training import post_training_step
from epochcast.predict.post_training.rl_constants import (
    FILE,
    FORWARD,
    GENERATION,
    GENERATION_EAGER,
    UPDATE,
    RlConstants,
)
from training.files import PACKAGE, data_folder, say, write
from training.rl_rows import RlRow, rl_rows

GROUPS: Mapping[str, str] = {
    "generation": GENERATION,
    "old_logprobs": FORWARD,
    "reference": FORWARD,
    "values": FORWARD,
    "update": UPDATE,
    "update_critic": UPDATE,
}
LEAST_SECONDS = 0.5
"""Shorter parts are mostly what a logger and a barrier take."""
SYNC: Mapping[str, float] = {"colocated": 3.5e8, "split": 1.3e8}
HEAD = """\
# What trainers add to the parts of a post-training step; `rl_constants.py` says how it is used. Written by
# `python -m training.rl_constants` from rl_runs (verl, NeMo-RL, OpenRLHF, DeepSpeed-Chat: their logs and tables).
"""


@dataclass(frozen=True)
class RawStep:
    """A row with its forecast before any factor."""

    row: RlRow
    parts: Mapping[str, float]
    overlapped: float

    def generation(self) -> float:
        """Seconds of it, whether anything waited for them or not."""
        return self.parts.get("generation", 0.0) + self.overlapped

    def generation_group(self) -> str:
        """The factor that its generation has."""
        return GENERATION_EAGER if self.row.job.engine == "hf" else GENERATION

    def seconds(self, constants: RlConstants) -> Mapping[str, float]:
        """The parts under factors; of asynchronous training generation is the wait."""
        parts = {
            name: value * constants.factor(GROUPS.get(name, ""))
            for name, value in self.parts.items()
            if name != "generation"
        }
        generated = self.generation() * constants.factor(self.generation_group())
        if self.row.job.staleness:
            generated = max(0.0, generated - sum(parts.values()))
        return {"generation": generated, **parts}

    def compared(self, name: str, parts: Mapping[str, float]) -> float:
        """Forecast seconds of what a row calls `name`."""
        is_joined = name == "generation" and "weight_sync" not in self.row.parts and not self.row.job.staleness
        return parts.get(name, 0.0) + (parts.get("weight_sync", 0.0) if is_joined else 0.0)


def plain_constants(sync: Mapping[str, float] = SYNC) -> RlConstants:
    """No factors."""
    return RlConstants({}, sync, 1.0, 1.0)


def raw_steps(rows: Sequence[RlRow], left_out: Counter[str], sync: Mapping[str, float]) -> list[RawStep]:
    """The forecast of every row."""
    session, steps = Session(), []
    for row in rows:
        try:
            parts, overlapped = post_training_step(row.job, row.placement, session, plain_constants(sync))
        except EpochcastError as error:
            left_out[str(error)[:120]] += 1
            continue
        steps.append(RawStep(row, parts, overlapped))
    return steps


def fitted_factors(steps: Sequence[RawStep]) -> Mapping[str, float]:
    """By group of parts."""
    votes: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for step in steps:
        forecast = step.seconds(plain_constants())
        for name, measured in step.row.parts.items():
            value = step.compared(name, forecast)
            is_own = name != "generation" or step.generation_group() == GENERATION
            if name in GROUPS and is_own and measured >= LEAST_SECONDS and value > 0 and not step.row.job.staleness:
                votes[GROUPS[name]][step.row.source, step.row.framework].append(float(np.log(measured / value)))
    factors = {
        group: float(np.exp(np.median([np.median(own) for own in by_source.values()])))
        for group, by_source in votes.items()
    }
    return {**factors, **_eager_factor(steps, factors)}


def _eager_factor(steps: Sequence[RawStep], factors: Mapping[str, float]) -> Mapping[str, float]:
    """What is left of whole steps for generation, where the framework's own loop generates; empty without such rows."""
    constants = RlConstants(factors, SYNC, 1.0, 1.0)
    left = []
    for step in steps:
        if step.generation_group() == GENERATION_EAGER and step.generation() > 0:
            parts = step.seconds(constants)
            rest = sum(parts.values()) - parts["generation"]
            left.append(max(0.1, step.row.step_seconds - rest) / step.generation())
    return {GENERATION_EAGER: float(np.median(left))} if left else {}


def left_out_steps(steps: Sequence[RawStep], sync: Mapping[str, float]) -> list[tuple[RawStep, Mapping[str, float]]]:
    """Every step by the factors of other sources."""
    scored = []
    for source in sorted({step.row.source for step in steps}):
        factors = fitted_factors([step for step in steps if step.row.source != source])
        constants = RlConstants(factors, sync, 1.0, 1.0)
        scored += [(step, step.seconds(constants)) for step in steps if step.row.source == source]
    return scored


def sync_rates(folder: Path) -> Mapping[str, tuple[float, int]]:
    """Bytes per second and GPU of passing all weights in 16 bits, and rows, by placement; sums of changes left out."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in read_table(folder / "rl_runs.parquet").to_dicts():
        is_part = "delta" in (row["notes"] or "") or (row["finetuning"] or "").startswith("LoRA")
        if row["s_weight_sync"] is None or row["params_b"] is None or row["gpus"] is None or is_part:
            continue
        kind = "colocated" if row["placement"] == "colocated" else "split"
        found[kind].append(2e9 * row["params_b"] / row["gpus"] / row["s_weight_sync"])
    return {kind: (float(np.median(rates)), len(rates)) for kind, rates in found.items()}


def spread_of(scored: Sequence[tuple[RawStep, Mapping[str, float]]]) -> tuple[float, float]:
    """The 5th and 95th percentile of measured ÷ forecast."""
    ratios = [step.row.step_seconds / sum(parts.values()) for step, parts in scored]
    return min(1.0, float(np.quantile(ratios, 0.05))), max(1.0, float(np.quantile(ratios, 0.95)))


def written(folder: Path, steps: Sequence[RawStep], sync: Mapping[str, tuple[float, int]]) -> str:
    """The file."""
    blocks = [HEAD]
    for name, factor in fitted_factors(steps).items():
        count = sum(GROUPS.get(part) == name for step in steps for part in step.row.parts)
        count = count or sum(step.generation_group() == name for step in steps)
        blocks.append(f'[[part]]\nname = "{name}"\nfactor = {factor:.3f}\nrows = {count}\nsource = "rl_runs"\n')
    for kind, (rate, count) in sync.items():
        blocks.append(f'[[sync]]\nname = "{kind}"\nbytes_per_second = {rate:.3g}\nrows = {count}\nsource = "rl_runs"\n')
    low, high = spread_of(left_out_steps(steps, {kind: rate for kind, (rate, _) in sync.items()}))
    source = "rl_runs, sources left out"
    blocks.append(
        f'[[spread]]\nname = "step"\nlow = {low:.3f}\nhigh = {high:.3f}\nrows = {len(steps)}\nsource = "{source}"\n'
    )
    return "\n".join(blocks)


def main() -> None:
    """Write the file; say what was left out."""
    left_out: Counter[str] = Counter()
    folder = data_folder()
    sync = sync_rates(folder)
    rows = list(rl_rows(folder, left_out))
    steps = raw_steps(rows, left_out, {kind: rate for kind, (rate, _) in sync.items()})
    for reason, count in left_out.most_common():
        say(f"left out: {count} rows: {reason}")
    write(PACKAGE / "predict" / "post_training" / FILE, written(folder, steps, sync).encode())


if __name__ == "__main__":
    main()
