"""A network of many equal blocks, looked at with a few of them and drawn out.

The blocks of a list (`model.layers.7`) are the same ops, and their names differ in the number alone. So a step of 80
blocks follows from one of six: the blocks at both ends as they are, and between them copies of a `period` of blocks,
with all numbers in their names moved on by how far the copy is from the original (its *shift*).

    few blocks    0 … | first … end - 1 | end … last
    many          0 … | first … end - 1 | copies of these | end + longest … last + longest

Exact where the periods before and behind the repeated one are the same as it, but for numbers (`is_alike`), and nothing
reaches farther than its neighbours. An optimizer's update lists tensors of all blocks: such a list is drawn out as the
step is. Any other op outside the blocks sees the ends alone.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from epochcast.graph.op import Op, Parameter, Phase
from epochcast.graph.order import LOOSE, NotRepeated, Order, Period, ordered
from epochcast.graph.tensor import UNRELATED, Relation, Tensor

Member = TypeVar("Member")


@dataclass(frozen=True)
class Repeats:
    """The list of blocks, by its name, and which of them are repeated."""

    blocks: str
    period: Period

    # ---- names -----------------------------------------------------------------------------------

    @cached_property
    def _number(self) -> re.Pattern[str]:
        return re.compile(rf"(?<={re.escape(self.blocks)}\.)\d+")

    @cached_property
    def _known(self) -> dict[str, tuple[list[str], list[int]]]:
        return {}

    @cached_property
    def _relations(self) -> dict[tuple[Relation, int], Relation]:
        return {}

    def _parts(self, name: str) -> tuple[list[str], list[int]]:
        """What stands around the numbers of a name, and the numbers."""
        found = self._known.get(name)
        if found is None:
            found = self._number.split(name), [int(number) for number in self._number.findall(name)]
            self._known[name] = found
        return found

    def block(self, name: str) -> int:
        """The block that a name belongs to."""
        numbers = self._parts(name)[1]
        return numbers[0] if numbers else LOOSE

    def moved(self, name: str, shift: int) -> str:
        """The name of a copy that is `shift` blocks farther."""
        if not shift:
            return name
        around, numbers = self._parts(name)
        if not numbers:
            return name
        if len(numbers) == 1:
            return f"{around[0]}{numbers[0] + shift}{around[1]}"
        return "".join([around[0], *(f"{n + shift}{rest}" for n, rest in zip(numbers, around[1:], strict=True))])

    def moved_tensor(self, tensor: Tensor, shift: int) -> Tensor:
        """A tensor of a copy."""
        if not shift:
            return tensor
        relation = tensor.relation
        if relation is not UNRELATED:
            relation = self._moved_relation(relation, shift)
        return Tensor(tensor.shape, tensor.dtype, self.moved(tensor.name, shift), relation)

    def _moved_relation(self, relation: Relation, shift: int) -> Relation:
        key = relation, shift
        moved = self._relations.get(key)
        if moved is None:
            fields = relation._asdict().items()
            names: dict[str, Any] = {field: self.moved(name, shift) for field, name in fields if isinstance(name, str)}
            moved = self._relations[key] = relation._replace(**names)
        return moved

    def moved_parameter(self, parameter: Parameter, shift: int) -> Parameter:
        """A parameter of a copy."""
        if not shift:
            return parameter
        tensor = self.moved_tensor(parameter.tensor, shift)
        return Parameter(tensor, parameter.trainable, self.moved(parameter.layer, shift))

    def moved_op(self, op: Op, shift: int) -> Op:
        """An op of a copy."""
        if not shift:
            return op
        inputs, outputs, weights = (
            tuple([self.moved_tensor(t, shift) for t in side]) for side in (op.inputs, op.outputs, op.weights)
        )
        name, layer = self.moved(op.name, shift), self.moved(op.layer, shift)
        return Op(name, op.kind, inputs, outputs, weights, op.phase, layer, op.gradient, op.tf32)

    # ---- sequences -------------------------------------------------------------------------------

    def order(self, names: Iterable[str]) -> Order:
        """A sequence of things that have these names, drawn out."""
        return ordered([self.block(name) for name in names], self.period)

    def drawn(
        self, few: Sequence[Member], name: Callable[[Member], str], moved: Callable[[Member, int], Member]
    ) -> tuple[Member, ...]:
        """A sequence of things that have a name, drawn out."""
        order = self.order(map(name, few))
        pairs = zip(order.positions.tolist(), order.shifts.tolist(), strict=True)
        return tuple([moved(few[place], shift) for place, shift in pairs])

    def undrawn(
        self, many: Sequence[Member], name: Callable[[Member], str], moved: Callable[[Member, int], Member]
    ) -> tuple[Member, ...]:
        """The few again: the copies left out, what lies behind them moved back."""
        end, longest = self.period.end, self.period.longest
        blocks = [self.block(name(member)) for member in many]
        return tuple(
            moved(member, 0 if block < end else -longest)
            for member, block in zip(many, blocks, strict=True)
            if block < end or block >= end + longest
        )

    def tensors(self, few: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """A list of tensors, drawn out."""
        return self.drawn(few, _name, self.moved_tensor)

    def parameters(self, few: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """A list of parameters, drawn out."""
        return self.drawn(few, _name, self.moved_parameter)

    def few_tensors(self, many: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The list that was drawn out to this one."""
        return self.undrawn(many, _name, self.moved_tensor)

    def few_parameters(self, many: Sequence[Parameter]) -> tuple[Parameter, ...]:
        """The list that was drawn out to this one."""
        return self.undrawn(many, _name, self.moved_parameter)

    def few_names(self, many: Sequence[str]) -> tuple[str, ...]:
        """Of names among the many, those of the few."""
        return self.undrawn(many, str, self.moved)

    def many_names(self, few: Iterable[str]) -> Iterator[str]:
        """Names among the few, and of all their copies."""
        for name in few:
            block = self.block(name)
            shifts = self.period.shifts if block in self.period else [self.period.natural(block)]
            yield from (self.moved(name, shift) for shift in shifts)

    # ---- ops -------------------------------------------------------------------------------------

    def lists_blocks(self, op: Op) -> bool:
        """Whether a tensor of an op belongs to a block."""
        return any(self.block(t.name) != LOOSE for t in (*op.inputs, *op.outputs, *op.weights))

    @cached_property
    def _loosened(self) -> dict[int, tuple[Op, Op]]:
        return {}

    def loose_op(self, op: Op) -> Op:
        """An op outside the blocks with the tensors of blocks that it lists drawn out. Every rank has the update."""
        kept = self._loosened.get(id(op))
        if kept is not None:
            return kept[1]
        sides = (op.inputs, op.outputs, op.weights)
        if self.block(op.name) != LOOSE or (
            # what joins tensors of all blocks is larger for more of them
            op.phase is not Phase.UPDATE
            and any(self.period.is_near(self.block(t.name)) for side in sides for t in side)
        ):
            raise NotRepeated
        inputs, outputs, weights = map(self.tensors, sides)
        drawn = Op(op.name, op.kind, inputs, outputs, weights, op.phase, op.layer, op.gradient, op.tf32)
        self._loosened[id(op)] = op, drawn  # with the op itself, so that no other gets its id
        return drawn

    def is_alike(self, few: Sequence[Op], besides: Sequence[Hashable]) -> bool:
        """Whether the periods before and behind the repeated one are as it is, and no block reaches farther than a
        period; `besides` is more about each op.
        """
        places: dict[int, list[int]] = {}
        for place, op in enumerate(few):
            block = self.block(op.layer)
            if block != LOOSE and self._reach(op, block) > self.period.length:
                return False
            places.setdefault(block, []).append(place)
        for block in range(self.period.first - self.period.length, self.period.end):
            here, there = places.get(block, []), places.get(block + self.period.length, [])
            if not here or len(here) != len(there):
                return False
            for near, far in zip(here, there, strict=True):
                if besides[near] != besides[far] or self.moved_op(few[near], self.period.length) != few[far]:
                    return False
        return True

    def _reach(self, op: Op, block: int) -> int:
        numbers = [n for t in (*op.inputs, *op.outputs, *op.weights) for n in self._parts(t.name)[1]]
        return max((abs(number - block) for number in numbers), default=0)


def _name(thing: Tensor | Parameter) -> str:
    return thing.name
