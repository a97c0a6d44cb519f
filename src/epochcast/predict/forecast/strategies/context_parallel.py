"""Context parallelism: one rank's part of a step whose sequences are cut (Liu et al. 2023, "Ring Attention with
Blockwise Transformers for Near-Infinite Context").

Each of c ranks has a c-th of the tokens of every sequence, so that all work on tokens is a c-th. Queries stay; keys and
values go round a ring in c-1 shifts, each hidden behind the attention to the part that is there:

    attention of one pass = A/c + (c-1)·max(A/c, shift)        A  seconds of the rank's attention kernel

In the backward pass keys and values travel again and their gradients with them: twice the bytes. Parameters are whole
on every rank; their gradients are summed over data and context parallel ranks together. Tokens are cut in 2c pieces of
which each rank has one from either end, so that a causal mask leaves all ranks the same work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Attention
from epochcast.describe.graph.ops.attention_op import attention_operands
from epochcast.describe.graph.rebatch import Growth, Sides
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.predict.comm.collectives import ring_shift_seconds
from epochcast.predict.forecast.strategies.messages import Message
from epochcast.predict.forecast.streams import Seconds

Shift = tuple[int, float]
"""(entry of an attention, bytes per sample that a rank hands on in one shift)"""


def cut_sequences(trace: Trace, degree: int, scattered: int = 1) -> tuple[Trace, tuple[Shift, ...]]:
    """The step of one of `degree` ranks, and what it hands on around each attention; sequence parallelism has already
    cut some of it in `scattered` parts.
    """
    tokens = _tokens(trace)
    lengths = (tokens, -(-tokens // scattered))
    if tokens % (2 * degree):
        raise BadInput(
            f"context parallel over {degree} GPUs cuts a sequence in {2 * degree} pieces, and {trace.name} has "
            f"{tokens} tokens"
        )

    def part(op: Op, growth: Sides | None) -> tuple[Op, Sides | None]:
        if op.phase is Phase.UPDATE or growth is None:
            return op, growth
        whole = _whole(op)
        sides = [
            [
                (t, g) if t in whole and side == 0 else cut_tokens(t, g, lengths, degree)
                for t, g in zip(tensors, grown, strict=True)
            ]
            for side, (tensors, grown) in enumerate(zip((op.inputs, op.outputs, op.weights), growth, strict=True))
        ]
        inputs, outputs, weights = (tuple(t for t, _ in pairs) for pairs in sides)
        grown_inputs, grown_outputs, grown_weights = (tuple(g for _, g in pairs) for pairs in sides)
        own = replace(op, inputs=inputs, outputs=outputs, weights=weights)
        return own, (grown_inputs, grown_outputs, grown_weights)

    return replace(trace, template=trace.template.mapped(part)), tuple(_shifts(trace, degree))


def _shifts(trace: Trace, degree: int) -> Iterator[Shift]:
    samples, like = trace.template.distinct
    entries = trace.entries.tolist()
    handed = [_handed_bytes(op) if isinstance(op.kind, Attention) else 0 for op, _ in samples]
    for place, sample in enumerate(like.tolist()):
        if handed[sample]:
            yield entries[place], handed[sample] / degree / SMALL_BATCH


def _handed_bytes(op: Op) -> int:
    """Keys and values; in the backward pass their gradients, too."""
    _, k, v = attention_operands(op)
    return (2 if op.is_gradient else 1) * (k.bytes + v.bytes)


def shift_messages(shifts: Sequence[Shift], seconds: Seconds, batch: int, degree: int, group: Group) -> list[Message]:
    """What of the shifts is not hidden behind the attention, as messages behind it; `group` is the ring."""
    messages = []
    for entry, sample_bytes in shifts:
        each = ring_shift_seconds(batch * sample_bytes, group)
        exposed = (degree - 1) * max(0.0, each - float(seconds[entry]) / degree)
        messages.append(Message(entry, entry + 1, exposed))
    return messages


def _tokens(trace: Trace) -> int:
    """The length of the sequences: of the first input, where that is tokens on which fused attention runs."""
    shape = trace.inputs[0].shape if trace.inputs else ()
    has_attention = any(isinstance(op.kind, Attention) for op in trace.template.base)
    if len(shape) != 2 or not has_attention:
        raise BadInput(f"context parallel is for sequences of tokens under fused attention, and {trace.name} has none")
    return shape[1]


def _whole(op: Op) -> tuple[Tensor, ...]:
    """What an op sees whole all the same: keys and values, part after part."""
    return attention_operands(op)[1:] if isinstance(op.kind, Attention) else ()


def cut_tokens(tensor: Tensor, growth: Growth, lengths: Sequence[int], degree: int) -> tuple[Tensor, Growth]:
    """A part along the tokens: the dimension in which they lie sample behind sample, or the one of their number, which
    is one of `lengths`.
    """
    if growth is None:
        return tensor, growth
    slopes = [slope for _, slope in growth]
    candidates = (
        [i for i, slope in enumerate(slopes) if slope > 1 and any(slope % length == 0 for length in lengths)],
        [i for i, slope in enumerate(slopes) if not slope and tensor.shape[i] in lengths],
        [i for i, slope in enumerate(slopes) if slope > 1],
    )
    at = next((dimensions[0] for dimensions in candidates if dimensions), None)
    if at is None:
        return tensor, growth
    shape, pairs = list(tensor.shape), list(growth)
    shape[at] = -(-shape[at] // degree)
    constant, slope = pairs[at]
    pairs[at] = (-(-constant // degree), -(-slope // degree))
    return replace(tensor, shape=tuple(shape)), tuple(pairs)
