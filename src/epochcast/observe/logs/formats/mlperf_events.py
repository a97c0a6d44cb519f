"""MLPerf's :::MLLOG events: epochs, samples or steps that are done, with the time in milliseconds."""

import json
from dataclasses import dataclass, field
from typing import Any

from epochcast.observe.logs.formats.format_rule import Format, LineRule, format_of
from epochcast.observe.logs.formats.sighting import Sighting

MARK = ":::MLLOG"
DONE = {"train_loss", "tracked_stats", "train_accuracy", "learning_rate", "throughput"}
ENDED = {"epoch_stop", "block_stop"}
EVALUATED = {"eval_accuracy", "eval_error", "eval_stop"}
COUNTS = ("step_num", "samples_count", "epoch_num")

# Changes of another count after which one that does not move at all is given up.
MOVES = 3


@dataclass
class MllogParser:
    """Progress in the first unit that the log counts and that moves: steps, samples or epochs."""

    flavour: str = "mllog"
    unit: str | None = None
    block_epochs: float = 1.0
    last: dict[str, float] = field(default_factory=dict)
    moves: dict[str, int] = field(default_factory=dict)

    def sight(self, line: str) -> Sighting | None:
        """What one event says."""
        start = line.find("{", line.find(MARK))
        try:
            event = json.JSONDecoder().raw_decode(line[start:])[0] if start >= 0 else None
        except ValueError:
            return None
        if not isinstance(event, dict) or not isinstance(event.get("time_ms"), int | float):
            return None
        seconds = event["time_ms"] / 1e3
        metadata = event.get("metadata")
        return self._read(
            str(event.get("key")), event.get("value"), metadata if isinstance(metadata, dict) else {}, seconds
        )

    def _read(self, key: str, value: Any, metadata: dict[str, Any], seconds: float) -> Sighting | None:
        if key == "eval_start":
            return Sighting("validation", stamp_seconds=seconds)
        if key == "run_stop":
            return Sighting("end", stamp_seconds=seconds)
        if key == "block_start":
            self.block_epochs = _number(metadata, "epoch_count") or 1.0
        unit, done = self._progress(key, metadata)
        if done is None or unit is None or not self._counts(unit, done):
            return Sighting("validation", stamp_seconds=seconds) if key == "eval_stop" else None
        loss = value if key == "train_loss" and isinstance(value, int | float) else None
        sighting = Sighting(stamp_seconds=seconds, loss=loss)
        if unit.endswith("epoch_num") and not unit.startswith("eval"):
            sighting.epochs_done = done
        else:
            sighting.step = done
        return sighting

    def _counts(self, unit: str, done: float) -> bool:
        """Whether this is the count that measures the run."""
        if done != self.last.get(unit):
            self.moves[unit] = self.moves.get(unit, 0) + 1
            self.last[unit] = done
        if self.unit is None:
            # Counts at the end of blocks and evaluations wait for a finer one to come.
            self.unit = unit if " " not in unit or self.moves[unit] > 1 else None
        elif self.moves[unit] >= MOVES and self.moves[self.unit] <= 1:
            self.unit = unit
        return unit == self.unit

    def _progress(self, key: str, metadata: dict[str, Any]) -> tuple[str | None, float | None]:
        """The unit and the count of an event that says that work is done."""
        if key in ENDED and (first := _number(metadata, "first_epoch_num")) is not None:
            return "epoch_num", first + (_number(metadata, "epoch_count") or self.block_epochs) - 1
        if key == "epoch_stop" and (epoch := _number(metadata, "epoch_num")) is not None:
            return "epoch_num", epoch
        for unit in COUNTS if key in DONE | ENDED else ():
            if (count := _number(metadata, unit)) is not None:
                if unit == "epoch_num" and key in DONE:
                    return None, None
                return unit if key in DONE else f"block {unit}", count
        if key in EVALUATED:
            for unit in COUNTS:
                if (count := _number(metadata, unit)) is not None:
                    # Some count samples here under the name of epochs: a unit of its own.
                    return f"eval {unit}", count
        return None, None


def _number(metadata: dict[str, Any], name: str) -> float | None:
    value = metadata.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


MLLOG = Format("mllog", "MLPerf", (MARK,), MllogParser, sureness=0.4)

MLPERF_OLD = format_of(
    "mlperf_v0.5",
    "MLPerf 0.5",
    LineRule("train_epoch: ", r":::MLPv\S+ \S+ (?P<unix>\d+\.\d+) \(.*?\) train_epoch: (?P<epochs_done>\d+)"),
    sureness=0.3,
)

FORMATS: tuple[Format, ...] = (MLLOG, MLPERF_OLD)
