"""The backward pass by rule: which ops autograd would run for a forward graph.

Reverse-mode differentiation (Griewank & Walther 2008) as PyTorch's engine does it: ops in reverse order; a tensor with
several uses collects its gradients by additions; data and weight gradients are separate products; nothing is computed
for a tensor that does not depend on a trainable parameter.

A rule takes the forward op and the set of tensor names whose gradient is wanted and yields backward ops. Their order is
that of PyTorch's generated code, which goes by the names of arguments (mm: mat2, self; mul: other, self; addmm: mat1,
mat2, self); sums over what was broadcast follow all products. An allocator's fragments depend on it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch
from math import prod

from epochcast.describe.graph.op import Gradient, Graph, Op, Phase
from epochcast.describe.graph.op_kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    OptimizerUpdate,
    Pool,
    Recurrent,
    Reduce,
    Scatter,
    Softmax,
    View,
)
from epochcast.describe.graph.tensor import Relation, Tensor

Wanted = frozenset[str]


def grad(tensor: Tensor) -> Tensor:
    """The gradient of a tensor: same shape and dtype."""
    return Tensor(tensor.shape, tensor.dtype, gradient_name(tensor.name), Relation(gradient_of=tensor.name))


def gradient_name(name: str) -> str:
    """The name of the storage of a tensor's gradient."""
    return f"grad:{name}"


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
        for piece in gradients(op.kind, op, wanted):
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


def _derived(
    op: Op,
    kind: Kind,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    *,
    weights: tuple[Tensor, ...] = (),
    gradient: Gradient = Gradient.DATA,
    suffix: str = "backward",
) -> Op:
    return Op(f"{op.name}.{suffix}", kind, inputs, outputs, weights, Phase.BACKWARD, op.layer, gradient, op.tf32)


@singledispatch
def gradients(kind: Kind, op: Op, wanted: Wanted) -> Iterator[Op]:
    """A kind without a rule: assumed to read and write what forward did, with gradients, by one op of the same kind."""
    results = tuple(grad(t) for t in (*op.inputs, *op.weights) if t.name in wanted)
    if results:
        yield _derived(op, kind, (grad(op.output), *op.inputs), results, weights=op.weights, gradient=Gradient.BOTH)


@gradients.register
def _(kind: Matmul, op: Op, wanted: Wanted) -> Iterator[Op]:
    """C = A·B: dA = dC·Bᵀ, dB = Aᵀ·dC; a linear layer's rows are flattened, its bias gradient is a sum over rows.

    A weight of more than two dimensions is a stack of weights, each for its own rows (experts).
    """
    arriving = grad(op.output)
    first = op.inputs[0]
    if not op.weights or len(op.weights[0].shape) > 2:
        yield from _computed_products(kind, op, wanted)
        yield from _bias_gradient(op, wanted)
        return
    weight = op.weights[0]
    flat_in = _flat(first, first.shape[-1])
    flat_out = _flat(arriving, arriving.shape[-1])
    products: list[Op] = []
    if first.name in wanted:
        product = Matmul(transpose_b=not kind.transpose_b)
        products.append(_derived(op, product, (flat_out,), (grad(first),), weights=(weight,), suffix="data"))
    if weight.name in wanted:
        operands = (flat_out, flat_in) if kind.transpose_b else (flat_in, flat_out)
        total, product = (grad(weight),), Matmul(transpose_a=True)
        products.append(_derived(op, product, operands, total, gradient=Gradient.WEIGHTS, suffix="weights"))
    yield from products if len(op.weights) > 1 else reversed(products)
    yield from _bias_gradient(op, wanted)


