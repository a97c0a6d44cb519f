"""A step that computes in half and updates in float32, as large models are trained (Micikevicius et al. 2018).

Parameters, activations and their gradients are stored in half (`half`). The optimizer updates its own float32 copy of
the parameters (the master) and rewrites them in half. Gradients either stay in half and are widened when the update
begins (DeepSpeed: 2 + 2 + 4 + 4 + 4 bytes a parameter with Adam), or each is added, as soon as it is made, to a float32
gradient that lives through the step (Megatron-LM's main gradient, nanotron's accumulator: 2 + 4 + 4 + 4 + 4); what is
kept is what ranks exchange.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from epochcast.describe.graph.half_precision import stored_as
from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Elementwise, OptimizerUpdate, View
from epochcast.describe.graph.tensor import DType, Relation, Tensor
from epochcast.describe.graph.weights import Weights


def with_masters(
    ops: Iterable[Op], parameters: Iterable[Parameter], weights: Weights, *, is_stored: bool = False
) -> tuple[Op, ...]:
    """The same step with masters in float32. `ops` are in float32, or (`is_stored`) in half, the update too."""
    ops, parameters, low = tuple(ops), tuple(parameters), weights.parameters
    names = frozenset(p.name for p in parameters)
    passes = tuple(op for op in ops if op.phase is not Phase.UPDATE)
    updates = [updated(op, names) for op in ops if op.phase is Phase.UPDATE]
    if is_stored:
        updates = [_in_format(op, low, DType.FLOAT32) for op in updates]
    else:
        passes = tuple(stored_as(passes, low))
    if not weights.sums_wider:
        return (*passes, *_widened(updates, names, low), *([rewritten(parameters, low)] if updates else []))
    if updates:
        updates.append(rewritten(parameters, low))
    new_ops, halves = _added(passes, names)
    return (*new_ops, *_dropped(halves), *updates)


def _widened(updates: Sequence[Op], parameters: frozenset[str], low: DType) -> Iterator[Op]:
    """The update with gradients cast to float32 in front of it; the copies live until its end."""
    reads = (t for op in updates for t in op.inputs if t.relation.gradient_of in parameters)
    gradients = tuple({t.name: t for t in reads}.values())
    if not gradients:
        yield from updates
        return
    wide = {t.name: t.copy(f"{t.name}@{DType.FLOAT32.value}", DType.FLOAT32) for t in gradients}
    halves = tuple(replace(t, dtype=low) for t in gradients)
    kind = OptimizerUpdate("cast", "cast")
    yield Op("optimizer.widen", kind, halves, tuple(wide.values()), (), Phase.UPDATE, "optimizer")
    for op in updates:
        inputs, outputs = (tuple(wide.get(t.name, t) for t in side) for side in (op.inputs, op.outputs))
        yield replace(op, inputs=inputs, outputs=outputs)


def _added(ops: tuple[Op, ...], parameters: frozenset[str]) -> tuple[list[Op], list[Tensor]]:
    """Every finished gradient of a parameter is added to its float32 sum; the ops, and the gradients in half."""
    last = {t.relation.gradient_of: place for place, op in enumerate(ops) for t in op.outputs}
    new_ops: list[Op] = []
    halves: list[Tensor] = []
    for place, op in enumerate(ops):
        new_ops.append(_in_half(op, parameters))
        for tensor in {t.name: t for t in op.outputs}.values():
            owner = tensor.relation.gradient_of
            if owner not in parameters or last[owner] != place:
                continue
            total, half = replace(tensor, dtype=DType.FLOAT32), _half(tensor, parameters)
            halves.append(half)
            new_ops.append(
                Op(f"{op.name}.main", Elementwise("add"), (total, half), (total,), (), Phase.BACKWARD, op.layer)
            )
    return new_ops, halves


def _dropped(halves: list[Tensor]) -> Iterator[Op]:
    """Autograd's own gradients, in half, are dropped when the backward pass is done (nanotron; Megatron-LM's hooks drop
    them at once): a view that reads them all.
    """
    if halves:
        yield Op("optimizer.drop", View("drop"), tuple(halves), (halves[0],), (), Phase.UPDATE, "optimizer")


def _in_format(op: Op, before: DType, after: DType) -> Op:
    """The op with all its tensors of one format in another."""
    inputs, outputs = (
        tuple(replace(t, dtype=after) if t.dtype is before else t for t in side) for side in (op.inputs, op.outputs)
    )
    return replace(op, inputs=inputs, outputs=outputs)


def _in_half(op: Op, parameters: frozenset[str]) -> Op:
    tensors = (*op.inputs, *op.outputs)
    if not any(t.relation.gradient_of in parameters for t in tensors):
        return op
    inputs, outputs = (tuple(_half(t, parameters) for t in side) for side in (op.inputs, op.outputs))
    return replace(op, inputs=inputs, outputs=outputs)


def _half(tensor: Tensor, parameters: frozenset[str]) -> Tensor:
    """A parameter's gradient as the backward pass makes it, in a storage of its own."""
    if tensor.relation.gradient_of not in parameters:
        return tensor
    return tensor.copy(f"{tensor.name}@{tensor.dtype.value}", tensor.dtype)


def updated(op: Op, parameters: frozenset[str]) -> Op:
    """A pass of the optimizer over its float32 copies."""

    def masters(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(master_of(t) if t.name in parameters else t for t in tensors)

    return replace(op, inputs=masters(op.inputs), outputs=masters(op.outputs))


def rewritten(parameters: Iterable[Parameter], low: DType, how: str = "cast") -> Op:
    """The parameters written from the optimizer's copies, once a step."""
    trained = tuple(p.tensor for p in parameters if p.trainable)
    masters = tuple(master_of(t) for t in trained)
    results = tuple(replace(t, dtype=low) for t in trained)
    return Op(f"optimizer.{how}", OptimizerUpdate(how, how), masters, results, (), Phase.UPDATE, "optimizer")


def master_of(parameter: Tensor) -> Tensor:
    """The optimizer's own copy of a parameter."""
    relation = Relation(master_of=parameter.name)
    return Tensor(parameter.shape, DType.FLOAT32, f"master:{parameter.name}", relation)
