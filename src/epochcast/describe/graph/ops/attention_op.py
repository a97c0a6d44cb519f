"""Fused attention."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Tensor, grad

OPERANDS = 3  # query, key, value
_LOG_SUM_BYTES = 4  # float32, whatever the data


@register_op
@dataclass(frozen=True, slots=True)
class Attention(Kind):
    """softmax(QKᵀ)V fused, as a flash kernel runs it: q (N, H, L, D), k and v (N, H_kv, S, D).

    No L x S matrix is in memory. `window` is how many keys a query looks at, at most; 0: all of them. A kernel skips
    the others, unless a fourth input, a bias or mask of the scores, hides them. `window_by_mask`: PyTorch's own
    function, which has no window, gets it as such a mask (`attention_masks`), where Megatron-LM's kernel takes it as it
    is. `dropout` is of the probabilities, which a fused kernel draws again in backward;
    `padded`: written out, the model adds a mask of padded keys. Both cost something only in eager attention. `capped`:
    scores are bent by a tanh (Gemma 2), which FlashAttention 2 does and PyTorch's own fused kernels do not.
    """

    label: ClassVar[str] = "attention"
    runs_as: ClassVar[OpClass] = OpClass.ATTENTION
    causal: bool = False
    window: int = 0
    window_by_mask: bool = False
    dropout: bool = False
    padded: bool = False
    capped: bool = False

    def flops(self, op: Op) -> int:
        """QKᵀ and PV forward: 2·N·H·L·S·(D + D_v). Backward five products: S again, dV, dP, dQ, dK.

        A causal mask is not subtracted: publications and torch's own counter do not. A window is. `run_fraction` says
        what of it runs.
        """
        q, _, v = attention_operands(op)
        rows = prod(q.shape[:-1]) * self._seen_keys(op)
        if not op.is_gradient:
            return 2 * rows * (q.shape[-1] + v.shape[-1])
        return 2 * rows * (3 * q.shape[-1] + 2 * v.shape[-1])

    def run_fraction(self, op: Op) -> float:
        """Flash attention skips what its causal mask hides (Dao 2023).

        Query i of S looks at min(i, w) keys, w the window or S: in all w·(2S − w + 1)/2 of the S·w that are counted.
        Queries of a part of the sequence are taken as spread evenly over it.
        """
        if not self.causal:
            return 1.0
        _, k, _ = attention_operands(op)
        keys = max(1, k.shape[-2])
        return (2 * keys - self._seen_keys(op) + 1) / (2 * keys)

    def saved_bytes(self, op: Op) -> int:
        """The log-sum-exp of every row of scores (Dao et al. 2022)."""
        return _LOG_SUM_BYTES * prod(op.inputs[0].shape[:-1])

    def launches(self, op: Op) -> int:
        """Forward is one kernel; backward prepares row sums, runs, and converts dQ."""
        return 3 if op.is_gradient else 1

    def matrix(self, op: Op) -> Matrix:
        """The scores of every head."""
        q, _, _ = attention_operands(op)
        return Matrix(q.shape[-2], self._seen_keys(op), q.shape[-1], prod(q.shape[:-2]))

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """dQ, dK, dV in one pass that computes the scores again (Dao et al. 2022)."""
        q, k, v = op.inputs[:OPERANDS]
        if {q.name, k.name, v.name} & wanted:
            more = (*op.inputs[OPERANDS:], *op.weights)
            results = (grad(q), grad(k), grad(v), *(grad(t) for t in more if t.name in wanted))
            operands = (grad(op.output), q, k, v, op.output, *op.inputs[OPERANDS:])
            yield op.backward_op(self, operands, results, gradient=Gradient.BOTH)

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """Everything."""
        return before.mixed(spatial)

    def _seen_keys(self, op: Op) -> int:
        """How many keys a kernel multiplies a query by: all, or a window of them. Of a mask it multiplies all."""
        _, k, _ = attention_operands(op)
        around = 2 if op.is_gradient else 0  # the incoming gradient and the output
        is_masked = len(op.inputs) > OPERANDS + around
        return k.shape[-2] if is_masked else min(self.window or k.shape[-2], k.shape[-2])


def attention_operands(op: Op) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v: the first inputs in forward; after the incoming gradient in backward."""
    q, k, v = op.inputs[1:4] if op.is_gradient else op.inputs[:3]
    return q, k, v
