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

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, COLUMN_NAMES, PHASES, Columns
from epochcast.errors import BadInput

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


# dtype: math, bytes of an element as features see it, bytes of an operand in memory, bytes of a result.
# Narrow products give bfloat16; four bits count as a byte with their scales, as in `describe.graph.tensor`.
_FORMATS: dict[str, tuple[str, float, float, float]] = {
    "fp32": ("fp32", 4, 4, 4),
    "tf32": ("tf32", 4, 4, 4),
    "fp16": ("fp16", 2, 2, 2),
    "bf16": ("bf16", 2, 2, 2),
    "fp8": ("fp8", 1, 1, 2),
    "nvfp4": ("fp4", 0.5, 1, 2),
}
_ALIASES = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "fp8_e4m3": "fp8",
    "mxfp8": "fp8",
}
DTYPES = (*_FORMATS, *_ALIASES)
"""Every name of a format that a table may use."""


@dataclass(frozen=True)
class Formats:
    """The number formats of rows: math of their products, and bytes of an element, an operand and a result."""

    math: Indices
    element_bytes: Array
    operand_bytes: Array
    result_bytes: Array

    @classmethod
    def of(cls, dtypes: pl.Series) -> "Formats":
        """By the names in a table."""
        unknown = set(dtypes.unique().to_list()) - set(DTYPES)
        if unknown:
            raise BadInput(f"no rule for dtypes {sorted(map(str, unknown))}; known: {', '.join(DTYPES)}")
        names, index = np.unique(dtypes.to_numpy().astype(str), return_inverse=True)
        rows = [_FORMATS[_ALIASES.get(name, name)] for name in names]
        math = np.array([op_math_index(row[0]) for row in rows], dtype=np.int64)
        sizes = np.array([row[1:] for row in rows], dtype=np.float64).reshape(-1, 3)
        return cls(math[index], *sizes[index].T)

    def at(self, rows: Indices) -> "Formats":
        """Those of some rows."""
        return Formats(self.math[rows], self.element_bytes[rows], self.operand_bytes[rows], self.result_bytes[rows])


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