def _computed_products(kind: Matmul, op: Op, wanted: Wanted) -> Iterator[Op]:
    """Both operands computed, or the second a stack of weights.

    The gradient of an operand that is stored transposed is stored transposed, too: dAᵀ = B·dCᵀ, dBᵀ = dCᵀ·A.
    """
    first, second, arriving = *(*op.inputs, *op.weights)[:2], grad(op.output)
    if len(second.shape) == 2 and not kind.transpose_a:  # one matrix for all rows: they are flattened
        arriving = _flat(arriving, arriving.shape[-1])
        rows = _flat(first, first.shape[-1])
    else:
        rows = first
    if second.name in wanted:
        if kind.transpose_b:
            product, operands = Matmul(transpose_a=True, transpose_b=kind.transpose_a), (arriving, rows)
        else:
            product, operands = Matmul(transpose_a=not kind.transpose_a), (rows, arriving)
        if op.weights:
            yield from _summed(op, product, operands, second, "weights", Gradient.WEIGHTS)
        else:
            yield from _summed(op, product, operands, second, "data2")
    if first.name in wanted:
        if kind.transpose_a:
            product, operands = Matmul(transpose_a=kind.transpose_b, transpose_b=True), (second, arriving)
        else:
            product, operands = Matmul(transpose_b=not kind.transpose_b), (arriving, second)
        yield from _summed(op, product, operands, first, "data")


def _summed(
    op: Op,
    kind: Matmul,
    operands: tuple[Tensor, ...],
    target: Tensor,
    suffix: str,
    gradient: Gradient = Gradient.DATA,
) -> Iterator[Op]:
    """One product; an operand that was broadcast over leading dimensions gets the sum of its gradient over them."""
    result = grad(target)
    lead = op.output.shape[:-2]
    if len(operands[1].shape) == 2 or prod(target.shape[:-2]) == prod(lead):
        yield _derived(op, kind, operands, (result,), gradient=gradient, suffix=suffix)
        return
    unsummed = _unsummed(op, target, (*lead, *target.shape[-2:]))
    yield _derived(op, kind, operands, (unsummed,), gradient=gradient, suffix=suffix)
    yield _derived(op, Reduce("sum"), (unsummed,), (result,), gradient=gradient, suffix=f"{suffix}.sum")


