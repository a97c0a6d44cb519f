"""Keras' own progress lines: bars of Keras 2 and 3, and one line per epoch (`verbose=2`).

Downloads and `evaluate` draw the same bar: only bars below an `Epoch 1/20` line, until that epoch's closing line, are
training.
"""

import re
from dataclasses import dataclass

from epochcast.observe.logs.formats.format_rule import NUMBER, Format, number
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.time_stamps import UNITS, clock_text_seconds

_PER = r"(?P<per>[\d.]+)(?P<unit>us|ms|s)/(?:step|sample|epoch)"
_EPOCH = re.compile(r"(?:^|[\s:\]>|])Epoch (\d+)/(\d+)\s*$")
_BAR = re.compile(
    rf"(?P<done>\d+)/(?P<total>\d+) \[[=>.]+\] - (?:ETA: (?P<rest>[\d:]+)s?|(?P<took>[\d:]+)s"
    rf"(?: {_PER})?)(?P<behind>.*)"
)
_BAR_3 = re.compile(rf"(?P<done>\d+)/(?P<total>\d+) ━+\S* +(?P<took>[\d:]+)s? {_PER}(?P<behind>.*)")
_OPEN_ENDED = re.compile(rf"(?P<done>\d+)/Unknown (?:- )?(?P<took>[\d:]+)s {_PER}(?P<behind>.*)")
_LINE = re.compile(
    rf"^\s*(?:(?P<done>\d+)/(?P<total>\d+) )?(?:- )?(?P<took>\d+)s(?: - {_PER})? - (?P<behind>.*\bloss: .*)"
)
_LOSS = re.compile(rf"(?<!\w)loss: ({NUMBER})")


@dataclass
class KerasParser:
    """Reads the three ways in which Keras reports."""

    flavour: str = "keras_bar"
    epoch: int | None = None
    is_open: bool = False
    sections: int = 0

    def sight(self, line: str) -> Sighting | None:
        """What a bar, a closing line or an `Epoch` line says."""
        if match := _EPOCH.search(line):
            self.epoch, self.is_open = int(match[1]) - 1, True
            self.sections += 1
            return Sighting("header", epochs=float(match[2]))
        if match := _BAR.search(line):
            return self._bar(match, "keras_bar")
        if match := _BAR_3.search(line):
            return self._bar(match, "keras3")
        if match := _OPEN_ENDED.search(line):
            return self._open_ended(match)
        if match := _LINE.match(line):
            return self._closing(match, "keras_verbose2")
        return None

    def _is_training(self, behind: str) -> bool:
        if self.epoch is None and "loss: " in behind:  # a log that begins within an epoch
            self.epoch, self.is_open = 0, True
        return self.is_open

    def _bar(self, match: re.Match[str], flavour: str) -> Sighting | None:
        if not self._is_training(match["behind"]):
            return None
        done, total = float(match["done"]), float(match["total"])
        if done < total or match.groupdict().get("rest") is not None or _is_rest(match, total):
            rest = clock_text_seconds(match.groupdict().get("rest") or match["took"])
            self.flavour = flavour
            return Sighting(
                epoch=self.epoch,
                section=self.sections,
                batch=done,
                batches=total,
                epoch_remaining_seconds=rest,
                average_seconds=_step_seconds(match) if flavour == "keras3" else None,
                step_seconds=_step_seconds(match),
                loss=_loss(match["behind"]),
            )
        return self._closing(match, flavour)

    def _closing(self, match: re.Match[str], flavour: str) -> Sighting | None:
        if not self._is_training(match["behind"]):
            return None
        self.is_open = False
        self.flavour = flavour
        seconds = clock_text_seconds(match["took"])
        total = match["total"]
        sighting = Sighting(epoch=self.epoch, section=self.sections, section_seconds=seconds, closes_epoch=True)
        sighting.loss = _loss(match["behind"])
        if total is not None:
            sighting.batch, sighting.batches = float(match["done"]), float(total)
            sighting.step_seconds = seconds / float(total) if seconds and float(total) else _step_seconds(match)
        else:
            sighting.epochs_done = float((self.epoch or 0) + 1)
        return sighting

    def _open_ended(self, match: re.Match[str]) -> Sighting | None:
        if not self._is_training(match["behind"]):
            return None
        return Sighting(
            epoch=self.epoch,
            section=self.sections,
            batch=float(match["done"]),
            section_seconds=clock_text_seconds(match["took"]),
            step_seconds=_step_seconds(match),
            loss=_loss(match["behind"]),
        )


def _is_rest(match: re.Match[str], total: float) -> bool:
    """Keras 3 writes what remains in the same place as what an epoch took: `0s` behind the last batch is the former."""
    per = _step_seconds(match)
    return "━" in match[0] and per is not None and clock_text_seconds(match["took"]) < 0.5 * per * total - 1


def _step_seconds(match: re.Match[str]) -> float | None:
    per = match.groupdict().get("per")
    return float(per) * UNITS[match["unit"]] if per else None


def _loss(behind: str) -> float | None:
    match = _LOSS.search(behind)
    return number(match[1]) if match else None


KERAS = Format("keras", "Keras", ("Epoch ", "] - ", " ━", "/Unknown ", "s - "), KerasParser, sureness=0.8)

FORMATS: tuple[Format, ...] = (KERAS,)
