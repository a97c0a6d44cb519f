"""One receptive field and how a layer widens it; `receptive.py` follows it through a graph.

For a layer of window k, stride s and dilation d on top of a field r with jump j (input pixels between neighbouring
outputs):

    r' = r + d·(k-1)·j,   j' = j·s,        so N layers of F x F with stride 1 see N·F - N + 1.

A transposed layer spreads each element over k outputs, s apart, so that an output sees ⌈k/s⌉ of them:
r' = r + (⌈k/s⌉-1)·j, j' = j/s.
"""

from dataclasses import dataclass
from math import ceil

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReceptiveField:
    """Pixels seen and pixels between neighbours, per spatial dimension."""

    size: Sizes
    jump: Sizes

    def whole(self, spatial: Sizes) -> "ReceptiveField":
        """The field of an op that mixes all positions of an input with these spatial sizes."""
        return ReceptiveField(tuple(max(r, n) for r, n in zip(self.size, spatial, strict=True)), spatial)

    def windowed(self, window: Sizes, stride: Sizes, dilation: Sizes) -> "ReceptiveField":
        """The field behind a sliding window."""
        return ReceptiveField(
            tuple(r + d * (k - 1) * j for r, j, k, d in zip(self.size, self.jump, window, dilation, strict=True)),
            tuple(j * s for j, s in zip(self.jump, stride, strict=True)),
        )

    def transposed(self, window: Sizes, stride: Sizes) -> "ReceptiveField":
        """The field behind a transposed window."""
        return ReceptiveField(
            tuple(r + (ceil(k / s) - 1) * j for r, j, k, s in zip(self.size, self.jump, window, stride, strict=True)),
            tuple(max(1, j // s) for j, s in zip(self.jump, stride, strict=True)),
        )
