"""From the curves of an event file to reports of the run: one curve counts the steps, the others are its company."""

import re

from epochcast.tracking.events import EventReader, Scalar
from epochcast.tracking.formats.sighting import Sighting

_NOT_TRAINING = re.compile(r"(?i)(?<![a-z])(?:val\w*|eval\w*|test\w*|dev|hp|hparams?)(?![a-z])")
_LOSS = re.compile(r"(?i)loss")

# So many values are looked at before one curve is chosen: the training curve with the most of them.
LOOK_AHEAD = 400


class CurveReader:
    """Reads an event file; the curve with most values that is not of validation stands for the training."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._waiting: list[Scalar] = []
        self._tag: str | None = None

    def feed(self, data: bytes) -> list[Sighting]:
        """What the records that are now complete say of the run."""
        scalars = self._events.feed(data)
        if self._tag is not None:
            return self._sightings(scalars)
        self._waiting.extend(scalars)
        return self.settle() if len(self._waiting) >= LOOK_AHEAD else []

    def settle(self) -> list[Sighting]:
        """Choose the curve from what has come so far."""
        if not self._waiting or self._tag is not None:
            return []
        counts: dict[str, int] = {}
        for scalar in self._waiting:
            if not _NOT_TRAINING.search(scalar.tag):
                counts[scalar.tag] = counts.get(scalar.tag, 0) + 1
        if not counts:
            return []
        most = max(counts.values())
        best = [tag for tag, count in counts.items() if count >= 0.9 * most]
        self._tag = next((tag for tag in best if _LOSS.search(tag)), best[0])
        waiting, self._waiting = self._waiting, []
        return self._sightings(waiting)

    @property
    def tag(self) -> str | None:
        """The curve that counts."""
        return self._tag

    def _sightings(self, scalars: list[Scalar]) -> list[Sighting]:
        found = []
        for scalar in scalars:
            if scalar.tag == self._tag:
                loss = scalar.value if _LOSS.search(scalar.tag) else None
                found.append(Sighting(step=float(scalar.step), stamp_seconds=scalar.wall_seconds, loss=loss))
            elif _NOT_TRAINING.search(scalar.tag):
                found.append(Sighting("validation", stamp_seconds=scalar.wall_seconds))
        return found
