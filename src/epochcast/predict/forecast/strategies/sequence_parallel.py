"""Sequence parallelism: what tensor parallelism leaves whole is cut along the tokens (Korthikanti et al. 2022,
"Reducing activation recomputation in large transformer models").

Norms, dropouts, sums and what they keep for the backward pass are a t-th on each of t ranks. Where the split region
begins the tokens are gathered, where it ends the summands are scattered:

    all-reduce of n bytes  →  reduce-scatter of n bytes + all-gather of n bytes         the same traffic

In the backward pass the input of a product is gathered once more for its weight gradient, beside the product of the
data gradient (Megatron-LM), or it is kept from the forward pass (`keep_gathered`: PyTorch's DTensor, so torchtitan;
nanotron without `tp_recompute_allgather`). A gathered tensor and summands live only as long as they are used:

    activations of a layer   sbh(10 + 24/t + 5as/ht)  →  sbh/t·(34 + 5as/h)             s tokens, b samples, a heads
"""

from dataclasses import dataclass, replace

from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import GATHERED, SCATTERED, View
from epochcast.describe.graph.rebatch import Growth, Sides, Template
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.predict.forecast.strategies.context_parallel import cut_tokens
from epochcast.predict.forecast.strategies.tensor_parallel import Rank, TensorState, TensorWalk, rank_of, walked

Message = tuple[int, int, float]


@without_collecting()
def scattered_rank(trace: Trace, degree: int) -> Rank:
    """The step of one of `degree` tensor parallel ranks, whole tensors cut along their tokens."""
    if degree == 1:
        return rank_of(trace, 1)
    return _Scattering(walked(trace, degree)).rank()


@dataclass
class _Entry:
    """One op of the new step."""

    op: Op
    growth: Sides | None


