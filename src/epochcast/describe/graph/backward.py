"""The backward pass by rule: which ops autograd would run for a forward graph.

Reverse-mode differentiation (Griewank & Walther 2008) as PyTorch's engine does it: ops in reverse order; a tensor with
several uses collects its gradients by additions; data and weight gradients are separate products; nothing is computed
for a tensor that does not depend on a trainable parameter.

`Kind.gradients` yields the backward ops of one forward op. Their order is that of PyTorch's generated code, which goes
by the names of arguments (mm: mat2, self; mul: other, self; addmm: mat1, mat2, self); sums over what was broadcast
follow all products. An allocator's fragments depend on it.
"""

from collections.abc import Iterator
from dataclasses import replace

from epochcast.describe.graph.op import Graph, Op, Phase, Wanted
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import Relation


def differentiable(graph: Graph) -> Wanted:
    """Names of the tensors that need a gradient: trainable parameters and all that is computed from one."""
    names = {p.name for p in graph.parameters if p.trainable}
    for op in graph.ops:
        if any(t.name in names for t in (*op.inputs, *op.weights)):
            names.update(t.name for t in op.outputs if t.dtype.is_float)
    return frozenset(names)


def backward(graph: Graph) -> tuple[Op, ...]:
    """The backward ops of a graph whose last ops are its loss."""
    wanted = differentiable(graph)
    arrived = {t.name for t in graph.outputs if t.name in wanted}
    ops: list[Op] = []
    for op in reversed(graph.ops):
        if not any(t.name in arrived for t in op.outputs):
            continue
        for piece in op.kind.gradients(op, wanted):
            ops.extend(_accumulated(piece, arrived))
    return tuple(ops)


def _accumulated(op: Op, arrived: set[str]) -> Iterator[Op]:
    """The op itself. If the same tensor already has a gradient, an addition follows. `arrived` are the names of the
    tensors that have a gradient so far.
    """
    outputs, additions = [], []
    for tensor in op.outputs:
        owner = tensor.relation.gradient_of
        if owner not in arrived:
            if owner:
                arrived.add(owner)
            outputs.append(tensor)
            continue
        part = replace(tensor, name=f"{tensor.name}+{op.name}", relation=Relation(summand_of=owner))
        outputs.append(part)
        additions.append(
            Op(f"{op.name}.accumulate", Elementwise("add"), (tensor, part), (tensor,), (), Phase.BACKWARD, op.layer)
        )
    yield replace(op, outputs=tuple(outputs)) if additions else op
    yield from additions
