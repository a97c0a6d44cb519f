"""Tables with a heading: Keras' CSVLogger, Ultralytics' results.csv, Lightning's metrics.csv, Chainer and fastai."""

import csv
import re
from dataclasses import dataclass

from epochcast.tracking.formats.rule import Format
from epochcast.tracking.formats.sighting import Sighting
from epochcast.tracking.stamps import clock_text_seconds

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

    def sight(self, line: str) -> Sighting | None:
        """What a row says; a heading is remembered."""
        if _HEADING.match(line):
            if any(name in line for name in _NAMES):
                self._heading(line)
            return None
        cells = self._cells(line, self.separator) if self.columns else ()
        if not cells or len(cells) != len(self.columns):
            return None
        return self._row(dict(zip(self.columns, cells, strict=True)))

    @staticmethod
    def _cells(line: str, separator: str) -> tuple[str, ...]:
        if separator == " ":
            return tuple(line.split())
        return tuple(cell.strip() for cell in next(csv.reader([line.replace("\0", "")], delimiter=separator), []))

    def _heading(self, line: str) -> None:
        separator = next((mark for mark in ",;\t" if mark in line), " " if _ALIGNED.match(line) else "")
        cells = self._cells(line, separator) if separator else ()
        if len(cells) < 2 or not ("epoch" in cells or any(name in cells for name in STEPS)):
            return
        if any(cell.replace(".", "").isdigit() for cell in cells):
            return
        self.columns, self.separator = cells, separator
        is_timed = any(name in cells for name in ELAPSED)
        is_yolo = any(name.startswith(("train/box", "metrics/")) for name in cells)
        self.flavour = "ultralytics_csv" if is_yolo else "csv_time" if is_timed else "csv_no_time"
        if separator == " ":
            self.flavour = "chainer_text" if "iteration" in cells else "fastai" if "time" in cells else "columns"

    def _row(self, row: dict[str, str]) -> Sighting | None:
        step, epoch = _cell(row, *STEPS), _cell(row, "epoch")
        if step is None and epoch is None:
            return None
        time, took = _cell(row, *ELAPSED), row.get("time", "")
        is_stamp = time is not None and time > 1e9
        return Sighting(
            step=None if step is None else step + all(name not in row for name in COUNTED),
            epochs_done=self._epochs(epoch) if step is None and epoch is not None else None,
            stamp_seconds=time if is_stamp else None,
            elapsed_seconds=None if is_stamp else time,
            interval_seconds=clock_text_seconds(took) if ":" in took else None,
            loss=_cell(row, *LOSSES),
        )

    def _epochs(self, epoch: float) -> float:
        """Epochs from 0 or 1; a row is written when its epoch is over."""
        if self.first_epoch is None or epoch == 0:
            self.first_epoch = min(epoch, 1.0)
        return epoch + 1 - self.first_epoch


def _cell(row: dict[str, str], *names: str) -> float | None:
    for name in names:
        try:
            return float(row[name])
        except (KeyError, ValueError):
            continue
    return None


FORMATS: tuple[Format, ...] = (
    Format("csv", "a table with a heading", (",", ";", "\t", "  "), TableParser, sureness=0.35),
)
