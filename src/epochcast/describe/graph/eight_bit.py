"""Products of linear layers in eight or four bits, as a rewrite of a step.

Micikevicius et al. 2022, "FP8 formats for deep learning", as NVIDIA's Transformer Engine does it:

    y = q(x)·q(W)ᵀ     dx = q(dy)·q(W)     dW = q(dy)ᵀ·q(x)        q(…) in eight or four bits, results wider

What runs in what: the three products of every linear layer (experts too) in the narrow format; attention and all the
rest in bfloat16. The layer in front of the loss stays in bfloat16, as the frameworks leave it. What a model casts up
behind it (`half_precision`: the scores of a loss) is in float32, as in Megatron-LM and torchtitan; norms are one kernel
that reads and writes bfloat16.

What is kept: gradients of parameters, the optimizer's state and its own copy of the parameters in float32; the
parameters that are multiplied, two bytes each: a product reads them as stored, its gradient reads them transposed, and
both quantised copies are kept from one update to the next.

What it costs: x and dy are read in bfloat16 and written narrow twice, as stored and transposed; the transposed copy of
x is kept for the backward pass. Scales (a number per tensor, per 32 or per 16 values) are not counted; fp8 and mxfp8
differ only in these.
"""

from collections.abc import Iterable
from dataclasses import replace

from epochcast.describe.graph.half_precision import WIDEN, owner_of
from epochcast.describe.graph.language_model import head_weights, is_head
from epochcast.describe.graph.master_weights import rewritten, updated
from epochcast.describe.graph.op import Gradient, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Copy, Matmul, View
from epochcast.describe.graph.tensor import DType, Tensor


def with_narrow_products(ops: Iterable[Op], parameters: Iterable[Parameter], narrow: DType) -> tuple[Op, ...]:
    """The same step with products in a narrow format. `ops` are in float32."""
    return _NarrowWalk(tuple(ops), parameters, narrow).walk()


class _NarrowWalk:
    """One walk over a step. `copies` has the two narrow copies of every tensor so far: as stored, and transposed."""

    def __init__(self, ops: tuple[Op, ...], parameters: Iterable[Parameter], narrow: DType) -> None:
        self.ops, self.narrow = ops, narrow
        self.parameters = {p.name: p for p in parameters}
        self.names = frozenset(self.parameters)
        self.wide = head_weights(ops)
        self.scores: set[str] = set()  # what the layer in front of the loss makes
        self.widened: set[str] = set()  # float32 copies of these, and what is computed of them
        self.copies: dict[str, tuple[Tensor, Tensor]] = {}
        self.new_ops: list[Op] = []

    def walk(self) -> tuple[Op, ...]:
        for op in self.ops:
            if op.phase is Phase.UPDATE:
                self.new_ops.append(updated(op, self.names))
            elif isinstance(op.kind, Matmul) and self._is_linear(op):
                self._product(op)
            else:
                self._plain(op)
        if any(op.phase is Phase.UPDATE for op in self.ops):
            self.new_ops.append(rewritten(self.parameters.values(), DType.BFLOAT16, "quantize"))
        return tuple(self.new_ops)

    def _is_linear(self, op: Op) -> bool:
        """Whether a product is a linear layer's, or one of its gradients, and may be narrow."""
        names = {t.name for t in (*op.inputs, *op.weights)} | {t.relation.adds_to_gradient_of for t in op.outputs}
        return bool(names & self.parameters.keys()) and not names & self.wide

    def _product(self, op: Op) -> None:
        inputs = tuple(self._narrow(t, op) for t in op.inputs)
        weights = tuple(self._narrow(t, op) if place == 0 else self._stored(t) for place, t in enumerate(op.weights))
        self._append(replace(op, inputs=inputs, weights=weights))

    def _plain(self, op: Op) -> None:
        if op.phase is Phase.FORWARD:
            self._see_scores(op)
        inputs, weights = (tuple(self._stored(t) for t in side) for side in (op.inputs, op.weights))
        is_cast = _is_mark(op) and inputs[0].dtype is not self._stored(op.output).dtype
        kind = Copy("cast") if is_cast else op.kind
        self._append(replace(op, kind=kind, inputs=inputs, weights=weights))

    def _see_scores(self, op: Op) -> None:
        """Follow what is made of the scores, up to their cast and behind it."""
        operands = {t.name for t in (*op.inputs, *op.weights)}
        results = {t.name for t in op.outputs}
        if operands & self.widened or (_is_mark(op) and operands & self.scores):
            self.widened |= results
        elif operands & self.scores or is_head(op, self.wide):
            self.scores |= results

    def _append(self, op: Op) -> None:
        for tensor in op.outputs:
            self.copies.pop(tensor.name, None)  # the storage is overwritten
        self.new_ops.append(replace(op, outputs=tuple(self._stored(t) for t in op.outputs)))

    def _stored(self, tensor: Tensor) -> Tensor:
        """Gradients of parameters and scores behind their cast are float32, everything else is bfloat16."""
        if tensor.dtype is not DType.FLOAT32 or tensor.relation.adds_to_gradient_of in self.parameters:
            return tensor
        if owner_of(tensor) in self.widened:
            return tensor
        return replace(tensor, dtype=DType.BFLOAT16)

    def _narrow(self, tensor: Tensor, op: Op) -> Tensor:
        """The narrow copy a product reads; it is made before the first product that needs it."""
        if tensor.dtype is not DType.FLOAT32:
            return tensor
        if tensor.name in self.parameters:
            return replace(tensor, dtype=self.narrow)
        if tensor.name not in self.copies:
            copy = tensor.copy(f"{tensor.name}@{self.narrow.value}", self.narrow)
            pair = copy, replace(copy, name=f"{copy.name}:turned")
            self.copies[tensor.name] = pair
            source = self._stored(tensor)
            self.new_ops.append(Op(f"{op.name}.quantize", Copy("quantize"), (source,), pair, (), op.phase, op.layer))
        as_stored, transposed = self.copies[tensor.name]
        return replace(transposed if op.gradient is Gradient.WEIGHTS else as_stored, shape=tensor.shape)


def _is_mark(op: Op) -> bool:
    """Whether the model casts up here."""
    return isinstance(op.kind, View) and op.kind.function == WIDEN
