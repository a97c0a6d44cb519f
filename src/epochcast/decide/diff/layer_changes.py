"""Which layers a change of the step comes from: seconds by layer, and what is no layer's, summing to the whole change.

Layers of two networks are matched in three rounds: equal name and equal kernels; then equal kernels in the same order
(a layer that was renamed, or moved on by an inserted one); then equal names (a layer that was changed). What is left
was added or removed.

What no layer has alone stands in brackets: waiting for the host, the exchange between GPUs, waiting for the loader, and
the rest of a step that is not a kernel of a layer (a strategy's share of the update, a framework's constant).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import ClassVar

from epochcast.base.record import Record
from epochcast.decide.diff.diff_side import LayerSeconds, Side
from epochcast.predict.forecast.step_parts import StepParts

SAME, RENAMED, CHANGED, ADDED, REMOVED, OVERALL = "same", "renamed", "changed", "added", "removed", "overall"

_PARTS: tuple[tuple[str, Callable[[StepParts], float]], ...] = (
    ("(waiting for the host)", lambda parts: parts.host),
    ("(exchange between GPUs)", lambda parts: parts.exposed_comm),
    ("(waiting for data)", lambda parts: parts.exposed_input),
)
_REST = "(other)"
# Alignment takes the product of two lengths; of more layers than this only names are matched.
MOST_ALIGNED = 5000
# Of a step: smaller changes are those of rounding, in sums and in a lock.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class LayerChange(Record):
    """Seconds that one layer adds to a step; `share` of the step's change, None where the step does not change."""

    name: str
    status: str
    base_seconds: float
    head_seconds: float
    share: float | None
    json_also: ClassVar[tuple[str, ...]] = ("seconds_change",)

    @property
    def seconds_change(self) -> float:
        """Head less base."""
        return self.head_seconds - self.base_seconds


def layer_changes(base: Side, head: Side) -> tuple[LayerChange, ...]:
    """Every layer that changes the step, the largest change first; their seconds sum to the change of its middle."""
    total = head.forecast.step_seconds.mid - base.forecast.step_seconds.mid
    rows = [*_layer_rows(base.layers, head.layers), *_overall_rows(base, head)]
    least = ROUNDING * base.forecast.step_seconds.mid
    changes = [
        LayerChange(name, status, before, after, (after - before) / total if abs(total) > least else None)
        for name, status, before, after in rows
        if abs(after - before) > least
    ]
    return tuple(sorted(changes, key=lambda change: -abs(change.seconds_change)))


Row = tuple[str, str, float, float]


def _layer_rows(base: Sequence[LayerSeconds], head: Sequence[LayerSeconds]) -> Iterator[Row]:
    pairs = matched(base, head)
    for before, after in pairs:
        if before is None:
            assert after is not None
            yield after.name, ADDED, 0.0, after.seconds
        elif after is None:
            yield before.name, REMOVED, before.seconds, 0.0
        else:
            is_same = before.signature == after.signature
            status = CHANGED if not is_same else SAME if before.name == after.name else RENAMED
            yield after.name, status, before.seconds, after.seconds


def _overall_rows(base: Side, head: Side) -> Iterator[Row]:
    """What the parts of the two steps have besides the kernels of layers."""
    parts: list[tuple[float, float]] = [
        (sum(layer.seconds for layer in base.layers), sum(layer.seconds for layer in head.layers))
    ]
    mine, other = base.forecast.step_parts, head.forecast.step_parts
    if mine is not None and other is not None:
        for name, part in _PARTS:
            parts.append((part(mine), part(other)))
            yield name, OVERALL, part(mine), part(other)
    befores, afters = zip(*parts, strict=True)
    before = base.forecast.step_seconds.mid - sum(befores)
    after = head.forecast.step_seconds.mid - sum(afters)
    yield _REST, OVERALL, before, after


Pair = tuple[LayerSeconds | None, LayerSeconds | None]


def matched(base: Sequence[LayerSeconds], head: Sequence[LayerSeconds]) -> list[Pair]:
    """Layers of both sides that belong together; None where one was added or removed."""
    pairs: list[Pair] = []
    for round_ in (_same_name_and_kernels, _same_kernels_in_order, _same_name):
        places = round_(base, head)
        pairs += [(base[i], head[j]) for i, j in places]
        before, after = {i for i, _ in places}, {j for _, j in places}
        base = [layer for place, layer in enumerate(base) if place not in before]
        head = [layer for place, layer in enumerate(head) if place not in after]
    return [*pairs, *((layer, None) for layer in base), *((None, layer) for layer in head)]


Places = list[tuple[int, int]]


def _same_name_and_kernels(base: Sequence[LayerSeconds], head: Sequence[LayerSeconds]) -> Places:
    places = {(layer.name, layer.signature): place for place, layer in enumerate(head)}
    keys = [(layer.name, layer.signature) for layer in base]
    return [(place, places[key]) for place, key in enumerate(keys) if key in places]


def _same_kernels_in_order(base: Sequence[LayerSeconds], head: Sequence[LayerSeconds]) -> Places:
    if max(len(base), len(head)) > MOST_ALIGNED:
        return []
    aligned = SequenceMatcher(None, [o.signature for o in base], [o.signature for o in head], autojunk=False)
    blocks = aligned.get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def _same_name(base: Sequence[LayerSeconds], head: Sequence[LayerSeconds]) -> Places:
    places = {layer.name: place for place, layer in enumerate(head)}
    return [(place, places[layer.name]) for place, layer in enumerate(base) if layer.name in places]
