"""The figures of a study as the text of its `result.csv`."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO


def figures_csv(columns: Sequence[str], figures: Iterable[object]) -> str:
    """A line per figure, a cell per attribute: floats to three decimals, nothing for None."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for figure in figures:
        writer.writerow([_show(getattr(figure, name)) for name in columns])
    return text.getvalue()


def _show(value: str | int | float | None) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
