"""Recurrent layers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from epochcast.describe.graph.op import Gradient, Kind, Op, Wanted
from epochcast.describe.graph.op_registry import register_op
from epochcast.describe.graph.op_work import Matrix, OpClass, WindowSizes
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import Tensor, grad


@register_op
@dataclass(frozen=True, slots=True)
class Recurrent(Kind):
    """A recurrent layer over a sequence: x (N, T, I) → (N, T, directions·H), one weight set per direction."""

    label: ClassVar[str] = "recurrent"
    runs_as: ClassVar[OpClass] = OpClass.RECURRENT
    cell: str = "lstm"
    hidden: int = 1
    directions: int = 1

    @property
    def gates(self) -> int:
        """Matrix products per step: lstm 4, gru 3, rnn 1."""
        return {"lstm": 4, "gru": 3}.get(self.cell, 1)

    def flops(self, op: Op) -> int:
        """2·N·T per weight: input and hidden products of every gate. Backward as much for the data, in any case (the
        gradient passes through all steps), and as much again for the weights, unless they are frozen.
        """
        batch, steps, _ = _sequence(op).shape
        once = 2 * batch * steps * sum(w.elements for w in op.weights if len(w.shape) == 2)
        return once if op.gradient in (Gradient.NONE, Gradient.DATA) else 2 * once

    def saved_bytes(self, op: Op) -> int:
        """cuDNN's reserve space: the gates of every step and, of an LSTM, the cell state and its tanh.

        The layout is not published; this is what the backward formulas need.
        """
        values_per_step = self.gates + (2 if self.cell == "lstm" else 1)
        batch, steps = op.inputs[0].shape[:2]
        return values_per_step * self.hidden * self.directions * batch * steps * op.dtype.bytes

    def launches(self, op: Op) -> int:
        """One product per step and direction, and one over all inputs before them; backward twice that."""
        _, steps, _ = _sequence(op).shape
        return (steps * self.directions + 1) * (2 if op.is_gradient else 1)

    def matrix(self, op: Op) -> Matrix:
        """The product of one step, for every step and direction."""
        batch, steps, width = _sequence(op).shape
        return Matrix(batch, self.gates * self.hidden, width + self.hidden, steps * self.directions)

    def window_sizes(self, op: Op) -> WindowSizes:
        """Channels are the hidden state and its gates."""
        return WindowSizes(channels_in=self.hidden, channels_out=self.gates * self.hidden)

    def gradients(self, op: Op, wanted: Wanted) -> Iterator[Op]:
        """Data and weight gradients of the whole sequence together, as cuDNN runs them; with frozen weights, of the
        data only.
        """
        first = op.inputs[0]
        results = tuple(grad(t) for t in (first, *op.weights) if t.name in wanted)
        trains = any(w.name in wanted for w in op.weights)
        if results:
            operands, gradient = (grad(op.output), first, op.output), Gradient.BOTH if trains else Gradient.DATA
            yield op.backward_op(self, operands, results, weights=op.weights, gradient=gradient)

    def receptive_field(self, op: Op, before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """Everything."""
        return before.mixed(spatial)


def _sequence(op: Op) -> Tensor:
    """The (N, T, I) input; in backward it follows the incoming gradient."""
    return op.inputs[1] if op.is_gradient else op.inputs[0]
