"""What the second, the eighth, the hundredth GPU buys: one job at several numbers of GPUs.

    weak      every GPU keeps its batch b; the batch of the job grows to b·n
    strong    the job keeps its batch B; every GPU gets B/n

    speed-up s(n) = n₀ · throughput(n)/throughput(n₀), n₀ the least number asked for (it counts as ideal)
    efficiency    = s(n)/n; under weak scaling this is t(n₀)/t(n) of one step

The knee is the largest number of GPUs whose last step up paid: beyond it, more GPUs bring less than half of their
number in throughput.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from epochcast.errors import BadInput, UnknownName
from epochcast.forecasting.job import Forecast
from epochcast.forecasting.strategies.rules import algorithm_named, find_strategy, parts_of
from epochcast.hardware.topology import GPUS_PER_NODE
from epochcast.interval import Interval

REGIMES = ("strong", "weak")
# A step from n to r·n GPUs pays when throughput grows by at least this part of what r promises.
WORTH_FRACTION = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """One job to forecast; `batch` is per GPU and pass, `allreduce` None where the strategy's own counts."""

    gpus: int
    nodes: int
    regime: str
    strategy: str | None
    allreduce: str | None
    batch: int


@dataclass(frozen=True)
class Row:
    """One number of GPUs."""

    case: Case
    forecast: Forecast
    speedup: float

    @property
    def efficiency(self) -> float:
        """Speed-up per GPU."""
        return self.speedup / self.case.gpus

    @property
    def allreduce(self) -> str:
        """The collective, as asked for or as the strategy has it."""
        return self.case.allreduce or self.forecast.placement.rule.algorithm

    @property
    def exposed_comm_seconds(self) -> float:
        """Seconds of a step that wait for other GPUs."""
        return self.forecast.step.parts.exposed_comm

    def as_dict(self) -> dict[str, object]:
        """A row of the JSON contract."""
        answer = self.forecast

        def shown(interval: Interval | None) -> dict[str, float] | None:
            return None if interval is None else interval.as_dict()

        return {
            "gpus": self.case.gpus,
            "nodes": self.case.nodes,
            "regime": self.case.regime,
            "allreduce": self.allreduce,
            "strategy": answer.placement.strategy,
            "batch_per_gpu": answer.batch_per_gpu,
            "global_batch": answer.global_batch,
            "step_seconds": answer.step.seconds.as_dict(),
            "step_parts": answer.step.parts.as_dict(),
            "samples_per_second": answer.samples_per_second,
            "epoch_seconds": shown(answer.epoch_seconds),
            "total_seconds": shown(answer.total_seconds),
            "dollars": shown(answer.dollars),
            "speedup": self.speedup,
            "efficiency": self.efficiency,
            "exposed_comm_seconds": self.exposed_comm_seconds,
            "fits": answer.fits,
        }


@dataclass(frozen=True)
class Series:
    """The rows of one regime and one collective, by number of GPUs."""

    regime: str
    allreduce: str
    rows: tuple[Row, ...]

    @property
    def _fitting(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.forecast.fits)

    @property
    def knee(self) -> tuple[Row, Row] | None:
        """Of the rows that fit, the last that was worth its GPUs and the first that was not; None where all are."""
        for before, after in pairwise(self._fitting):
            promised = after.case.gpus / before.case.gpus - 1
            gained = after.speedup / before.speedup - 1
            if gained < WORTH_FRACTION * promised:
                return before, after
        return None

    @property
    def sentence(self) -> str:
        """What the knee means for a purse."""
        asked = self.rows[0].case.allreduce
        name = f"{self.regime} scaling" + (f", {asked}" if asked else "")
        if len(self.rows) < 2:
            return f"{name}: one number of GPUs says nothing about scaling"
        if len(self._fitting) < 2:
            return f"{name}: fits on {'one' if self._fitting else 'none'} of these numbers of GPUs"
        if self.knee is None:
            last = self._fitting[-1]
            return f"{name}: worth it up to {last.case.gpus} GPUs, at {last.efficiency:.0%} efficiency"
        before, after = self.knee
        pay, gain = after.case.gpus / before.case.gpus, after.speedup / before.speedup
        return f"{name}: beyond {before.case.gpus} GPU{'s' * (before.case.gpus > 1)} you pay {pay:.3g}× for {gain:.2g}×"


@dataclass(frozen=True, repr=False)
class Scaling:
    """The answer: rows by regime, collective and number of GPUs."""

    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first = self.rows[0].forecast
        counts = ", ".join(str(gpus) for gpus in sorted({row.case.gpus for row in self.rows}))
        return f"Scaling({first.trace.name} on {first.placement.device.name}, {counts} GPUs)"

    @property
    def series(self) -> tuple[Series, ...]:
        """One per regime and collective asked for."""
        found: dict[tuple[str, str | None], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.case.regime, row.case.allreduce), []).append(row)
        return tuple(Series(regime, rows[-1].allreduce, tuple(rows)) for (regime, _), rows in found.items())

    @property
    def knee_gpus(self) -> int | None:
        """Of the first series; None where every step up was worth it."""
        knee = self.series[0].knee
        return None if knee is None else knee[0].case.gpus

    def as_dict(self) -> dict[str, object]:
        """The JSON contract of `epochcast scaling`."""
        first = self.rows[0].forecast
        return {
            "model": first.trace.name,
            "device": first.placement.device.name,
            "precision": first.trace.recipe.precision,
            "rows": [row.as_dict() for row in self.rows],
            "knee_gpus": self.knee_gpus,
            "knees": [
                {
                    "regime": s.regime,
                    "allreduce": s.allreduce,
                    "knee_gpus": None if s.knee is None else s.knee[0].case.gpus,
                    "sentence": s.sentence,
                }
                for s in self.series
            ],
            "warnings": list(self.warnings),
        }


