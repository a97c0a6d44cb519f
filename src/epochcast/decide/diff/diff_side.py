"""One side of a comparison: its forecast, the seconds of its layers, and what its kernels are.

A kernel's *signature* is a digest of all numbers that the cost model sees of it. Two steps share a kernel where their
signatures are equal; whatever the forecast gets wrong about it is then wrong on both sides alike.

    seconds of a layer = accumulate · (forward + backward kernels) + update kernels
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from epochcast.base.record import Record
from epochcast.describe.graph.trace import COLUMN_NAMES, Columns
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.spreads import step_kind
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.framework import setting_of
from epochcast.predict.forecast.step_parts import UPDATE

SIGNATURE_BYTES = 6
"""Of a digest: among 10,000 kernels two different ones share it once in a few million steps."""


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """A layer: the seconds of its kernels in one step, and one signature for all of them."""

    name: str
    seconds: float
    signature: str


@dataclass(frozen=True)
class Side(Record):
    """What is compared with another: `name` is how it was asked for.

    `kernels` are seconds of a step by signature. `is_known` says whether steps of this kind were measured on the
    device. `notes` are about this side alone.
    """

    name: str
    forecast: Forecast
    layers: tuple[LayerSeconds, ...]
    kernels: Mapping[str, float] = field(hash=False)
    is_known: bool
    notes: tuple[str, ...] = ()
    json_lenient: ClassVar[bool] = True

    @property
    def named_forecast(self) -> dict[str, Any]:
        """The forecast as JSON, with the name of the side."""
        return {"name": self.name, **self.forecast.as_dict()}


def side_of(name: str, forecast: Forecast, notes: Sequence[str] = ()) -> Side:
    """The side of a forecast that was just made."""
    details = forecast.details
    columns = details.trace.columns
    seconds = np.asarray(details.step.costs.mid) * np.where(columns.phase == UPDATE, 1, details.trace.recipe.accumulate)
    signatures = signatures_of(columns)
    by_layer: dict[str, list[int]] = {}
    for place, layer in enumerate(details.trace.layers):
        by_layer.setdefault(layer, []).append(place)
    layers = tuple(
        LayerSeconds(layer, float(seconds[places].sum()), _joined([signatures[place] for place in places]))
        for layer, places in by_layer.items()
    )
    device = details.placement.device
    kind = step_kind(columns, setting_of(details.job, device))
    return Side(
        name, forecast, layers, kernel_seconds(columns, seconds), kind in sustained(device).known_kinds, tuple(notes)
    )


def kernel_seconds(columns: Columns, seconds: NDArray[np.float64]) -> dict[str, float]:
    """Seconds of all kernels by their signature."""
    totals: dict[str, float] = {}
    for signature, each in zip(signatures_of(columns), seconds.tolist(), strict=True):
        totals[signature] = totals.get(signature, 0.0) + each
    return totals


def signatures_of(columns: Columns) -> list[str]:
    """The signature of every kernel; those of equal numbers are equal."""
    rows = np.stack([np.asarray(getattr(columns, name), dtype=np.float32) for name in COLUMN_NAMES], axis=1)
    return [_digest(row.tobytes()) for row in np.ascontiguousarray(rows)]


def _joined(signatures: Sequence[str]) -> str:
    return _digest("".join(sorted(signatures)).encode())


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=SIGNATURE_BYTES).hexdigest()
