"""Our own recordings: the lines that `ec.track` and the callbacks write (`recording.records`)."""

import json
from dataclasses import dataclass
from typing import Any

from epochcast.observe.logs.formats.format_rule import Format
from epochcast.observe.logs.formats.sighting import Sight, Sighting


@dataclass
class OwnParser:
    """Every line says what it is; rank and attempt are in the line that an attempt begins with."""

    flavour: str = "epochcast"
    rank: int | None = None

    def sight(self, line: str) -> Sighting | None:
        """What the object in the line says."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return None  # cut off, as the last line of a killed attempt may be
        if not isinstance(record, dict):
            return None
        if "epochcast_track" in record:
            return self._start(record)
        match record.get("ec"):
            case "train":
                return self._train(record)
            case "begin" | "done":
                what = str(record.get("what") or "pause")
                phase = _PAUSES.get(what, "pause")
                at, seconds = _number(record, "at"), _number(record, "seconds")
                return Sighting(phase, stamp_seconds=at, pause_seconds=seconds, rank=self.rank, what=what)
            case "end":
                at, step = _number(record, "at"), _number(record, "step")
                return Sighting("end", step=step, stamp_seconds=at, rank=self.rank)
            case _:
                return None

    def _start(self, record: dict[str, Any]) -> Sighting:
        rank, attempt = _number(record, "rank"), _number(record, "attempt")
        self.rank = int(rank) if rank is not None and (_number(record, "ranks") or 1) > 1 else None
        return Sighting(
            "header",
            stamp_seconds=_number(record, "at"),
            total=_number(record, "total_steps"),
            epochs=_number(record, "total_epochs"),
            batches=_number(record, "steps_per_epoch"),
            attempt=None if attempt is None else int(attempt),
        )

    def _train(self, record: dict[str, Any]) -> Sighting:
        return Sighting(
            step=_number(record, "step"),
            epochs_done=_number(record, "epoch"),
            stamp_seconds=_number(record, "at"),
            step_seconds=_number(record, "step_seconds"),
            data_seconds=_number(record, "data_seconds"),
            loss=_number(record, "loss"),
            rank=self.rank,
        )


_PAUSES: dict[str, Sight] = {"validation": "validation", "checkpoint": "checkpoint"}


def _number(record: dict[str, Any], name: str) -> float | None:
    value = record.get(name)
    return None if value is None or isinstance(value, bool) else float(value)


# Nobody else writes such lines; generic readers of JSON lines take them, too.
FORMAT = Format("epochcast", "epochcast", ('"epochcast_track"', '"ec": "'), OwnParser, sureness=2.0, is_dated=True)
