"""Momentum with weight decay as PyTorch's loop ran it: g + λ·w is a new tensor, one parameter after the other.

    d = g + λ·w,  v = μ·v + d,  w = w − η·v         d dies when the next parameter's turn comes

A peak in the update is then as much higher as the largest parameter: 392 MiB of a VGG.
"""

from collections.abc import Iterator
from dataclasses import replace

from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import OptimizerUpdate
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.tensor import Relation, Tensor, grad
from epochcast.describe.graph.trace import Trace


def with_weight_decay(trace: Trace) -> Trace:
    """The step with this update instead of its own."""
    template = trace.template
    other_ops = [place for place, op in enumerate(template.base) if op.phase is not Phase.UPDATE]
    update = [op for p in trace.parameters if p.trainable for op in _update(p.tensor)]
    ops = (*(template.base[place] for place in other_ops), *update)
    growths = (*(template.growths[place] for place in other_ops), *(None for _ in update))
    return replace(trace, template=Template(ops, growths))


def _update(w: Tensor) -> Iterator[Op]:
    d = replace(w, name=f"decayed:{w.name}")
    v = replace(w, name=f"momentum_buffer:{w.name}", relation=Relation(state_of=w.name))
    for step, reads, written in (("decay", (grad(w), w), d), ("momentum", (v, d), v), ("add", (w, v), w)):
        kind = OptimizerUpdate("momentum", step, "loop", 2)
        yield Op(f"{w.name}.{step}", kind, reads, (written,), (), Phase.UPDATE, "optimizer")
