"""Answers as tables of polars and pandas: a row for each of their rows, intervals as three columns.

>>> flat({"step_seconds": {"low": 1.0, "mid": 2.0, "high": 3.0}, "gpus": 4})
{'step_seconds_low': 1.0, 'step_seconds_mid': 2.0, 'step_seconds_high': 3.0, 'gpus': 4}
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from epochcast.errors import MissingExtra

if TYPE_CHECKING:
    import pandas
    import polars


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Without nested tables, whose keys are joined by underscores; a list is a text, its parts joined by semicolons."""
    values: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{key}_")
        elif isinstance(value, list | tuple):
            values[f"{prefix}{key}"] = "; ".join(map(str, value))
        else:
            values[f"{prefix}{key}"] = value
    return values


def as_pandas(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    """Rows as a pandas table."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingExtra("pandas") from None
    return pd.DataFrame(rows)


class Framed(ABC):
    """Base of answers that are rows; each gives its `records`."""

    @abstractmethod
    def records(self) -> Sequence[Mapping[str, Any]]:
        """The rows, as the JSON form has them."""

    def _rows(self) -> list[dict[str, Any]]:
        """Every row with the columns of all: an interval that is unknown in one row is empty there."""
        rows = [flat(record) for record in self.records()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        # An unknown interval is one empty value under its own name, a known one three values under other names.
        names = [name for name in names if f"{name}_mid" not in names]
        return [{name: row.get(name) for name in names} for row in rows]

    def to_polars(self) -> "polars.DataFrame":
        """The rows as a polars table."""
        try:
            import polars as pl
        except ModuleNotFoundError:
            raise MissingExtra("fit", "polars") from None
        return pl.DataFrame(self._rows(), infer_schema_length=None)

    def to_pandas(self) -> "pandas.DataFrame":
        """The rows as a pandas table."""
        return as_pandas(self._rows())