def _unsummed(op: Op, target: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a tensor that was broadcast, before its sum over what it was broadcast to."""
    return Tensor(shape, op.output.dtype, f"{gradient_name(target.name)}*{op.name}", Relation(unsummed_of=target.name))


def _flat(tensor: Tensor, columns: int) -> Tensor:
    return tensor.sized((tensor.elements // max(1, columns), columns))


def _bias_gradient(op: Op, wanted: Wanted) -> Iterator[Op]:
    for bias in op.weights[1:]:
        if bias.name in wanted:
            yield _derived(
                op, Reduce("sum"), (grad(op.output),), (grad(bias),), gradient=Gradient.WEIGHTS, suffix="bias"
            )


@gradients.register
def _(kind: Conv, op: Op, wanted: Wanted) -> Iterator[Op]:
    """dx from (dy; w), dw from (dy, x): each as many flops as forward."""
    arriving, first, weight = grad(op.output), op.inputs[0], op.weights[0]
    if first.name in wanted:
        yield _derived(op, kind, (arriving,), (grad(first),), weights=(weight,), suffix="data")
    if weight.name in wanted:
        yield _derived(op, kind, (arriving, first), (grad(weight),), gradient=Gradient.WEIGHTS, suffix="weights")
    yield from _bias_gradient(op, wanted)


@gradients.register
def _(kind: Attention, op: Op, wanted: Wanted) -> Iterator[Op]:
    """dQ, dK, dV in one pass that computes the scores again (Dao et al. 2022)."""
    q, k, v = op.inputs[:3]
    if {q.name, k.name, v.name} & wanted:
        more = (*op.inputs[3:], *op.weights)
        results = (grad(q), grad(k), grad(v), *(grad(t) for t in more if t.name in wanted))
        operands = (grad(op.output), q, k, v, op.output, *op.inputs[3:])
        yield _derived(op, kind, operands, results, gradient=Gradient.BOTH)


@gradients.register
def _(kind: Recurrent, op: Op, wanted: Wanted) -> Iterator[Op]:
    """Data and weight gradients of the whole sequence together, as cuDNN runs them; with frozen weights, of the data
    only.
    """
    first = op.inputs[0]
    results = tuple(grad(t) for t in (first, *op.weights) if t.name in wanted)
    trains = any(w.name in wanted for w in op.weights)
    if results:
        yield _derived(
            op,
            kind,
            (grad(op.output), first, op.output),
            results,
            weights=op.weights,
            gradient=Gradient.BOTH if trains else Gradient.DATA,
        )


@gradients.register
def _(kind: Norm, op: Op, wanted: Wanted) -> Iterator[Op]:
    """dx, dγ and dβ from dy and the saved input."""
    results = tuple(grad(t) for t in (op.inputs[0], *op.weights) if t.name in wanted)
    if results:
        yield _derived(
            op, kind, (grad(op.output), op.inputs[0]), results, weights=op.weights[:1], gradient=Gradient.BOTH
        )


@gradients.register
def _(kind: Softmax, op: Op, wanted: Wanted) -> Iterator[Op]:
    """From dy and the saved output."""
    if op.inputs[0].name in wanted:
        yield _derived(op, kind, (grad(op.output), op.output), (grad(op.inputs[0]),))


@gradients.register
def _(kind: Pool, op: Op, wanted: Wanted) -> Iterator[Op]:
    """Max pooling reads its input and the indices of the maxima; average pooling reads neither.

    A global average spreads its gradient by a broadcast and a division.
    """
    first = op.inputs[0]
    if first.name not in wanted:
        return
    if not all(kind.window) and kind.style == "average":
        yield _derived(op, Elementwise("div"), (grad(op.output),), (grad(first),))
        return
    saved = (first, *op.outputs[1:]) if kind.style == "max" else ()
    yield _derived(op, kind, (grad(op.output), *saved), (grad(first),))


# What an elementwise function keeps for its backward pass: its output, its inputs, a mask, or nothing.
_FROM_OUTPUT = frozenset({"relu", "sigmoid", "tanh", "exp", "sqrt", "rsqrt"})
_PASS_THROUGH = frozenset({"add", "sub"})
_CROSSWISE = frozenset({"mul", "div"})
_BY_A_CONSTANT = frozenset({"scale", "neg", "mask"})
_BY_THE_OTHERS = frozenset({"rotary"})  # linear in the first input: its gradient is turned back by the same angles


@gradients.register
def _(kind: Elementwise, op: Op, wanted: Wanted) -> Iterator[Op]:
    """relu′ from its output, gelu′ from its input, a product from the other factor; a sum passes its gradient on.

    An input that was broadcast gets the sum of its gradient over what it was broadcast to.
    """
    arriving = grad(op.output)
    if kind.function in _CROSSWISE:
        yield from _crosswise(op, wanted)
        return
    targets = [t for t in (*op.inputs, *op.weights) if t.name in wanted]
    for target in targets:
        others = tuple(t for t in (*op.inputs, *op.weights) if t.name != target.name)
        is_broadcast = target.elements < op.output.elements
        if kind.function in _PASS_THROUGH:
            if is_broadcast:
                yield _derived(op, Reduce("sum"), (arriving,), (grad(target),), suffix="sum")
            elif kind.function == "sub" and target is not op.inputs[0]:
                yield _derived(op, Elementwise("neg"), (arriving,), (grad(target),))
            else:
                yield _derived(op, View("pass"), (arriving,), (grad(target),), suffix="pass")
        else:
            saved = (op.output,) if kind.function in _FROM_OUTPUT else op.outputs[1:] or op.inputs
            if kind.function in _BY_A_CONSTANT:
                saved = ()
            elif kind.function in _BY_THE_OTHERS:
                saved = others
            yield _derived(op, kind, (arriving, *saved), (grad(target),))


def _crosswise(op: Op, wanted: Wanted) -> Iterator[Op]:
    """Of a product: each factor's gradient from the other factors, the last factor first, weights behind them."""
    operands, sums = (*op.inputs, *op.weights), []
    for target in (*reversed(op.inputs), *op.weights):
        if target.name not in wanted:
            continue
        others = tuple(t for t in operands if t.name != target.name)
        is_broadcast = target.elements < op.output.elements
        product = _unsummed(op, target, op.output.shape) if is_broadcast else grad(target)
        yield _derived(op, Elementwise("mul"), (grad(op.output), *(others or op.inputs)), (product,))
        if is_broadcast:
            sums.append(_derived(op, Reduce("sum"), (product,), (grad(target),), suffix="sum"))
    yield from sums


@gradients.register
def _(kind: Reduce, op: Op, wanted: Wanted) -> Iterator[Op]:
    """A sum or mean spreads its gradient by a broadcast."""
    if op.inputs[0].name in wanted:
        yield _derived(op, Elementwise("mul"), (grad(op.output),), (grad(op.inputs[0]),))


@gradients.register
def _(kind: Embedding, op: Op, wanted: Wanted) -> Iterator[Op]:
    """A dense gradient of the whole table, filled with zeros, then added to by row."""
    if op.weights and op.weights[0].name in wanted:
        yield _derived(op, kind, (grad(op.output), *op.inputs), (grad(op.weights[0]),), gradient=Gradient.WEIGHTS)


@gradients.register
def _(kind: Gather, op: Op, wanted: Wanted) -> Iterator[Op]:
    if op.inputs[0].name in wanted:
        yield _derived(op, Scatter(kind.function), (grad(op.output), *op.inputs[1:]), (grad(op.inputs[0]),))


@gradients.register
def _(kind: Scatter, op: Op, wanted: Wanted) -> Iterator[Op]:
    """The rows that were written are gathered; a tensor they were added to gets the gradient as it is."""
    first, *rest = op.inputs
    bases = [t for t in rest if t.name in wanted and t.shape == op.output.shape]
    if first.name in wanted:
        indices = (t for t in rest if t not in bases)
        yield _derived(op, Gather(kind.function), (grad(op.output), *indices), (grad(first),))
    for base in bases:
        yield _derived(op, View("pass"), (grad(op.output),), (grad(base),), suffix="pass")


@gradients.register
def _(kind: Copy, op: Op, wanted: Wanted) -> Iterator[Op]:
    """A concatenation hands out slices of its gradient, a repetition adds up; every other copy is undone by a copy."""
    arriving = grad(op.output)
    for target in op.inputs:
        if target.name in wanted:
            undo: Kind = {"concatenate": View("slice"), "repeat": Reduce("sum")}.get(kind.function, kind)
            yield _derived(op, undo, (arriving,), (grad(target),), suffix=f"backward.{target.name}")


@gradients.register
def _(kind: View, op: Op, wanted: Wanted) -> Iterator[Op]:
    """The gradient of a reshape is a reshape, of an expansion a sum; pieces of a split are written into one tensor."""
    first = op.inputs[0]
    if first.name not in wanted:
        return
    arriving = tuple(grad(t) for t in op.outputs)
    undo: Kind = kind
    if first.elements > op.output.elements:
        undo = Copy("concatenate")
    elif first.elements < op.output.elements:
        undo = Reduce("sum")
    yield _derived(op, undo, arriving, (grad(first),))


@gradients.register
def _(kind: Loss, op: Op, wanted: Wanted) -> Iterator[Op]:
    """The gradient with respect to the loss's input, from the targets (and the input, unless nll, which only picks)."""
    first = op.inputs[0]
    if first.name in wanted:
        saved = op.inputs[1:] if kind.function == "nll" else op.inputs
        yield _derived(op, kind, saved, (grad(first),))


@gradients.register
def _(kind: OptimizerUpdate, op: Op, wanted: Wanted) -> Iterator[Op]:
    raise ValueError(f"{op.name}: an optimizer update cannot be part of a forward pass")


gradients.register(Opaque, gradients.dispatch(object))
