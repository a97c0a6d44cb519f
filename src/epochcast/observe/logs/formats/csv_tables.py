"""Tables with a heading: Keras' CSVLogger, Ultralytics' results.csv, Lightning's metrics.csv, Chainer and fastai."""

import csv
import re
from dataclasses import dataclass

from epochcast.observe.logs.formats.format_rule import Format
from epochcast.observe.logs.formats.sighting import Sighting
from epochcast.observe.logs.time_stamps import clock_text_seconds

_HEADING = re.compile(r"^\s*\"?[A-Za-z_]")
_ALIGNED = re.compile(r"^\s*(?:epoch|iteration|step)\s{2,}[A-Za-z_]", re.IGNORECASE)
COUNTED = ("iteration", "iter")
STEPS = ("step", "global_step", *COUNTED, "train/global_step")
ELAPSED = ("time", "elapsed", "elapsed_time", "elapsed_seconds", "wall_time", "timestamp", "_runtime")
LOSSES = ("loss", "train_loss", "train/loss", "train_loss_step", "train/box_loss", "main/loss")
_NAMES = ("epoch", "step", "iter", "Epoch")


@dataclass
class TableParser:
    """Rows below a heading that names an epoch or a step; cells are parted by commas, semicolons, tabs or spaces."""

    flavour: str = "csv_no_time"
    columns: tuple[str, ...] = ()
    separator: str = ","
    first_epoch: float | None = None
    places: "Places | None" = None

    def sight(self, line: str) -> Sighting | None:
        """What a row says; a heading is remembered."""
        if _HEADING.match(line):
            if any(name in line for name in _NAMES):
                self._heading(line)
            return None
        if self.places is None:
            return None
        cells = _cells(line, self.separator)
        if len(cells) != len(self.columns):
            return None
        return self._row(cells, self.places)

    def _heading(self, line: str) -> None:
        separator = next((mark for mark in ",;\t" if mark in line), " " if _ALIGNED.match(line) else "")
        cells = tuple(cell.strip() for cell in _cells(line, separator)) if separator else ()
        if len(cells) < 2 or not ("epoch" in cells or any(name in cells for name in STEPS)):
            return
        if any(cell.replace(".", "").isdigit() for cell in cells):
            return
        self.columns, self.separator, self.places = cells, separator, Places.of(cells)
        is_timed = any(name in cells for name in ELAPSED)
        is_yolo = any(name.startswith(("train/box", "metrics/")) for name in cells)
        self.flavour = "ultralytics_csv" if is_yolo else "csv_time" if is_timed else "csv_no_time"
        if separator == " ":
            self.flavour = "chainer_text" if "iteration" in cells else "fastai" if "time" in cells else "columns"

    def _row(self, cells: list[str], places: "Places") -> Sighting | None:
        step, epoch = _cell(cells, places.steps), _cell(cells, places.epoch)
        if step is None and epoch is None:
            return None
        time, took = _cell(cells, places.elapsed), cells[places.took].strip() if places.took is not None else ""
        is_stamp = time is not None and time > 1e9
        return Sighting(
            step=None if step is None else step + (not places.is_counted),
            epochs_done=self._epochs(epoch) if step is None and epoch is not None else None,
            stamp_seconds=time if is_stamp else None,
            elapsed_seconds=None if is_stamp else time,
            interval_seconds=clock_text_seconds(took) if ":" in took else None,
            loss=_cell(cells, places.losses),
        )

    def _epochs(self, epoch: float) -> float:
        """Epochs from 0 or 1; a row is written when its epoch is over."""
        if self.first_epoch is None or epoch == 0:
            self.first_epoch = min(epoch, 1.0)
        return epoch + 1 - self.first_epoch


@dataclass(frozen=True)
class Places:
    """In which cells of a row what stands; the first that holds a number counts."""

    steps: tuple[int, ...]
    epoch: tuple[int, ...]
    elapsed: tuple[int, ...]
    losses: tuple[int, ...]
    took: int | None
    is_counted: bool

    @staticmethod
    def of(columns: tuple[str, ...]) -> "Places":
        """The places of the columns of a heading; of columns of one name the last."""
        last = {name: place for place, name in enumerate(columns)}

        def places(*names: str) -> tuple[int, ...]:
            return tuple(last[name] for name in names if name in last)

        is_counted = any(name in last for name in COUNTED)
        return Places(places(*STEPS), places("epoch"), places(*ELAPSED), places(*LOSSES), last.get("time"), is_counted)


def _cells(line: str, separator: str) -> list[str]:
    if separator == " ":
        return line.split()
    if '"' not in line:
        return line.split(separator)
    return next(csv.reader([line.replace("\0", "")], delimiter=separator), [])


def _cell(cells: list[str], places: tuple[int, ...]) -> float | None:
    for place in places:
        try:
            return float(cells[place])
        except ValueError:
            continue
    return None


FORMATS: tuple[Format, ...] = (
    Format("csv", "a table with a heading", (",", ";", "\t", "  "), TableParser, sureness=0.35),
)
