"""Two changes to the update: each parameter as soon as its gradient is finished, and a moving average of the weights.

An update inside the backward pass (`optimizer_in_bwd` of torchtune, LOMO, `register_post_accumulate_grad_hook`) frees
every gradient at once: not all of them are in memory together. It needs the update of one parameter after the other.

A moving average (EMA) of the weights is one more copy of what is trained, in the format the optimizer updates, and one
more pass over it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import OptimizerUpdate
from epochcast.describe.graph.tensor import Relation, Tensor


def updated_in_backward(ops: Sequence[Op], parameters: Iterable[Parameter]) -> tuple[Op, ...]:
    """The step whose updates, one parameter after the other, follow the last op that writes their gradient."""
    trained = frozenset(p.name for p in parameters if p.trainable)
    passes = [op for op in ops if op.phase is not Phase.UPDATE]
    last = {t.relation.gradient_of: place for place, op in enumerate(passes) for t in op.outputs}
    after: dict[int, list[Op]] = {}
    for owner, update in groupby(_with_owners(ops, trained), key=lambda pair: pair[0]):
        after.setdefault(last.get(owner, len(passes) - 1), []).extend(op for _, op in update)
    return tuple(piece for place, op in enumerate(passes) for piece in (op, *after.get(place, ())))


def _with_owners(ops: Sequence[Op], trained: frozenset[str]) -> Iterator[tuple[str, Op]]:
    """Every op of the update with its parameter; one that touches temporaries alone belongs to the one before."""
    owner = ""
    for op in ops:
        if op.phase is Phase.UPDATE:
            named = (name for t in (*op.outputs, *op.inputs) for name in _related(t) if name in trained)
            owner = next(named, owner)
            yield owner, op


def _related(tensor: Tensor) -> tuple[str, ...]:
    relation = tensor.relation
    return (tensor.name, relation.gradient_of, relation.state_of, relation.master_of)


def with_average(ops: Sequence[Op], parameters: Iterable[Parameter]) -> tuple[Op, ...]:
    """The step with a moving average of what is trained: of the optimizer's own copies where it has such."""
    trained = frozenset(p.name for p in parameters if p.trainable)
    updated: dict[str, Tensor] = {}
    for op in ops:
        for t in op.outputs if op.phase is Phase.UPDATE else ():
            owner = t.relation.master_of or t.name
            if owner in trained and not (owner in updated and updated[owner].relation.master_of):
                updated[owner] = t
    if not updated:
        return tuple(ops)
    averages = tuple(
        Tensor(t.shape, t.dtype, f"average:{owner}", Relation(state_of=owner)) for owner, t in updated.items()
    )
    kind = OptimizerUpdate("ema", "lerp", "foreach", 3)
    return (*ops, Op("ema.lerp", kind, (*averages, *updated.values()), averages, (), Phase.UPDATE, "optimizer"))
