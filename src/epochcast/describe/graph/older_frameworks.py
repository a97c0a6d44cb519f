"""Rewrites of a forward graph into what an older framework would run."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from epochcast.describe.graph.half_precision import NARROW, WIDEN
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import Attention, Copy, Elementwise, Kind, Matmul, Softmax, View
from epochcast.describe.graph.tensor import DType, Tensor


def eager_attention(
    ops: Iterable[Op], *, with_dropout: bool = True, only_capped: bool = False, fuses_softmax: bool = False
) -> tuple[Op, ...]:
    """Every fused attention as scores = QKᵀ, scale, (cap, masks,) softmax, (dropout,) product with V: the L x S matrix
    is in memory, after every step. Nothing that a mask hides is saved. `only_capped`: only where scores are capped.
    `fuses_softmax`: scale, masks and softmax are one kernel, as in Megatron-LM (`fused_softmax`); where scores are
    capped or a sink joins them, no such kernel exists.

    Where several heads share keys and values, those are repeated first. A sink is one more column of the scores.
    """

    def is_written(kind: Kind) -> bool:
        return isinstance(kind, Attention) and (kind.capped or not only_capped)

    def pieces(op: Op) -> Iterable[Op]:
        return _eager(op, with_dropout, fuses_softmax) if is_written(op.kind) else (op,)

    return tuple(piece for op in ops for piece in pieces(op))


def _eager(op: Op, with_dropout: bool, fuses_softmax: bool) -> Iterator[Op]:
    kind = op.kind
    assert isinstance(kind, Attention)
    copies, op = with_own_keys(op)
    yield from copies
    q, k, v = op.inputs[:3]
    scores = Tensor((*q.shape[:-1], k.shape[-2]), q.dtype, f"{op.name}.scores")

    def scores_after(step: str) -> Tensor:
        return replace(scores, name=f"{op.name}.{step}")

    sinks, op = op.weights, replace(op, weights=())
    yield replace(op, name=f"{op.name}.scores", kind=Matmul(transpose_b=True), inputs=(q, k), outputs=(scores,))
    weights = scores_after("weights")
    if fuses_softmax and not sinks and not kind.capped:
        for place, bias in enumerate(op.inputs[3:]):
            biased = scores_after(f"biased.{place}")
            yield replace(op, name=biased.name, kind=Elementwise("add"), inputs=(scores, bias), outputs=(biased,))
            scores = biased
        softmax = Softmax(masked=True)
        yield replace(op, name=f"{op.name}.softmax", kind=softmax, inputs=(scores,), outputs=(weights,))
    else:
        yield from _stepwise(op, kind, scores, weights, sinks)
    if kind.dropout and with_dropout:
        dropped = scores_after("dropped")
        mask = replace(dropped, dtype=DType.BOOL, name=f"{op.name}.kept")
        yield replace(op, name=dropped.name, kind=Elementwise("dropout"), inputs=(weights,), outputs=(dropped, mask))
        weights = dropped
    yield replace(op, name=f"{op.name}.mix", kind=Matmul(), inputs=(weights, v), outputs=op.outputs)


def with_own_keys(op: Op) -> tuple[tuple[Op, ...], Op]:
    """Attention whose every head reads its own keys and values, behind the copies of grouped ones."""
    q, k, v, *more = op.inputs
    if k.shape[-3] == q.shape[-3]:
        return (), op
    repeated = [replace(t, shape=(*q.shape[:-2], *t.shape[-2:]), name=f"{op.name}.repeat.{t.name}") for t in (k, v)]
    copies = tuple(
        replace(op, name=copy.name, kind=Copy("repeat"), inputs=(source,), outputs=(copy,), weights=())
        for source, copy in zip((k, v), repeated, strict=True)
    )
    return copies, replace(op, inputs=(q, *repeated, *more))


def _stepwise(op: Op, kind: Attention, scores: Tensor, weights: Tensor, sinks: tuple[Tensor, ...]) -> Iterator[Op]:
    """From scores to weights by a kernel per step."""

    def scores_after(step: str) -> Tensor:
        return replace(scores, name=f"{op.name}.{step}")

    last = scores_after("scaled")
    yield replace(op, name=f"{op.name}.scale", kind=Elementwise("scale"), inputs=(scores,), outputs=(last,))
    for step, function, masks in _changes(kind, op.inputs[3:]):
        masked = scores_after(step)
        yield replace(op, name=masked.name, kind=Elementwise(function), inputs=(last, *masks), outputs=(masked,))
        last = masked
    if sinks:
        wider = (*scores.shape[:-1], scores.shape[-1] + 1)
        joined = replace(scores, shape=wider, name=f"{op.name}.joined")
        yield replace(op, name=joined.name, kind=Copy("concatenate"), inputs=(last, *sinks), outputs=(joined,))
        probabilities = replace(joined, name=f"{op.name}.softmax")
        yield replace(op, name=probabilities.name, kind=Softmax(), inputs=(joined,), outputs=(probabilities,))
        yield replace(op, name=f"{op.name}.slice", kind=View("slice"), inputs=(probabilities,), outputs=(weights,))
    elif kind.capped:  # Gemma 2: softmax(scores, dtype=torch.float32).to(query.dtype)
        wide, probabilities = scores_after("wide"), scores_after("softmax")
        yield replace(op, name=wide.name, kind=View(WIDEN), inputs=(last,), outputs=(wide,))
        yield replace(op, name=probabilities.name, kind=Softmax(), inputs=(wide,), outputs=(probabilities,))
        yield replace(op, name=f"{op.name}.narrow", kind=View(NARROW), inputs=(probabilities,), outputs=(weights,))
    else:
        yield replace(op, name=f"{op.name}.softmax", kind=Softmax(), inputs=(last,), outputs=(weights,))


def _changes(kind: Attention, biases: tuple[Tensor, ...]) -> Iterator[tuple[str, str, tuple[Tensor, ...]]]:
    """What is done to the scores: name of the result, function, tensors it reads besides."""
    if kind.capped:
        yield "divided", "scale", ()
        yield "bent", "tanh", ()
        yield "capped", "scale", ()
    if kind.causal:
        yield "mask", "mask", ()
    if kind.padded:
        yield "padded", "add", ()
    for place, tensor in enumerate(biases):
        yield f"biased.{place}", "add", (tensor,)
