"""Activations in the host's memory between forward and backward, as a rewrite of a step (torchtune, TRL, Unsloth).

What the forward pass saves leaves the device after its last use there and comes back before its first use in backward,
into a storage of its own (`View(FETCHED)`). With checkpointing that are the inputs of blocks. Scores of a vocabulary
stay, as in torchtune: their turn comes at once. So do tensors below `LEAST_BYTES`.

Limit: a tensor is taken to leave at once, and to come back just in time; implementations hold a few more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from epochcast.describe.graph.language_model import head_weights, is_head
from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import FETCHED, View
from epochcast.describe.graph.tensor import Tensor

LEAST_BYTES = 1024
"""`min_offload_size` of torchtune."""


def with_offloaded_activations(ops: Sequence[Op], parameters: Iterable[Parameter]) -> tuple[Op, ...]:
    """The step with what it saves in the host's memory."""
    walk = _OffloadWalk(ops, frozenset(p.name for p in parameters))
    return tuple(piece for op in ops for piece in walk.pieces(op))


def offloaded_bytes(ops: Iterable[Op]) -> int:
    """What travels to the host in one pass, and back."""
    return sum(op.output.bytes for op in ops if op.kind == View(FETCHED))


class _OffloadWalk:
    """`root` is the storage of every view, `saved` what may leave, `fetched` the copies back on the device."""

    def __init__(self, ops: Sequence[Op], parameters: frozenset[str]) -> None:
        self.root: dict[str, str] = {}
        self.saved: dict[str, Tensor] = {}
        self.fetched: set[str] = set()
        heads, is_scored = head_weights(ops), False
        for op in ops:
            if op.phase is not Phase.FORWARD:
                continue
            is_scored = is_scored or is_head(op, heads)
            for tensor in op.outputs:
                self._write(op, tensor, stays=is_scored or tensor.relation.copy_of in parameters)

    def _write(self, op: Op, tensor: Tensor, *, stays: bool) -> None:
        if isinstance(op.kind, View) and op.kind.shares_storage and op.inputs:
            self.root[tensor.name] = self.root.get(op.inputs[0].name, op.inputs[0].name)
        elif tensor.bytes >= LEAST_BYTES and not stays:
            self.saved[tensor.name] = tensor

    def pieces(self, op: Op) -> list[Op]:
        """The op reading the fetched copies, behind the copies it needs first."""
        if op.phase is not Phase.BACKWARD:
            return [op]
        arriving: list[Op] = []
        inputs, weights = (tuple(self._read(t, op, arriving) for t in side) for side in (op.inputs, op.weights))
        return [*arriving, replace(op, inputs=inputs, weights=weights)]

    def _read(self, tensor: Tensor, op: Op, arriving: list[Op]) -> Tensor:
        root = self.root.get(tensor.name, tensor.name)
        if root not in self.saved:
            return tensor
        name = f"{root}@fetched"
        if root not in self.fetched:
            self.fetched.add(root)
            back = self.saved[root]
            relation = back.relation._replace(is_recomputed=True)
            result = replace(back, name=name, relation=relation)
            arriving.append(Op(f"{root}.fetched", View(FETCHED), (), (result,), (), Phase.BACKWARD, op.layer))
        return replace(tensor, name=name)