def scaled(
    cases: Sequence[Case], answer: Callable[[Case], Forecast], progress: Callable[[int, int], None] | None = None
) -> Scaling:
    """Forecast every case; equal jobs (one GPU, whatever the collective) are forecast once."""
    known: dict[Case, Forecast] = {}
    answers: list[Forecast] = []
    for place, case in enumerate(cases):
        key = replace(case, regime="", allreduce=None) if case.gpus == 1 else replace(case, regime="")
        if key not in known:
            known[key] = answer(case)
        answers.append(known[key])
        if progress is not None:
            progress(place + 1, len(cases))
    base: dict[tuple[str, str | None], tuple[int, float]] = {}
    rows = []
    for case, found in zip(cases, answers, strict=True):
        least, rate = base.setdefault((case.regime, case.allreduce), (case.gpus, found.samples_per_second))
        rows.append(Row(case, found, least * found.samples_per_second / rate))
    warnings = [w for found in answers for w in found.warnings]
    used = dict.fromkeys(case.strategy for case in cases if case.strategy and not parts_of(case.strategy))
    if len(used) > 1:
        warnings.append(f"strategies by number of boxes: {', '.join(map(str, used))}")
    return Scaling(tuple(rows), tuple(dict.fromkeys(warnings)))


def cases(
    gpus: Sequence[int],
    *,
    regime: str,
    batch: int,
    global_batch: int | None = None,
    accumulate: int = 1,
    allreduce: Sequence[str] = (),
    strategy: str | None = None,
    gpus_per_node: int = GPUS_PER_NODE,
    nodes: int | None = None,
) -> tuple[Case, ...]:
    """Every combination, checked. Strong scaling keeps `global_batch`, or the batch of the least number of GPUs."""
    counts = tuple(dict.fromkeys(sorted(gpus)))
    if not counts or counts[0] < 1:
        raise BadInput(
            f"numbers of GPUs must be at least 1, such as 1,2,4,8; got {', '.join(map(str, gpus)) or 'none'}"
        )
    if regime not in (*REGIMES, "both"):
        raise UnknownName("regime", regime, [*REGIMES, "both"])
    if batch < 1:
        raise BadInput(f"batch must be at least 1, got {batch}")
    for name in allreduce:
        algorithm_named(name)
    least = batch * accumulate * _replicas(strategy, counts[0])
    kept = least if global_batch is None else global_batch
    return tuple(
        _case(count, wanted, name, strategy, batch, kept, accumulate, gpus_per_node, nodes)
        for wanted in (REGIMES if regime == "both" else (regime,))
        for name in (allreduce or (None,))
        for count in counts
    )


def _case(
    count: int,
    regime: str,
    allreduce: str | None,
    strategy: str | None,
    batch: int,
    global_batch: int,
    accumulate: int,
    gpus_per_node: int,
    nodes: int | None,
) -> Case:
    boxes = _boxes(count, gpus_per_node, nodes)
    own = strategy_for(strategy, count, boxes)
    each = batch
    if regime == "strong":
        passes = _replicas(strategy, count) * accumulate
        if global_batch % passes:
            raise BadInput(
                f"strong scaling: a batch of {global_batch} does not divide over {count} GPUs"
                + (f" and {accumulate} passes" if accumulate > 1 else "")
                + "; choose counts that divide it, or another --batch"
            )
        each = global_batch // passes
    return Case(count, boxes, regime, own, allreduce, each)


def _boxes(count: int, gpus_per_node: int, nodes: int | None) -> int:
    if gpus_per_node < 1:
        raise BadInput(f"GPUs per node must be at least 1, got {gpus_per_node}")
    boxes = nodes if nodes is not None else max(1, -(-count // gpus_per_node))
    if count % boxes:
        raise BadInput(f"{count} GPUs do not share out evenly over {boxes} nodes of {gpus_per_node}")
    return boxes


def strategy_for(strategy: str | None, gpus: int, nodes: int) -> str | None:
    """The strategy of one number of GPUs.

    One GPU needs none. MirroredStrategy is for one box: on several, MultiWorkerMirroredStrategy takes its place. A
    product that leaves dp out has as many data parallel ranks as GPUs are left.
    """
    if strategy is None:
        return None
    parts = parts_of(strategy)
    if parts is not None:
        split = prod(degree for name, degree in parts.items() if name in ("tp", "pp", "cp"))
        if "dp" in parts:
            return strategy
        if gpus % split:
            raise BadInput(f"strategy {strategy!r} splits a model over {split} GPUs, which do not divide {gpus}")
        return f"dp{gpus // split},{strategy}"
    if gpus == 1:
        return None
    name, _, option = strategy.partition(":")
    if name == "mirrored" and nodes > 1:
        return (
            "multi_worker_mirrored" if not option else f"multi_worker_mirrored:{'nccl' if option == 'nccl' else 'auto'}"
        )
    return strategy


def _replicas(strategy: str | None, gpus: int) -> int:
    own = strategy_for(strategy, gpus, 1)
    if own is None:
        return gpus
    layout = find_strategy(own, gpus).layout
    return gpus if layout is None else layout.data


def counts_in(text: str) -> tuple[int, ...]:
    """1,2,4,8 as numbers."""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise BadInput(f"numbers of GPUs are written 1,2,4,8; got {text!r}") from None


def names_in(text: str | None) -> tuple[str, ...]:
    """a,b as names."""
    return tuple(_trimmed(text.split(","))) if text else ()


def _trimmed(parts: Iterable[str]) -> Iterable[str]:
    return (part.strip() for part in parts if part.strip())
