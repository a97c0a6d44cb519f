"""The file of all rows: what was asked, and forecast ÷ measured; nothing of the measurement itself.

A page can be written from it again, so that one table can be asked without the other.
"""

import csv
from collections.abc import Iterable, Mapping
from io import StringIO

from studies.figures_csv import figures_csv
from studies.user_runs.scored_runs import Ratios, ScoredRun

_WORDS = ("table", "row", "source", "task", "model", "device", "confidence", "command", "refused")
_ENDS = ("low", "mid", "high")
_RATIOS = ("time", "memory")
COLUMNS = (*_WORDS, *(f"{what}_{end}" for what in _RATIOS for end in _ENDS))


class _Cells:
    """The cells of a row, by column."""

    def __init__(self, run: ScoredRun) -> None:
        cells = {name: getattr(run, name) for name in _WORDS}
        for what in _RATIOS:
            ratios = getattr(run, what)
            cells |= {f"{what}_{end}": None if ratios is None else getattr(ratios, end) for end in _ENDS}
        self.__dict__.update(cells)


def rows_csv(runs: Iterable[ScoredRun]) -> str:
    """The text of the file."""
    return figures_csv(COLUMNS, map(_Cells, runs))


def read_rows(text: str) -> list[ScoredRun]:
    """The rows of such a file."""
    return [
        ScoredRun(**{name: cells[name] for name in _WORDS}, **{what: _ratios(cells, what) for what in _RATIOS})
        for cells in csv.DictReader(StringIO(text))
    ]


def _ratios(cells: Mapping[str, str], what: str) -> Ratios | None:
    low, mid, high = (cells[f"{what}_{end}"] for end in _ENDS)
    return Ratios(float(low), float(mid), float(high)) if mid else None
