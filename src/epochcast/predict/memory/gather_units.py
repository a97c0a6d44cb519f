"""What a sharded step gathers and gives back together: the parameters of one unit, for as long as the unit runs.

A *unit* is a repeated block of the network (`graph.checkpointing.blocks_of`), as FSDP's wrapping policies take it; a
layer outside of every block is a unit of its own if it has parameters, as DeepSpeed gathers single modules. All other
ops (without a layer, or of a layer without parameters, such as the loss) run with the unit before them. A *run* is a
stretch of ops of one unit; the unit's parameters are there from the beginning of the run before it (they are asked for
one unit ahead) to its end. Gradients are whole from their birth to the end of the run behind the one that finishes
them, beside which they are summed and scattered: that of a tied table waits for its second part.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from epochcast.describe.graph.checkpointing import blocks_of
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.trace import Trace


@dataclass(frozen=True, slots=True)
class UnitRun:
    """Ops `first` to `last` (places in the template) of one unit, of one phase."""

    unit: str
    first: int
    last: int


class Gathered(NamedTuple):
    """A parameter is asked for when op `asked` begins, used from op `needed` on, and given back behind op `last`."""

    parameter: str
    asked: int
    needed: int
    last: int


@dataclass(frozen=True, slots=True)
class Units:
    """The runs of a step in their order, and the names of the parameters that each unit reads; `outside` are those that
    no block reads.
    """

    runs: tuple[UnitRun, ...]
    parameters: dict[str, tuple[str, ...]]
    outside: frozenset[str] = frozenset()

    def gathered(self) -> Iterator[Gathered]:
        """When each parameter is whole; one of two units that follow each other stays."""
        held: dict[str, Gathered] = {}
        for index, run in enumerate(self.runs):
            requested = self.runs[index - 1].first if index else run.first
            for name in self.parameters.get(run.unit, ()):
                before = held.get(name)
                if before is not None and before.last >= requested - 1:
                    held[name] = before._replace(last=run.last)
                    continue
                if before is not None:
                    yield before
                held[name] = Gathered(name, requested, run.first, run.last)
        yield from held.values()

    def end_of(self, place: int, behind: int = 0) -> int:
        """The last op of the run that an op is in, or of a run so many behind that."""
        at = bisect_right(self.runs, place, key=lambda run: run.first) - 1 + behind
        return self.runs[min(at, len(self.runs) - 1)].last


def units(trace: Trace) -> Units:
    """Read off the ops of forward and backward; kept on the template."""
    units_of_step: Units = trace.template.derived.get("units", lambda: _units(trace))
    return units_of_step


def finished_gradients(trace: Trace) -> dict[str, int]:
    """The place of the last backward op that writes the gradient of each trained parameter; kept on the template."""
    places: dict[str, int] = trace.template.derived.get("finished gradients", lambda: _finished(trace))
    return places


def _finished(trace: Trace) -> dict[str, int]:
    trained = {parameter.name for parameter in trace.parameters if parameter.trainable}
    places: dict[str, int] = {}
    for place, op in enumerate(trace.template.base):
        if op.phase is Phase.BACKWARD:
            places.update({owner: place for t in op.outputs if (owner := t.relation.gradient_of) in trained})
    return places


def _units(trace: Trace) -> Units:
    ops = [op for op in trace.template.base if op.phase is not Phase.UPDATE]
    blocks = blocks_of({op.layer for op in ops})
    parameter_names = {parameter.name for parameter in trace.parameters}
    unit_of = [blocks.get(op.layer, op.layer) for op in ops]
    reading = [tuple(_parameters_of(op, parameter_names)) for op in ops]
    with_parameters = {unit for unit, names in zip(unit_of, reading, strict=True) if names}
    runs = tuple(_runs(ops, [unit if unit in with_parameters else "" for unit in unit_of]))
    members: dict[str, dict[str, None]] = {}
    for run in runs:
        for names in reading[run.first : run.last + 1]:
            members.setdefault(run.unit, {}).update(dict.fromkeys(names))
    in_blocks = {name for op, names in zip(ops, reading, strict=True) if op.layer in blocks for name in names}
    outside = frozenset(name for names in reading for name in names) - in_blocks
    return Units(runs, {unit: tuple(names) for unit, names in members.items()}, outside)


def _parameters_of(op: Op, parameter_names: set[str]) -> Iterator[str]:
    """The parameters that an op reads, or copies of them."""
    for tensor in (*op.inputs, *op.weights):
        name = tensor.name if tensor.name in parameter_names else tensor.relation.copy_of
        if name in parameter_names:
            yield name


def _runs(ops: Sequence[Op], unit_of: Sequence[str]) -> Iterator[UnitRun]:
    first = 0
    unit, phase = "", Phase.FORWARD
    for place, op in enumerate(ops):
        own = unit_of[place] or unit
        if place and ((unit and own != unit) or op.phase is not phase):
            yield UnitRun(unit, first, place - 1)
            first = place
        unit, phase = own, op.phase
    if ops:
        yield UnitRun(unit, first, len(ops) - 1)
