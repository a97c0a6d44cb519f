"""From drafts to ops: names for storages, and two facts that depend on the whole step.

A product that writes the gradient of a parameter is a weight gradient. Where autograd sums two gradients of one tensor,
the sum is in place if the first is not read again, as the engine does on a device.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from epochcast.describe.capture.torch.aten_call import TensorView
from epochcast.describe.capture.torch.aten_recorder import Draft
from epochcast.describe.graph.op import Gradient, Op, Phase
from epochcast.describe.graph.op_kinds import Elementwise, Matmul, Reduce
from epochcast.describe.graph.tensor import UNRELATED, Relation, Tensor


class Storage(NamedTuple):
    """The name of a storage and its relation to others."""

    name: str
    relation: Relation = UNRELATED


def named_ops(drafts: Sequence[Draft], named: Mapping[int, Storage]) -> tuple[tuple[Op, ...], dict[int, Storage]]:
    """The ops, and every storage; `named` are those with given names (parameters, inputs, gradients)."""
    aliases = _summed_in_place(drafts, named)
    storages = {**named, **_partial_gradients(drafts, named)}
    counts: dict[str, int] = {}
    ops = []

    def tensors(views: Iterable[TensorView]) -> tuple[Tensor, ...]:
        return tuple(Tensor(v.shape, v.dtype, *storages[aliases.get(v.storage, v.storage)]) for v in views)

    def name_new(view: TensorView, name: str) -> None:
        storages.setdefault(aliases.get(view.storage, view.storage), Storage(name))

    for draft in drafts:
        piece = draft.piece
        path = f"{draft.layer}/{draft.target}" + (f".{piece.step}" if piece.step else "")
        uses = counts[path] = counts.get(path, 0) + 1
        name = path if uses == 1 else f"{path}.{uses}"
        for view in (*piece.inputs, *piece.weights):
            name_new(view, f"constant:{name}:{view.storage}")
        for place, view in enumerate(piece.outputs):
            name_new(view, name if place == 0 else f"{name}:{place}")
        outputs = tensors(piece.outputs)
        gradient = piece.gradient
        if gradient is Gradient.DATA and isinstance(piece.kind, Matmul | Reduce) and not piece.weights:
            gradient = Gradient.WEIGHTS if outputs[0].relation.adds_to_gradient_of else gradient
        ops.append(
            Op(
                name,
                piece.kind,
                tensors(piece.inputs),
                outputs,
                tensors(piece.weights),
                draft.phase,
                draft.layer,
                gradient,
            )
        )
    return tuple(ops), {s: storages[aliases.get(s, s)] for s in (*storages, *aliases)}


def _is_sum(draft: Draft) -> bool:
    piece = draft.piece
    return (
        draft.phase is Phase.BACKWARD
        and piece.gradient is Gradient.DATA
        and piece.kind == Elementwise("add")
        and len(piece.inputs) == 2
        and piece.inputs[0].shape == piece.inputs[1].shape == piece.outputs[0].shape
        and piece.outputs[0].storage not in (piece.inputs[0].storage, piece.inputs[1].storage)
    )


def _summed_in_place(drafts: Sequence[Draft], named: Mapping[int, Storage]) -> dict[int, int]:
    """The result of each sum of gradients → the operand it is written into, if that operand is not read later."""
    last_read: dict[int, int] = {}
    for place, draft in enumerate(drafts):
        for view in (*draft.piece.inputs, *draft.piece.weights):
            last_read[view.storage] = place
    aliases: dict[int, int] = {}
    for place, draft in enumerate(drafts):
        if not _is_sum(draft):
            continue
        result = draft.piece.outputs[0].storage
        if result in named:
            continue
        for operand in draft.piece.inputs:
            root = aliases.get(operand.storage, operand.storage)
            if operand.storage not in named and root not in named and last_read[operand.storage] == place:
                aliases[result] = root
                break
    return aliases


def _partial_gradients(drafts: Sequence[Draft], named: Mapping[int, Storage]) -> dict[int, Storage]:
    """A parameter used twice has two gradients that are summed: the second is added into the first."""
    born: dict[int, int] = {}
    for place, draft in enumerate(drafts):
        for view in draft.piece.outputs:
            born.setdefault(view.storage, place)
    partial: dict[int, Storage] = {}
    for draft in reversed(drafts):
        if not _is_sum(draft):
            continue
        result = draft.piece.outputs[0].storage
        total = named.get(result) or partial.get(result)
        owner = total.relation.adds_to_gradient_of if total else ""
        if not total or not owner:
            continue
        first = min((view.storage for view in draft.piece.inputs), key=lambda storage: born.get(storage, -1))
        for number, operand in enumerate(draft.piece.inputs, 1):
            if operand.storage not in named:
                part = Storage(f"{total.name}+{number}", Relation(summand_of=owner))
                partial.setdefault(operand.storage, total if operand.storage == first else part)
    return partial
