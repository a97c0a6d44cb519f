"""Rows of a table to score, chosen by rule: the same rows every time, few enough to capture in minutes.

Up to `networks` names of each source, evenly spaced in alphabetical order, and up to `rows` of each group of theirs,
evenly spaced in the order of the table.
"""

from collections.abc import Sequence

import polars as pl

GROUP = ("source", "device", "precision", "mode", "channels_last", "is_single")


def evenly(count: int, most: int) -> list[int]:
    """At most `most` places out of `count`, evenly spaced, the first among them."""
    if count <= most:
        return list(range(count))
    return [place * count // most for place in range(most)]


def sampled_runs(table: pl.DataFrame, networks: int, rows: int) -> pl.DataFrame:
    """Rows of `runs` with a time, thinned source by source."""
    timed = table.filter(pl.col("step_seconds").is_not_null() | pl.col("samples_per_second").is_not_null())
    timed = timed.with_columns(is_single=pl.col("gpus") == 1)
    return pl.concat([_thinned(part, networks, rows) for _, part in _parts(timed, ["source"])])


def _thinned(part: pl.DataFrame, networks: int, rows: int) -> pl.DataFrame:
    names = part["model"].unique().sort()
    selected = part.filter(pl.col("model").is_in(names.gather(evenly(len(names), networks)).implode()))
    return pl.concat([group[evenly(len(group), rows)] for _, group in _parts(selected, GROUP)])


def _parts(table: pl.DataFrame, keys: Sequence[str]) -> list[tuple[tuple[object, ...], pl.DataFrame]]:
    present = [key for key in keys if key in table.columns]
    parts = table.partition_by(present, as_dict=True, maintain_order=True)
    return sorted(parts.items(), key=lambda item: str(item[0]))


def every(table: pl.DataFrame, keys: Sequence[str], rows: int) -> pl.DataFrame:
    """Up to `rows` rows of each group of `keys`."""
    return pl.concat([group[evenly(len(group), rows)] for _, group in _parts(table, keys)])
