"""Tensor parallelism: one rank's part of a step (Shoeybi et al. 2019, "Megatron-LM").

Inside a block the first product splits its output columns over the ranks, the next one its input rows, and what lies
between (heads of the attention, activation functions) is split with them. The second product leaves partial sums: one
all-reduce behind it in the forward pass, one behind the first product's data gradient in the backward pass. A large
embedding table is split by rows, the output layer by columns, and the loss works on its part of the vocabulary.

Every tensor of the step is in one of three states, and the states follow the data:

    WHOLE     the same on every rank
    SPLIT     every rank has a part
    PARTIAL   every rank has a summand; sums of summands stay partial, anything else asks for an all-reduce

A product splits its columns where its result reaches another product (or the loss) without meeting a whole tensor of
its own size or a normalisation on the way. Products of experts and convolutions stay whole.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import (
    Attention,
    Copy,
    Elementwise,
    Embedding,
    Loss,
    Matmul,
    Norm,
    Reduce,
    Scatter,
    Softmax,
    View,
)
from epochcast.describe.graph.rebatch import Growth, Sides
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.errors import BadInput, InvalidLayout

# Tables with fewer rows than this (positions, token types) are not worth splitting.
SPLIT_TABLE_ROWS = 4096
# An output of at least so many columns is padded to a multiple of the ranks (vocabularies), a smaller one must divide.
PADDED_COLUMNS = 1024


class TensorState(Enum):
    """What a rank has of a tensor."""

    WHOLE = "whole"
    SPLIT = "split"
    PARTIAL = "partial"


@dataclass(frozen=True)
class Rank:
    """One rank's step, and what it sums with the others: (after entry, before entry, bytes per sample).

    `shifts` are of `context`, `dispatches` of `experts` (as sums, but all to all); `experts` are the names of the
    parameters that are spread. `gathers` and `scatters` are what `sequence` makes of the sums.
    """

    trace: Trace
    sums: tuple[tuple[int, int, float], ...]
    shifts: tuple[tuple[int, float], ...] = ()
    dispatches: tuple[tuple[int, int, float], ...] = ()
    experts: frozenset[str] = frozenset()
    gathers: tuple[tuple[int, int, float], ...] = ()
    scatters: tuple[tuple[int, int, float], ...] = ()


def rank_of(trace: Trace, degree: int) -> Rank:
    """The step of one of `degree` ranks; kept on the template."""
    if degree == 1:
        return Rank(trace, ())
    rank: Rank = trace.template.derived.get(("tensor rank", degree), lambda: _rank(trace, degree))
    return replace(rank, trace=replace(rank.trace, recipe=trace.recipe))


@without_collecting()
def _rank(trace: Trace, degree: int) -> Rank:
    return walked(trace, degree).rank()


def walked(trace: Trace, degree: int) -> "TensorWalk":
    """A finished walk: what is split, and where it is summed."""
    _check_heads(trace, degree)
    whole: set[str] = set()
    while True:
        walk = TensorWalk(trace, degree, frozenset(whole))
        failed = walk.run()
        if not failed:
            break
        whole |= failed
    if not walk.has_rows:
        raise BadInput(f"tensor parallel: {trace.name} has no two products to split one behind the other")
    return walk


def _by_entry(trace: Trace, sums: Iterable[tuple[int, int, float]]) -> tuple[tuple[int, int, float], ...]:
    """Sums between two ops as sums between entries of the columns; a view stands with the kernel before it."""
    entry = np.maximum(0, trace.entries).tolist()
    return tuple((entry[maker], max(entry[user], entry[maker] + 1), size_bytes) for maker, user, size_bytes in sums)


def _check_heads(trace: Trace, degree: int) -> None:
    for op in trace.template.base:
        if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD:
            heads = op.inputs[0].shape[-3]
            if heads % degree:
                raise InvalidLayout(
                    f"tensor parallel over {degree} GPUs does not divide the {heads} heads of {trace.name}"
                )


class TensorWalk:
    """One walk over a step, with some products kept whole; state by the name of a tensor."""

    def __init__(self, trace: Trace, degree: int, kept_whole: frozenset[str]) -> None:
        self.trace, self.degree, self.kept_whole = trace, degree, kept_whole
        self.state: dict[str, TensorState] = {}
        self.dimension: dict[str, int] = {}  # of split tensors, counted from the end
        self.origin: dict[str, frozenset[str]] = {}  # of split tensors: the products that split them
        self.maker: dict[str, int] = {}
        self.source: dict[str, Tensor] = {}  # of a cast copy of a parameter: the parameter
        self.has_rows = False
        self.partial_from: dict[str, int] = {}  # of summands: the place of the op that made them first
        self.summed: dict[str, int] = {}  # of summands: the place of the op that needed their sum
        self.sums: list[tuple[int, int, float]] = []  # made by, used first by (places of ops), bytes per sample
        self.parameters = {p.name for p in trace.parameters}
        self.is_loss_split = False
        self.parts: dict[Hashable, tuple[Tensor, Growth]] = {}  # of split tensors: most are read again

    def run(self) -> frozenset[str]:
        """Set the states; the products that cannot be split after all, if any."""
        for place, op in enumerate(self.trace.template.base):
            if op.phase is Phase.UPDATE:
                break
            failed = self._step(op, place)
            if failed:
                return failed
        return frozenset()

    def rank(self) -> Rank:
        """What the walk found."""
        trace = self.split_trace()
        return Rank(trace, _by_entry(trace, self.sums))

    def split_trace(self) -> Trace:
        """The rank's part as a step of its own."""
        return replace(self.trace, template=self.trace.template.mapped(self.shrunk), parameters=self.split_parameters())

    def split_parameters(self) -> tuple[Parameter, ...]:
        """The rank's part of the parameters."""
        return tuple(replace(p, tensor=self._part(p.tensor, None)[0]) for p in self.trace.parameters)

    # ---- states --------------------------------------------------------------------------------

    def state_of(self, tensor: Tensor) -> TensorState:
        """What a rank has of a tensor when the step is done."""
        return self.state.get(tensor.name, TensorState.WHOLE)

    def _step(self, op: Op, place: int) -> frozenset[str]:
        if isinstance(op.kind, Copy) and op.inputs and op.inputs[0].name in self.parameters:
            self.source[op.output.name] = op.inputs[0]
        if self._adds_partials(op):
            self._set(op.outputs, TensorState.PARTIAL, place=place)
            return frozenset()
        for tensor in (*op.inputs, *op.weights):
            if self.state_of(tensor) is TensorState.PARTIAL:
                self._sum(tensor, place)
        if isinstance(op.kind, Matmul):
            self._product(op, place)
        elif isinstance(op.kind, Embedding) and op.phase is Phase.FORWARD:
            self._lookup(op, place)
        else:
            return self._other(op, place)
        return frozenset()

    def _adds_partials(self, op: Op) -> bool:
        """Views and casts of a summand, and sums of summands."""
        if not op.inputs or any(self.state_of(t) is not TensorState.PARTIAL for t in op.inputs):
            return False
        is_sum = isinstance(op.kind, Elementwise) and op.kind.function == "add" and len(op.inputs) > 1
        return is_sum or isinstance(op.kind, View) or (isinstance(op.kind, Copy) and op.kind.function == "cast")

    def _sum(self, tensor: Tensor, place: int) -> None:
        """An all-reduce between whoever made the summands and this op, per sample of the batch."""
        self.sums.append((self.maker[tensor.name], place, tensor.bytes / SMALL_BATCH))
        self.summed[tensor.name] = place
        self.state[tensor.name] = TensorState.WHOLE

    def _set(
        self,
        tensors: Sequence[Tensor],
        state: TensorState,
        *,
        place: int,
        dimension: int = -1,
        origin: frozenset[str] = frozenset(),
    ) -> None:
        for tensor in tensors:
            source = self.source.get(tensor.name)
            if (
                source is not None
                and state is TensorState.SPLIT
                and self.state.get(source.name) is not TensorState.SPLIT
            ):
                self._set([source], state, place=-1, dimension=dimension, origin=origin)
        for tensor in tensors:
            self.state[tensor.name] = state
            self.maker[tensor.name] = place
            if state is TensorState.PARTIAL:
                self.partial_from.setdefault(tensor.name, place)
            if state is TensorState.SPLIT:
                self.dimension[tensor.name] = dimension
                self.origin[tensor.name] = origin

    def _product(self, op: Op, place: int) -> None:
        if op.weights and op.phase is Phase.FORWARD and self.state_of(op.weights[0]) is TensorState.WHOLE:
            self._decide(op)
        first, second = op.inputs[0], op.weights[0] if op.weights else op.inputs[1]
        split = [t for t in (first, second) if self.state_of(t) is TensorState.SPLIT]
        origin = self._origins(split)
        if not split:
            self._set(op.outputs, TensorState.WHOLE, place=place)
        elif len(split) == 2 and op.weights:
            self._set(op.outputs, TensorState.PARTIAL, place=place)
        elif op.weights or len(second.shape) > 2:
            self._set(op.outputs, TensorState.SPLIT, place=place, dimension=-1 if op.weights else -3, origin=origin)
        else:  # a weight gradient: its rows or its columns are the operand's
            rows, columns = op.output.shape[-2:]
            size = split[0].shape[-1]
            dimension = -2 if size == rows and (split[0] is first or size != columns) else -1
            self._set(op.outputs, TensorState.SPLIT, place=place, dimension=dimension, origin=origin)

    def _decide(self, op: Op) -> None:
        """Split the weight of a forward product: by rows behind a split tensor, else by columns."""
        assert isinstance(op.kind, Matmul)
        weight = op.weights[0]
        if len(weight.shape) != 2:
            return
        columns_at = -2 if op.kind.transpose_b else -1
        if self.state_of(op.inputs[0]) is TensorState.SPLIT:
            self.has_rows = True
            self._set([weight], TensorState.SPLIT, place=-1, dimension=-3 - columns_at)
            return
        width = weight.shape[columns_at]
        if op.name in self.kept_whole or (width % self.degree and width < PADDED_COLUMNS):
            return
        origin = frozenset({op.name})
        self._set([weight], TensorState.SPLIT, place=-1, dimension=columns_at, origin=origin)
        self._set(op.weights[1:], TensorState.SPLIT, place=-1, origin=origin)

    def _origins(self, tensors: Iterable[Tensor]) -> frozenset[str]:
        return frozenset().union(*(self.origin.get(t.name, frozenset()) for t in tensors))

    def _lookup(self, op: Op, place: int) -> None:
        table = op.weights[0] if op.weights else op.inputs[-1]
        if len(table.shape) == 2 and table.shape[0] >= SPLIT_TABLE_ROWS:
            self._set([table], TensorState.SPLIT, place=-1, dimension=-2)
            self._set(op.outputs, TensorState.PARTIAL, place=place)
        else:
            self._set(op.outputs, TensorState.WHOLE, place=place)

    def _other(self, op: Op, place: int) -> frozenset[str]:
        operands = (*op.inputs, *op.weights)
        split = [t for t in operands if self.state_of(t) is TensorState.SPLIT]
        origin = self._origins(split)
        if isinstance(op.kind, Loss):
            if op.phase is Phase.FORWARD:
                self.is_loss_split = self.is_loss_split or bool(split)
                self._set(op.outputs, TensorState.WHOLE, place=place)
            else:
                state = TensorState.SPLIT if self.is_loss_split else TensorState.WHOLE
                self._set(op.outputs, state, place=place)
            return frozenset()
        if not split:
            self._set(op.outputs, TensorState.WHOLE, place=place)
            if isinstance(op.kind, Scatter | Embedding) and op.phase is Phase.BACKWARD:
                self._table_gradient(op, place)
            return frozenset()
        if op.phase is Phase.FORWARD and self._clashes(op, split):
            return origin
        for tensor in op.outputs:
            self._set(
                [tensor], TensorState.SPLIT, place=place, dimension=self._follows(op, tensor, split), origin=origin
            )
        return frozenset()

    def _table_gradient(self, op: Op, place: int) -> None:
        """The gradient of a split table is split as the table is."""
        for tensor in op.outputs:
            table = tensor.relation.adds_to_gradient_of
            if self.state.get(table) is TensorState.SPLIT and len(tensor.shape) == 2:
                self._set([tensor], TensorState.SPLIT, place=place, dimension=-2)

    def _clashes(self, op: Op, split: list[Tensor]) -> bool:
        """Whether a forward op needs the whole of a split tensor, or meets a whole tensor of its size (a residual)."""
        if isinstance(op.kind, Attention | View | Copy | Softmax):
            return False
        if isinstance(op.kind, Norm | Reduce) and self._is_along_whole(op, split):
            return False
        if not isinstance(op.kind, Elementwise):
            return True
        largest = max(t.elements for t in split)
        return any(
            self.state_of(t) is TensorState.WHOLE and t.elements >= largest and t.name in self.maker for t in op.inputs
        )

    def _is_along_whole(self, op: Op, split: list[Tensor]) -> bool:
        """Whether it works along the last dimension of tensors that are split along another, as norms of heads do."""
        keeps_dimensions = len(op.output.shape) == len(split[0].shape)
        return keeps_dimensions and all(self.dimension.get(t.name, -1) != -1 for t in split)

    def _follows(self, op: Op, output: Tensor, split: list[Tensor]) -> int:
        """The split dimension of an output: that of an operand of its shape, heads where they appear, else the last."""
        if isinstance(op.kind, Reduce) and len(output.shape) == 1:
            return -1
        for tensor in split:
            if tensor.shape == output.shape:
                return self.dimension[tensor.name]
        if isinstance(op.kind, Attention):
            return -3
        source = split[0]
        if len(output.shape) > max(3, len(source.shape)):
            return -3
        if len(output.shape) < len(source.shape):
            return -1
        return self.dimension[source.name]

    # ---- shapes --------------------------------------------------------------------------------

    def is_split(self, op: Op) -> bool:
        """Whether a rank does a part of it."""
        return any(self.state_of(t) is TensorState.SPLIT for t in (*op.inputs, *op.outputs, *op.weights))

    def shrunk(self, op: Op, growth: Sides | None) -> tuple[Op, Sides | None]:
        """The rank's part of an op."""
        if op.phase is Phase.UPDATE or not self.is_split(op):
            return op, growth
        sides: list[tuple[Tensor, ...]] = []
        grown: list[tuple[Growth, ...]] = []
        for index, tensors in enumerate((op.inputs, op.outputs, op.weights)):
            pairs = [self._part(t, growth[index][i] if growth else None) for i, t in enumerate(tensors)]
            sides.append(tuple(t for t, _ in pairs))
            grown.append(tuple(g for _, g in pairs))
        part = Op(op.name, op.kind, sides[0], sides[1], sides[2], op.phase, op.layer, op.gradient, op.tf32)
        return part, (grown[0], grown[1], grown[2]) if growth else None

    def _part(self, tensor: Tensor, growth: Growth) -> tuple[Tensor, Growth]:
        if self.state_of(tensor) is not TensorState.SPLIT or not tensor.shape:
            return tensor, growth
        key = (tensor, growth)
        if key not in self.parts:
            at = self.dimension.get(tensor.name, -1)
            at = at if -at <= len(tensor.shape) else -1
            shape = list(tensor.shape)
            shape[at] = -(-shape[at] // self.degree)
            if growth is not None:
                pairs = list(growth)
                a, b = pairs[at]
                pairs[at] = (-(-a // self.degree), -(-b // self.degree))
                growth = tuple(pairs)
            self.parts[key] = tensor.sized(tuple(shape)), growth
        return self.parts[key]


def parameter_fraction(whole: Trace, rank: Trace) -> float:
    """Which part of the trained values a rank holds."""
    mine, all_of_them = (
        float(np.sum([p.elements for p in t.parameters if p.trainable], dtype=np.float64)) for t in (rank, whole)
    )
    return mine / all_of_them if all_of_them else 1.0
