"""What trainers add to the parts of a post-training step (`rl_constants.toml`, written by `training.rl_constants`).

A part takes `factor` times what its kernels and steps take: engines are put to sleep and woken, responses are gathered
and sent, shards of weights are gathered again for every pass. `low` and `high` are factors around a whole step: the 5th
and 95th percentile of measured ÷ forecast on sources that were left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered

FILE = "rl_constants.toml"
GENERATION, GENERATION_EAGER, FORWARD, UPDATE = "generation", "generation_eager", "forward", "update"
"""`generation_eager`: by a training framework's own loop instead of an inference engine."""


@dataclass(frozen=True, slots=True)
class RlConstants:
    """Factors by part, bytes per second and GPU of a weight sync by placement, and the spread of a step."""

    factors: Mapping[str, float]
    sync_bytes_per_second: Mapping[str, float]
    low: float
    high: float

    def factor(self, part: str) -> float:
        """Of a part; 1 where nothing was fitted. Own loops have the factor of engines, where they were not seen."""
        if part == GENERATION_EAGER and part not in self.factors:
            part = GENERATION
        return self.factors.get(part, 1.0)


def load_rl_constants(text: str, file: str = FILE) -> RlConstants:
    """The table in a TOML text, checked."""
    document = rows.parse(text, file)
    spread = next(rows.read(document, "spread", file, _spread))
    return RlConstants(
        dict(rows.read(document, "part", file, partial(_named_number, "factor"))),
        dict(rows.read(document, "sync", file, partial(_named_number, "bytes_per_second"))),
        spread[0],
        spread[1],
    )


@remembered(1)
def rl_constants() -> RlConstants:
    """The shipped table."""
    return load_rl_constants(rows.shipped(FILE, __file__))


def _kept(row: rows.CatalogueRow) -> None:
    """Where a row comes from: for readers."""
    row.count("rows")
    row.text("source")


def _named_number(key: str, row: rows.CatalogueRow) -> tuple[str, float]:
    name, value = row.text("name"), row.number(key)
    if not value > 0:
        raise row.wrong(key, "above 0", value)
    _kept(row)
    return name, value


def _spread(row: rows.CatalogueRow) -> tuple[float, float]:
    row.text("name")
    low, high = row.number("low"), row.number("high")
    if not 0 < low <= 1 <= high:
        raise row.wrong("low", "low ≤ 1 ≤ high", (low, high))
    _kept(row)
    return low, high
