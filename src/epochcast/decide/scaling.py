"""What the second, the eighth, the hundredth GPU buys: one job at several numbers of GPUs.

    weak      every GPU keeps its batch b; the batch of the job grows to b·n
    strong    the job keeps its batch B; every GPU gets B/n

    speed-up s(n) = n₀ · throughput(n)/throughput(n₀), n₀ the least number asked for (it counts as ideal)
    efficiency    = s(n)/n; under weak scaling this is t(n₀)/t(n) of one step

The knee is the largest number of GPUs whose last step up paid: beyond it, more GPUs bring less than half of their
number in throughput.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.frames import Framed
from epochcast.base.record import Record, paths
from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.topology import GPUS_PER_NODE
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.strategies.degrees import degrees_in
from epochcast.predict.forecast.strategies.strategy import Strategy
from epochcast.predict.forecast.strategies.strategy_table import algorithm_named, strategy_for

REGIMES = ("strong", "weak")
# A step from n to r·n GPUs pays when throughput grows by at least this part of what r promises.
WORTH_FRACTION = 0.5


@dataclass(frozen=True, slots=True)
class Case:
    """One job to forecast; `batch` is per GPU and pass, `allreduce` None where the strategy's own counts."""

    gpus: int
    nodes: int
    regime: str
    strategy: Strategy
    allreduce: str | None
    batch: int


# What a row takes from its forecast.
_FORECAST_VALUES = (
    *("strategy", "batch_per_gpu", "global_batch", "step_seconds", "step_parts", "samples_per_second"),
    *("images_per_second", "tokens_per_second", "tokens_per_second_per_gpu", "mfu", "epoch_seconds", "total_seconds"),
    *("dollars", "fits", "memory_verdict", "fits_probability"),
)


@dataclass(frozen=True)
class ScalingRow(Record):
    """One number of GPUs."""

    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("allreduce", "speedup", "efficiency", "exposed_comm_seconds"),
        gpus="case.gpus",
        nodes="case.nodes",
        regime="case.regime",
        **{name: f"forecast.{name}" for name in _FORECAST_VALUES},
    )

    case: Case
    forecast: Forecast
    speedup: float
    allreduce: str
    """The collective, as asked for or as the strategy has it."""

    @property
    def efficiency(self) -> float:
        """Speed-up per GPU."""
        return self.speedup / self.case.gpus

    @property
    def exposed_comm_seconds(self) -> float:
        """Seconds of a step that wait for other GPUs."""
        parts = self.forecast.step_parts
        return 0.0 if parts is None else parts.exposed_comm


@dataclass(frozen=True)
class Series(Record):
    """The rows of one regime and one collective, by number of GPUs."""

    json_paths: ClassVar[Mapping[str, str]] = paths("regime", "allreduce", "knee_gpus", "sentence")

    regime: str
    allreduce: str
    rows: tuple[ScalingRow, ...]

    @property
    def _fitting(self) -> tuple[ScalingRow, ...]:
        return tuple(row for row in self.rows if row.forecast.fits)

    @property
    def knee(self) -> tuple[ScalingRow, ScalingRow] | None:
        """Of the rows that fit, the last that was worth its GPUs and the first that was not; None where all are."""
        for before, after in pairwise(self._fitting):
            promised = after.case.gpus / before.case.gpus - 1
            gained = after.speedup / before.speedup - 1
            if gained < WORTH_FRACTION * promised:
                return before, after
        return None

    @property
    def knee_gpus(self) -> int | None:
        """The last number of GPUs that was worth it; None where every step up was."""
        return None if self.knee is None else self.knee[0].case.gpus

    @property
    def sentence(self) -> str:
        """What the knee means for the price."""
        allreduce = self.rows[0].case.allreduce
        name = f"{self.regime} scaling" + (f", {allreduce}" if allreduce else "")
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
class Scaling(Displayed, Framed, Record):
    """The answer: rows by regime, collective and number of GPUs."""

    view: ClassVar[str] = "scaling"
    json_paths: ClassVar[Mapping[str, str]] = paths(
        *("rows", "knee_gpus", "warnings"),
        knees="series",
        **{name: f"first.{name}" for name in ("model", "device", "precision", "optimizer")},
    )
    json_merged: ClassVar[tuple[str, ...]] = ("setup",)

    rows: tuple[ScalingRow, ...]
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        first = self.first
        counts = ", ".join(str(gpus) for gpus in sorted({row.case.gpus for row in self.rows}))
        return f"Scaling({first.model} on {first.device}, {counts} GPUs)"

    @property
    def series(self) -> tuple[Series, ...]:
        """One per regime and collective asked for."""
        rows_of: dict[tuple[str, str | None], list[ScalingRow]] = {}
        for row in self.rows:
            rows_of.setdefault((row.case.regime, row.case.allreduce), []).append(row)
        return tuple(Series(regime, rows[-1].allreduce, tuple(rows)) for (regime, _), rows in rows_of.items())

    @property
    def knee_gpus(self) -> int | None:
        """Of the first series; None where every step up was worth it."""
        return self.series[0].knee_gpus

    @property
    def first(self) -> Forecast:
        """The forecast of the first row, for what all rows share."""
        return self.rows[0].forecast

    @property
    def setup(self) -> dict[str, object]:
        """What decides the numbers of every row beside its GPUs."""
        return self.first.setup

    def records(self) -> tuple[dict[str, object], ...]:
        """A row for each number of GPUs."""
        return tuple(row.as_dict() for row in self.rows)