class _Scattering:
    """One pass over the ops of a finished walk."""

    def __init__(self, walk: TensorWalk) -> None:
        self.walk, self.degree = walk, walk.degree
        shape = walk.trace.inputs[0].shape if walk.trace.inputs else ()
        self.tokens = shape[1] if len(shape) > 1 else 0
        self.new: list[_Entry] = []
        self.maker: dict[str, int] = {}  # by the name of a tensor: the place in the new step of the op that made it
        self.gathered: dict[str, Tensor] = {}  # by the name of what was gathered, as long as it is current
        self.gathers: list[Message] = []
        self.scatters: list[Message] = []
        self.phase = Phase.FORWARD

    def rank(self) -> Rank:
        template = self.walk.trace.template
        for place, (op, growth) in enumerate(zip(template.base, template.growths, strict=True)):
            if op.phase is Phase.UPDATE:
                self.new.append(_Entry(op, growth))
                continue
            if op.phase is not self.phase:
                self.phase = op.phase
                if not self.walk.trace.recipe.keep_gathered:
                    self.gathered.clear()  # kept cut, gathered again
            self._step(op, growth, place)
        ops, growths = tuple(e.op for e in self.new), tuple(e.growth for e in self.new)
        parameters = self.walk.split_parameters()
        trace = replace(self.walk.trace, template=Template(ops, growths), parameters=parameters)
        return Rank(trace, (), gathers=_by_entry(trace, self.gathers), scatters=_by_entry(trace, self.scatters))

    def _step(self, op: Op, growth: Sides | None, place: int) -> None:
        for index, tensor in enumerate(op.inputs):
            if self.walk.summed.get(tensor.name) == place:
                self._scatter(tensor, growth[0][index] if growth else None, op)
        is_inside = self.walk.is_split(op) or any(self._is_partial(t, place) for t in (*op.inputs, *op.outputs))
        shrunk, grown = self.walk.shrunk(op, growth)
        sides: list[tuple[Tensor, ...]] = []
        sizes: list[tuple[Growth, ...]] = []
        for side, tensors in enumerate((shrunk.inputs, shrunk.outputs, shrunk.weights)):
            pairs = [
                self._operand(t, grown[side][i] if grown else None, op, place, is_inside=is_inside, is_output=side == 1)
                for i, t in enumerate(tensors)
            ]
            sides.append(tuple(t for t, _ in pairs))
            sizes.append(tuple(g for _, g in pairs))
        part = replace(shrunk, inputs=sides[0], outputs=sides[1], weights=sides[2])
        self.new.append(_Entry(part, (sizes[0], sizes[1], sizes[2]) if grown else None))
        for tensor in part.outputs:
            self.maker[tensor.name] = len(self.new) - 1
            self.gathered.pop(tensor.name, None)

    def _operand(
        self, tensor: Tensor, growth: Growth, op: Op, place: int, *, is_inside: bool, is_output: bool
    ) -> tuple[Tensor, Growth]:
        if growth is None or self.walk.state_of(tensor) is TensorState.SPLIT:
            return tensor, growth
        if self._is_partial(tensor, place):
            return _partial(tensor), growth
        if not is_inside or is_output:
            return self._cut(tensor, growth)
        return self._gather(tensor, growth, op), growth

    def _is_partial(self, tensor: Tensor, place: int) -> bool:
        """Whether it is a summand at this place of the old step."""
        if self.walk.state_of(tensor) is TensorState.PARTIAL:
            return True
        begun, ended = self.walk.partial_from.get(tensor.name), self.walk.summed.get(tensor.name)
        return begun is not None and ended is not None and begun <= place < ended

    def _gather(self, tensor: Tensor, growth: Growth, op: Op) -> Tensor:
        """The whole of a cut tensor, by an all-gather in front of the op."""
        if tensor.name not in self.maker:
            return tensor  # inputs of the step: every rank has them
        current = self.gathered.get(tensor.name)
        if current is None:
            again = "" if op.phase is Phase.FORWARD else ":again"
            current = replace(tensor, name=f"{tensor.name}@{GATHERED}{again}")
            cut, cut_growth = self._cut(tensor, growth)
            # In the backward pass it may begin with the op before: the data gradient does not need it.
            begins = self.maker[tensor.name] if op.phase is Phase.FORWARD else len(self.new) - 2
            begins = max(begins, self.maker[tensor.name])
            view = Op(f"{op.name}.gather", View(GATHERED), (cut,), (current,), (), op.phase, op.layer)
            self.new.append(_Entry(view, ((cut_growth,), (growth,), ())))
            self.gathers.append((begins, len(self.new), tensor.bytes / SMALL_BATCH))
            self.gathered[tensor.name] = current
        return replace(current, shape=tensor.shape)

    def _scatter(self, tensor: Tensor, growth: Growth, op: Op) -> None:
        """The sum of summands, cut: a reduce-scatter in front of the op that reads it first."""
        cut, cut_growth = self._cut(tensor, growth)
        source = _partial(tensor)
        view = Op(f"{op.name}.scatter", View(SCATTERED), (source,), (cut,), (), op.phase, op.layer)
        self.new.append(_Entry(view, ((growth,), (cut_growth,), ()) if growth else None))
        self.scatters.append((self.maker.get(source.name, 0), len(self.new), tensor.bytes / SMALL_BATCH))
        self.maker[tensor.name] = len(self.new) - 1

    def _cut(self, tensor: Tensor, growth: Growth) -> tuple[Tensor, Growth]:
        return cut_tokens(tensor, growth, (self.tokens,), self.degree)


def _partial(tensor: Tensor) -> Tensor:
    return replace(tensor, name=f"{tensor.name}@partial")


def _by_entry(trace: Trace, messages: list[Message]) -> tuple[Message, ...]:
    """Between entries of the columns; a view stands with the kernel before it."""
    entry = trace.entries.tolist()
    by_entry = []
    for after, before, size_bytes in messages:
        first = max(0, entry[after])
        by_entry.append((first, max(entry[before], first + 1), size_bytes))
    return tuple(by_entry)
