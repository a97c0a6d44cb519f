"""Memory over the ops of a step."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Timeline:
    """Live bytes during every op (the first entry: before the first op), by role."""

    names: tuple[str, ...]
    phases: tuple[str, ...]
    live_bytes: Mapping[str, NDArray[np.int64]]

    @property
    def total_bytes(self) -> NDArray[np.int64]:
        """All of them together."""
        total: NDArray[np.int64] = np.sum(list(self.live_bytes.values()), axis=0)
        return total
