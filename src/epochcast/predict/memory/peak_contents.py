"""What is alive at the peak of a step, by layer and by kind of content.

A storage belongs to the layer of the op that first writes it, a parameter to its own. What is no layer's (optimizer
state of a fused update, buckets, inputs) has the name of its content.
"""

from collections import Counter
from dataclasses import dataclass

from epochcast.base.record import Record
from epochcast.describe.graph.trace import Trace
from epochcast.predict.memory.lifetimes import BEFORE, Integers, Lifetimes, Role

MOST_GROUPS = 12
OTHERS = "others"


@dataclass(frozen=True, slots=True)
class AliveBytes(Record):
    """Bytes of one kind of content of one layer."""

    layer: str
    content: str
    bytes: int


def alive_at(lives: Lifetimes, trace: Trace, size_bytes: Integers, place: int) -> tuple[AliveBytes, ...]:
    """What is alive at a place of a timeline, which begins before the first op, by layer and content."""
    ops, layers = trace.template.base, {p.name: p.layer for p in trace.parameters}
    owners = {p.tensor.name: p.layer for p in trace.parameters} | layers
    sums: Counter[tuple[str, str]] = Counter()
    for storage, (role, size, born, last, is_kept) in enumerate(
        zip(lives.roles, size_bytes, lives.born, lives.last, lives.kept, strict=True)
    ):
        begins = BEFORE if is_kept else born
        if not (begins + 1 <= place <= last + 1) or not size:
            continue
        content = Role(role).label
        own = ops[born].layer if 0 <= born < len(ops) else ""
        layer = owners.get(lives.names[storage]) or own or content
        sums[layer, content] += int(size)
    return tuple(AliveBytes(layer, content, size) for (layer, content), size in sums.items())


def grouped(alive: tuple[AliveBytes, ...], most: int = MOST_GROUPS) -> tuple[AliveBytes, ...]:
    """The same by parts of the network, as deep in the names of layers as there is room for: blocks.3.attn is then part
    of blocks.3. Small ones are joined as "others"; the order is that of the network.
    """
    deepest = max((part.layer.count(".") + 1 for part in alive), default=1)
    depth = next((d for d in range(deepest, 1, -1) if len({_part(part, d) for part in alive}) <= most), 1)
    sums: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    for part in alive:
        sums[_part(part, depth), part.content] += part.bytes
        totals[_part(part, depth)] += part.bytes
    kept = {name for name, _ in totals.most_common(most)}
    shown: Counter[tuple[str, str]] = Counter()
    for (name, content), size in sums.items():
        shown[name if name in kept else OTHERS, content] += size
    ordered = sorted(shown.items(), key=lambda item: item[0][0] == OTHERS)
    return tuple(AliveBytes(name, content, size) for (name, content), size in ordered)


def _part(alive: AliveBytes, depth: int) -> str:
    return ".".join(alive.layer.split(".")[:depth])