def scaled(
    cases: Sequence[Case], answer: Callable[[Case], Forecast], progress: Callable[[int, int], None] | None = None
) -> Scaling:
    """Forecast every case; equal jobs (one GPU, whatever the collective) are forecast once."""
    forecasts: dict[Case, Forecast] = {}
    answers: list[Forecast] = []
    for place, case in enumerate(cases):
        key = replace(case, regime="", allreduce=None) if case.gpus == 1 else replace(case, regime="")
        if key not in forecasts:
            forecasts[key] = answer(case)
        answers.append(forecasts[key])
        if progress is not None:
            progress(place + 1, len(cases))
    base: dict[tuple[str, str | None], tuple[int, float]] = {}
    rows = []
    for case, forecast in zip(cases, answers, strict=True):
        least, rate = base.setdefault((case.regime, case.allreduce), (case.gpus, forecast.samples_per_second))
        collective = case.allreduce or forecast.details.placement.strategy.algorithm
        rows.append(ScalingRow(case, forecast, least * forecast.samples_per_second / rate, collective))
    warnings = [w for forecast in answers for w in forecast.warnings]
    names = dict.fromkeys(case.strategy.name for case in cases if case.gpus > 1)
    used = [name for name in names if degrees_in(name) is None]
    if len(used) > 1:
        warnings.append(f"strategies by number of nodes: {', '.join(used)}")
    return Scaling(tuple(rows), tuple(dict.fromkeys(warnings)))


def cases(
    gpus: Sequence[int],
    *,
    regime: str,
    batch: int | None,
    global_batch: int | None = None,
    accumulate: int = 1,
    allreduce: Sequence[str] = (),
    strategy: str | None = None,
    gpus_per_node: int = GPUS_PER_NODE,
    nodes: int | None = None,
) -> tuple[Case, ...]:
    """Every combination, checked. Strong scaling keeps `global_batch`, or the batch of the least number of GPUs; where
    only the global batch is given, `batch` is its part there.
    """
    counts = tuple(dict.fromkeys(sorted(gpus)))
    if not counts or counts[0] < 1:
        raise BadInput(
            f"numbers of GPUs must be at least 1, such as 1,2,4,8; got {', '.join(map(str, gpus)) or 'none'}"
        )
    if regime not in (*REGIMES, "both"):
        raise UnknownName("regime", regime, [*REGIMES, "both"])
    for name in allreduce:
        algorithm_named(name)
    passes = accumulate * strategy_for(strategy, counts[0], 1).replicas(counts[0])
    if batch is None:
        if global_batch is None or global_batch % passes:
            raise BadInput(f"scaling needs a batch that {counts[0]} GPUs share out evenly, got {global_batch}")
        batch = global_batch // passes
    strong_batch = batch * passes if global_batch is None else global_batch
    return tuple(
        _case(count, wanted, name, strategy, batch, strong_batch, accumulate, gpus_per_node, nodes)
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
    chosen = strategy_for(strategy, count, boxes)
    each = batch
    if regime == "strong":
        passes = chosen.replicas(count) * accumulate
        if global_batch % passes:
            raise BadInput(
                f"strong scaling: a batch of {global_batch} does not divide over {count} GPUs"
                + (f" and {accumulate} passes" if accumulate > 1 else "")
                + "; choose counts that divide it, or another batch"
            )
        each = global_batch // passes
    return Case(count, boxes, regime, chosen, allreduce, each)


def _boxes(count: int, gpus_per_node: int, nodes: int | None) -> int:
    if gpus_per_node < 1:
        raise BadInput(f"GPUs per node must be at least 1, got {gpus_per_node}")
    boxes = nodes if nodes is not None else max(1, -(-count // gpus_per_node))
    if count % boxes:
        raise BadInput(f"{count} GPUs do not share out evenly over {boxes} nodes of {gpus_per_node}")
    return boxes
