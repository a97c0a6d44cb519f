"""MLPerf's :::MLLOG events: epochs, samples or steps that are done, with the time in milliseconds."""

import json
from dataclasses import dataclass
from typing import Any

from epochcast.tracking.formats.rule import Format, Rule, format_of
from epochcast.tracking.formats.sighting import Sighting

MARK = ":::MLLOG"
DONE = {"train_loss", "tracked_stats", "train_accuracy", "learning_rate", "throughput"}
ENDED = {"epoch_stop", "block_stop"}


@dataclass
class MllogParser:
    """Progress in the finest unit that the log counts: steps, samples or epochs."""

    flavour: str = "mllog"
    unit: str | None = None

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
        if key.startswith("eval_st"):
            return Sighting("validation", stamp_seconds=seconds)
        if key == "run_stop":
            return Sighting("end", stamp_seconds=seconds)
        unit, done = _progress(key, metadata)
        if done is None or unit is None or (self.unit is not None and unit != self.unit):
            return None
        self.unit = unit
        loss = value if key == "train_loss" and isinstance(value, int | float) else None
        sighting = Sighting(stamp_seconds=seconds, loss=loss)
        if unit == "epoch_num":
            sighting.epochs_done = done
        else:
            sighting.step = done
        return sighting


def _progress(key: str, metadata: dict[str, Any]) -> tuple[str | None, float | None]:
    """The unit and the count of an event that says that work is done."""
    if key in DONE:
        for unit in ("step_num", "samples_count"):
            if isinstance(metadata.get(unit), int | float):
                return unit, float(metadata[unit])
    if key in ENDED:
        name = "epoch_num" if key == "epoch_stop" else "first_epoch_num"
        if isinstance(metadata.get(name), int | float):
            return "epoch_num", float(metadata[name]) + float(metadata.get("epoch_count") or 1) - 1
    return None, None


MLLOG = Format("mllog", "MLPerf", (MARK,), MllogParser, sureness=0.4)

MLPERF_OLD = format_of(
    "mlperf_v0.5",
    "MLPerf 0.5",
    Rule("train_epoch: ", r":::MLPv\S+ \S+ (?P<unix>\d+\.\d+) \(.*?\) train_epoch: (?P<epochs_done>\d+)"),
    sureness=0.3,
)

FORMATS: tuple[Format, ...] = (MLLOG, MLPERF_OLD)
