"""Expert parallelism: the experts of a mixture spread over ranks (Lepikhin et al. 2021, "GShard").

Each of e ranks holds an e-th of the experts, and runs them on the tokens that any of the e ranks dispatched to them.
With balanced routing that is as much work as all experts on its own tokens, in fewer and longer products. Where routing
is uneven, all wait for the rank with most tokens, which has `expert_imbalance` times as many, and its buffers are
larger; with a capacity (`graph.expert_capacity`) all ranks have as many. Tokens travel all to all twice per mixture and
pass:

    forward    to their experts behind the dispatch, back in front of the combine
    backward   their gradients to the experts behind the combine's, back in front of the dispatch's

Tensor parallel ranks share out the tokens of a mixture among themselves and do not cut experts (Megatron-Core with
sequence parallelism, its expert tensor parallel degree 1). A mixture has `Gather` and `Scatter` that dispatch
and combine, and products with a stack of weights (`describe.capture.zoo.moe`); all in between is (experts, tokens, …).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Gather, Kind, Matmul, Scatter
from epochcast.describe.graph.rebatch import Growth, Sides
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.errors import BadInput, InvalidLayout
from epochcast.predict.forecast.strategies.tensor_parallel import Rank

TRAVELS = ("dispatch", "combine")


def has_experts(trace: Trace) -> bool:
    """Whether a step has a mixture of experts."""
    return any(_travels(op.kind, Gather) for op in trace.template.base)


def spread(rank: Rank, expert: int, tensor: int) -> Rank:
    """The step of a rank that has an `expert`-th of the experts and a `tensor`-th of the tokens for them."""
    whole = rank.trace
    mixtures = _Mixtures.of(whole, whole.recipe.expert_imbalance if expert > 1 else 1.0)
    if not mixtures.parameters:
        raise BadInput(f"expert parallel: {whole.name} has no mixture of experts")
    if mixtures.experts % expert:
        raise InvalidLayout(f"expert parallel over {expert} GPUs does not divide the {mixtures.experts} experts")
    template = whole.template.mapped(lambda op, growth: mixtures.part(op, growth, expert, tensor))
    parameters = tuple(
        replace(p, tensor=mixtures.fewer(p.tensor, expert)) if p.name in mixtures.parameters else p
        for p in whole.parameters
    )
    trace = replace(whole, template=template, parameters=parameters)
    return replace(rank, trace=trace, dispatches=tuple(_dispatches(trace)), experts=mixtures.parameters)


def _dispatches(trace: Trace) -> Iterator[tuple[int, int, float]]:
    """(after, before, bytes per sample): tokens leave behind a gather and are back in front of a scatter."""
    samples, like = trace.template.distinct
    entries = trace.entries.tolist()
    for place, sample in enumerate(like.tolist()):
        op, entry = samples[sample][0], entries[place]
        if _travels(op.kind, Gather):
            yield entry, entry + 1, op.output.bytes / SMALL_BATCH
        elif _travels(op.kind, Scatter):
            yield entry - 1, entry, op.inputs[0].bytes / SMALL_BATCH


def _travels(kind: Kind, of: type[Gather] | type[Scatter]) -> bool:
    return isinstance(kind, of) and kind.function in TRAVELS


@dataclass(frozen=True)
class _Mixtures:
    """The experts of a step: how many, the names of their parameters, and of these and all copies of them."""

    experts: int
    parameters: frozenset[str]
    stacked: frozenset[str]
    imbalance: float = 1.0

    @classmethod
    def of(cls, trace: Trace, imbalance: float) -> "_Mixtures":
        own = {p.name for p in trace.parameters}
        copied: dict[str, str] = {}  # by the name of a copy (a cast): the parameter
        count, parameters, stacked = 0, set(), set()
        for op in trace.template.base:
            if op.phase is not Phase.FORWARD:
                break
            if len(op.inputs) == 1 and not op.weights and copied.get(op.inputs[0].name, op.inputs[0].name) in own:
                copied |= {t.name: copied.get(op.inputs[0].name, op.inputs[0].name) for t in op.outputs}
            if isinstance(op.kind, Matmul) and op.weights and len(op.weights[0].shape) > 2:
                count = op.weights[0].shape[0]
                for tensor in op.weights:
                    parameter = copied.get(tensor.name, tensor.name)
                    parameters.add(parameter)
                    stacked |= {tensor.name, parameter}
        return cls(count, frozenset(parameters), frozenset(stacked), imbalance)

    def part(self, op: Op, growth: Sides | None, expert: int, tensor: int) -> tuple[Op, Sides | None]:
        """A rank's part of an op; the update is scaled as a whole."""
        if op.phase is Phase.UPDATE:
            return op, growth
        sides = []
        for index, tensors in enumerate((op.inputs, op.outputs, op.weights)):
            grown = growth[index] if growth else (None,) * len(tensors)
            sides.append([self._part(t, g, expert, tensor) for t, g in zip(tensors, grown, strict=True)])
        inputs, outputs, weights = (tuple(t for t, _ in side) for side in sides)
        part = replace(op, inputs=inputs, outputs=outputs, weights=weights)
        if growth is None:
            return part, None
        first, second, third = (tuple(g for _, g in side) for side in sides)
        return part, (first, second, third)

    def fewer(self, tensor: Tensor, expert: int) -> Tensor:
        """A stack of fewer experts."""
        return replace(tensor, shape=(tensor.shape[0] // expert, *tensor.shape[1:]))

    def _part(self, tensor: Tensor, growth: Growth, expert: int, cut: int) -> tuple[Tensor, Growth]:
        relation = tensor.relation
        if (relation.adds_to_gradient_of or relation.copy_of or tensor.name) in self.stacked:
            return self.fewer(tensor, expert), growth
        is_sorted = growth is not None and len(growth) > 1 and growth[1][1] and not growth[0][1]
        if growth is None or not is_sorted or tensor.shape[0] != self.experts:
            return tensor, growth
        constant, slope = growth[1]
        rows = self._rows(constant, expert, cut), self._rows(slope, expert, cut)
        batch = (tensor.shape[1] - constant) // slope
        shape = (tensor.shape[0] // expert, rows[0] + batch * rows[1], *tensor.shape[2:])
        return replace(tensor, shape=shape), ((growth[0][0] // expert, 0), rows, *growth[2:])

    def _rows(self, rows: int, expert: int, cut: int) -> int:
        """Tokens of `expert` ranks for the experts of the busiest one, of which `cut` ranks have a part each."""
        return ceil(round(rows * expert * self.imbalance / cut, 6))
