"""Timed rows as ops: a row of a table of operators is one op of a trace or several, each with its numbers in columns.

Sizes are those that `describe.graph.op_work` and `describe.graph.op_shapes` give for the same op, computed for all
rows at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, COLUMN_NAMES, PHASES, Columns
from epochcast.measure.evaluate.op_table import Formats

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Direction(Enum):
    """What an op computes: a phase of the step, and the gradient of which operand."""

    FORWARD = (Phase.FORWARD, Gradient.NONE)
    DATA = (Phase.BACKWARD, Gradient.DATA)
    WEIGHTS = (Phase.BACKWARD, Gradient.WEIGHTS)
    BOTH = (Phase.BACKWARD, Gradient.BOTH)

    @property
    def indices(self) -> tuple[int, int]:
        """Of the phase in PHASES and of the gradient among gradients."""
        phase, gradient = self.value
        return PHASES.index(phase), tuple(Gradient).index(gradient)


@dataclass(frozen=True)
class OwnedColumns:
    """Ops and, for each, the row of the table that it belongs to. A row's seconds are those of all its ops."""

    columns: Columns
    owner: Indices


_DEFAULTS = {name: 1.0 for name in ("m", "n", "k", "count", "launches", "kernel", "stride", "groups", "samples")}
_DEFAULTS |= {name: 0.0 for name in ("flops", "channels_in", "channels_out")}
SIZES = (*_DEFAULTS, "read_bytes", "written_bytes")
"""What `ops_of` takes by name; all but the bytes have a default."""


def ops_of(
    owner: Indices, classes: OpClass | Indices, direction: Direction, formats: Formats, **sizes: Array | float
) -> OwnedColumns:
    """One op for each row in `owner`; sizes are columns or one number for all."""
    rows = len(owner)
    phase, gradient = direction.indices
    index = CLASSES.index(classes) if isinstance(classes, OpClass) else classes
    op_class = np.broadcast_to(np.asarray(index, dtype=np.int64), rows)
    given = {name: np.broadcast_to(np.asarray(v, dtype=np.float64), rows) for name, v in (_DEFAULTS | sizes).items()}
    columns = Columns(
        **given,
        op_class=op_class,
        phase=np.full(rows, phase),
        math=formats.math,
        gradient=np.full(rows, gradient),
        element_bytes=formats.element_bytes,
        is_matrix=_IS_MATRIX[op_class],
    )
    return OwnedColumns(columns, owner)


_IS_MATRIX = np.array([c.is_matrix for c in CLASSES])


def joined(parts: Sequence[OwnedColumns]) -> OwnedColumns:
    """All ops of at least one part, ordered by their rows."""
    owner = np.concatenate([part.owner for part in parts])
    order = np.argsort(owner, kind="stable")
    arrays = (np.concatenate([getattr(part.columns, name) for part in parts])[order] for name in COLUMN_NAMES)
    return OwnedColumns(Columns(*arrays), owner[order])


def numbers(table: pl.DataFrame, *names: str, default: float = 1.0) -> list[Array]:
    """Columns as floats; one that is missing or null is `default`."""
    return [
        table[name].cast(pl.Float64).fill_null(default).to_numpy()
        if name in table.columns
        else np.full(len(table), default)
        for name in names
    ]
