"""What is left to wait for of the exchanges of tensor parallel ranks that run in pieces beside their products
(Transformer Engine's userbuffers, `tp_comm_overlap` of Megatron-LM and NeMo; with sequence parallelism alone).

An all-gather of t ranks arrives in t pieces: the product multiplies the own piece first and each other when it is
there. A reduce-scatter sends each piece of the result while the next is multiplied. Either way one piece has nothing to
hide behind, and the others hide as far as the product lasts:

    exposed = seconds - (t-1)/t · min(seconds, product)
"""

from dataclasses import dataclass

import numpy as np

from epochcast.predict.forecast.step_parts import Kernels

# Casts to eight bits and views of a layer may lie between an exchange and its product.
_BETWEEN = 4


def exposed_seconds(seconds: float, product_seconds: float, ranks: int) -> float:
    """Of an exchange of so many ranks beside a product."""
    return seconds - (ranks - 1) / ranks * min(seconds, product_seconds)


@dataclass(frozen=True, slots=True)
class ExposedPieces:
    """Exchanges of `ranks` beside products: seconds by kernel of a pass, 0 for those that are none."""

    product_seconds: tuple[float, ...] = ()
    ranks: int = 1

    def gather_seconds(self, before: int, seconds: float) -> float:
        """Of an all-gather that kernel `before` waits for."""
        return self._exposed(range(before, before + _BETWEEN), seconds)

    def scatter_seconds(self, after: int, seconds: float) -> float:
        """Of a reduce-scatter of what kernel `after` makes."""
        return self._exposed(range(after, after - _BETWEEN, -1), seconds)

    def _exposed(self, places: range, seconds: float) -> float:
        products = self.product_seconds
        near = (products[place] for place in places if 0 <= place < len(products) and products[place])
        return exposed_seconds(seconds, next(near, 0.0), self.ranks)


def exposed_pieces(kernels: Kernels, ranks: int) -> ExposedPieces:
    """Of the kernels of a step."""
    is_product = kernels.trace.columns.is_matrix[~kernels.is_update]
    return ExposedPieces(tuple(np.where(is_product, kernels.passes[0], 0.0).tolist()), ranks)


WHOLE = ExposedPieces()
"""Nothing hides: everything is waited for."""
