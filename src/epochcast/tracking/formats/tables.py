"""CSV logs with a heading: Keras' CSVLogger, Ultralytics' results.csv, Lightning's metrics.csv."""

import csv
import re
from dataclasses import dataclass

from epochcast.tracking.formats.rule import Format
from epochcast.tracking.formats.sighting import Sighting

_HEADING = re.compile(r"^\s*\"?[A-Za-z_]")
STEPS = ("step", "global_step", "iteration", "iter", "train/global_step")
ELAPSED = ("time", "elapsed", "elapsed_time", "elapsed_seconds", "wall_time", "timestamp", "_runtime")
LOSSES = ("loss", "train_loss", "train/loss", "train_loss_step", "train/box_loss")


@dataclass
class TableParser:
    """Rows below a heading that names an epoch or a step."""

    flavour: str = "csv_no_time"
    columns: tuple[str, ...] = ()
    first_epoch: float | None = None

    def sight(self, line: str) -> Sighting | None:
        """What a row says; a heading is remembered."""
        cells = tuple(cell.strip() for cell in next(csv.reader([line.replace("\0", "")]), []))
        if _HEADING.match(line) and len(cells) > 1:
            self._heading(cells)
            return None
        if not self.columns or len(cells) != len(self.columns):
            return None
        return self._row(dict(zip(self.columns, cells, strict=True)))

    def _heading(self, cells: tuple[str, ...]) -> None:
        if "epoch" in cells or any(name in cells for name in STEPS):
            self.columns = cells
            is_timed = any(name in cells for name in ELAPSED)
            is_yolo = any(name.startswith(("train/box", "metrics/")) for name in cells)
            self.flavour = "ultralytics_csv" if is_yolo else "csv_time" if is_timed else "csv_no_time"

    def _row(self, row: dict[str, str]) -> Sighting | None:
        step, epoch = _cell(row, *STEPS), _cell(row, "epoch")
        if step is None and epoch is None:
            return None
        time = _cell(row, *ELAPSED)
        is_stamp = time is not None and time > 1e9
        return Sighting(
            step=None if step is None else step + 1,
            epochs_done=self._epochs(epoch) if step is None and epoch is not None else None,
            stamp_seconds=time if is_stamp else None,
            elapsed_seconds=None if is_stamp else time,
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


FORMATS: tuple[Format, ...] = (Format("csv", "CSV with a heading", (",",), TableParser, sureness=0.35),)
