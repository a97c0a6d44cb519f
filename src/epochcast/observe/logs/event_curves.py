"""From the curves of an event file to reports of the run: one curve counts the steps, the others are its company.

Once a curve was chosen only its records are decoded, and those of validation; the others are passed over by their
lengths. Of a very long curve one record in so many is decoded, and each one at which its steps or its times do not go
on as before (`sampling` does the same with lines).
"""

import re
import struct

import numpy as np

from epochcast.observe.logs import line_sampling as sampling
from epochcast.observe.logs.event_files import EventReader, Records, Scalar, varint
from epochcast.observe.logs.formats.sighting import Sighting

_NOT_TRAINING = re.compile(r"(?i)(?<![a-z])(?:val\w*|eval\w*|test\w*|dev|hp|hparams?)(?![a-z])")
_LOSS = re.compile(r"(?i)loss")

# So many values are looked at before one curve is chosen: the training curve with the most of them.
LOOK_AHEAD = 400

# Of the records of all curves one in so many is decoded to hear of curves that came later.
LISTENING = 127

# An event begins with its time (field 1, a double) behind a header of 12 bytes; its step (field 2) comes next.
_TIME_AT, _STEP_AT = 12 + 1, 12 + 9
_STEP_KEY = 0x10


class CurveReader:
    """Reads an event file; the curve with most values that is not of validation stands for the training."""

    def __init__(self) -> None:
        self._events = EventReader()
        self._waiting: list[Scalar] = []
        self._tag: str | None = None
        self._beside: set[str] = set()
        self._reports = 0
        self._since = 0
        self._last: tuple[int, float] | None = None
        self._usual: tuple[float, float] | None = None

    def feed(self, data: bytes) -> list[Sighting]:
        """What the records that are now complete say of the run."""
        records = self._events.framed(data)
        if self._tag is not None:
            return self._of_curve(records)
        for number, start in enumerate(records.starts, 1):
            self._waiting += self._events.scalars(records, start)
            if len(self._waiting) >= LOOK_AHEAD:
                sightings = self.settle()
                if self._tag is not None:
                    return sightings + self._of_curve(Records(records.data, records.starts[number:]))
                self._waiting = []  # curves of validation alone
        return []

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

    def _of_curve(self, records: Records) -> list[Sighting]:
        """Decode what has to be decoded of these records, in their order."""
        assert self._tag is not None
        chosen = records.holding(_written(self._tag))
        # Records of curves that came later are found by chance; what they are called is known from then on.
        decoded = dict.fromkeys(range(LISTENING - 1 - self._since % LISTENING, len(records.starts), LISTENING), 1)
        self._since += len(records.starts)
        for tag in self._beside:
            among = records.holding(_written(tag))
            decoded.update(
                dict.fromkeys(among if self._reports < sampling.EXACT_REPORTS else among[:: sampling.STRIDE], 1)
            )
        for index in chosen:
            decoded.pop(index, None)
        decoded.update(self._sampled(records, chosen))
        sightings: list[Sighting] = []
        for index in sorted(decoded):
            seen = self._sightings(self._events.scalars(records, records.starts[index]))
            for sighting in seen:
                sighting.reports = decoded[index]
            sightings += seen
        return sightings

    def _sampled(self, records: Records, chosen: list[int]) -> dict[int, int]:
        """Records of the curve that are to be decoded, and for how many reports each stands."""
        exact = max(0, sampling.EXACT_REPORTS - self._reports)
        self._reports += len(chosen)
        counts = dict.fromkeys(chosen[:exact], 1)
        rest = chosen[exact:]
        if not rest:
            return counts
        before = -1
        for at in self._odd([_step_and_seconds(records.data, records.starts[index]) for index in rest]):
            counts[rest[at]] = at - before
            before = at
        return counts

    def _odd(self, points: list[tuple[int, float]]) -> list[int]:
        """Places of reports that do not go on as before, of those in front of them, one in so many, and the last."""
        steps, seconds = np.diff(np.array([self._last or points[0], *points], dtype=float), axis=0).T
        self._last = points[-1]
        usual = self._usual or (float(np.median(steps)), float(np.median(seconds)))
        is_odd = (steps <= 0) | (steps > sampling.MOST_STEPS_CHANGE * usual[0]) | (seconds < 0)
        is_odd |= seconds > sampling.MOST_CHANGE * usual[1] + sampling.MOST_JUMP_SECONDS
        self._usual = (float(np.median(steps)), float(np.median(seconds)))
        is_odd[:-1] |= is_odd[1:]
        is_odd[:: sampling.STRIDE] = True
        is_odd[-1] = True
        return [int(at) for at in np.flatnonzero(is_odd)]

    def _sightings(self, scalars: list[Scalar]) -> list[Sighting]:
        sightings = []
        for scalar in scalars:
            if scalar.tag == self._tag:
                loss = scalar.value if _LOSS.search(scalar.tag) else None
                sightings.append(Sighting(step=float(scalar.step), stamp_seconds=scalar.wall_seconds, loss=loss))
            elif _NOT_TRAINING.search(scalar.tag):
                self._beside.add(scalar.tag)
                sightings.append(Sighting("validation", stamp_seconds=scalar.wall_seconds))
        return sightings


def _written(tag: str) -> bytes:
    """A tag as a summary's value holds it: field 1, its length, its letters."""
    name = tag.encode()
    size = len(name)
    return b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + name


def _step_and_seconds(data: bytes, start: int) -> tuple[int, float]:
    """What stands at the usual places of an event; 0 where no step is written, as in a run's first report."""
    step = varint(data, start + _STEP_AT + 1)[0] if data[start + _STEP_AT] == _STEP_KEY else 0
    return step, struct.unpack_from("<d", data, start + _TIME_AT)[0]
