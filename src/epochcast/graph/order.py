"""A sequence that goes through few blocks, drawn out to go through many (`repeats`).

Its members come in *runs*, neighbours that belong to one block. Runs outside the period that is repeated stay as they
are, those behind it move on; of those inside there are copies, in the direction that the sequence goes through the
blocks: up in a forward pass, down in a backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]
Truths = NDArray[np.bool_]

LOOSE = -1
"""The block of what is in none."""


class NotRepeated(Exception):
    """A sequence does not go through the blocks one after another, or a block is unlike its neighbours."""


@dataclass(frozen=True, slots=True)
class Period:
    """The blocks `first` … `first + length - 1`, of which there are `copies` more."""

    first: int
    length: int
    copies: int

    @property
    def end(self) -> int:
        """The block behind it."""
        return self.first + self.length

    @property
    def longest(self) -> int:
        """How far what lies behind the copies moves."""
        return self.length * self.copies

    @property
    def shifts(self) -> range:
        """Of the period itself and of its copies."""
        return range(0, self.longest + 1, self.length)

    def __contains__(self, block: int) -> bool:
        return self.first <= block < self.end

    def natural(self, block: int) -> int:
        """How far a block moves that has no copies."""
        return self.longest if block >= self.end else 0

    def is_near(self, block: int) -> bool:
        """Whether a block is in the period, or in the one before or behind it: these are alike."""
        return self.first - self.length <= block < self.end + self.length

    def have_copies(self, blocks: Places) -> Truths:
        """Which blocks are in the period."""
        found: Truths = (self.first <= blocks) & (blocks < self.end)
        return found

    def are_near(self, blocks: Places) -> Truths:
        """Which blocks are in the period, or in the one before or behind it."""
        found: Truths = (self.first - self.length <= blocks) & (blocks < self.end + self.length)
        return found


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbours in a sequence that belong to one block; `turn` counts the block's runs before."""

    start: int
    count: int
    block: int
    turn: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + self.count

    def moved(self, shift: int) -> int:
        """The block of a copy."""
        return LOOSE if self.block == LOOSE else self.block + shift


@dataclass(frozen=True)
class Order:
    """A sequence drawn out: the runs of the few, and of the many each with its shift and the place where it begins."""

    period: Period
    few: tuple[Run, ...]
    many: tuple[tuple[Run, int, int], ...]

    @cached_property
    def positions(self) -> Places:
        """Which of the few stands at every place."""
        return _joined([np.arange(run.start, run.end) for run, _, _ in self.many])

    @cached_property
    def shifts(self) -> Places:
        """How far every member has moved."""
        return _joined([np.full(run.count, shift) for run, shift, _ in self.many])

    @cached_property
    def is_loose(self) -> Truths:
        """Whether the member at a place is in no block."""
        loose: Truths = self.blocks[self.positions] == LOOSE
        return loose

    @cached_property
    def blocks(self) -> Places:
        """The block of each of the few."""
        return _joined([np.full(run.count, run.block) for run in self.few])

    @cached_property
    def _turns(self) -> Places:
        return _joined([np.full(run.count, run.turn) for run in self.few])

    @cached_property
    def _offsets(self) -> Places:
        return _joined([np.arange(run.count) for run in self.few])

    @cached_property
    def _starts(self) -> Places:
        """Where the runs of every block of the many begin, by turn and block; LOOSE is the last column."""
        begins = [(run.turn, run.moved(shift), start) for run, shift, start in self.many]
        table = np.full((max(turn for turn, _, _ in begins) + 1, max(block for _, block, _ in begins) + 2), -1)
        for turn, block, start in begins:
            table[turn, block] = start
        return table

    def copies(self, few_places: Places) -> tuple[Places, Places]:
        """Where members of the few, given in order, and their copies stand, and which of the given each of them is."""
        which, places = [], []
        for run, _, start in self.many:
            mine = np.arange(*np.searchsorted(few_places, (run.start, run.end)))
            which.append(mine)
            places.append(few_places[mine] - run.start + start)
        return _joined(places), _joined(which)

    def places(self, few_places: Places, shifts: Places, stays: Truths) -> Places:
        """Where among the many those are that members of the few refer to.

        A copy that has moved by a shift refers to what has moved as far. Where it `stays`, what refers is no copy (it
        is outside the blocks), and what it refers to, which must have no copies either, is looked for itself.
        """
        blocks, period = self.blocks[few_places], self.period
        natural = np.where(blocks >= period.end, period.longest, 0)
        stays = stays | (blocks == LOOSE)
        if np.any(np.where(stays, period.have_copies(blocks), (shifts != natural) & ~period.are_near(blocks))):
            raise NotRepeated
        moved = np.where(blocks == LOOSE, LOOSE, blocks + np.where(stays, natural, shifts))
        found: Places = self._starts[self._turns[few_places], moved] + self._offsets[few_places]
        return found

    def stands(self, few_place: int) -> tuple[int, int, int]:
        """The block of a member of the few, its run and its place there."""
        return int(self.blocks[few_place]), int(self._turns[few_place]), int(self._offsets[few_place])

    def is_moved(self, few_places: Places, others: Places) -> Truths:
        """Whether members of the few stand at the same places of blocks that are a period apart."""
        is_there = self.blocks[few_places] + self.period.length == self.blocks[others]
        same_turn = self._turns[few_places] == self._turns[others]
        same_place = self._offsets[few_places] == self._offsets[others]
        found: Truths = is_there & same_turn & same_place & (self.blocks[few_places] != LOOSE)
        return found


def ordered(blocks: Sequence[int], period: Period) -> Order:
    """A sequence whose members belong to these blocks, drawn out."""
    runs = _runs(blocks)
    drawn: list[tuple[Run, int]] = []
    index = 0
    while index < len(runs):
        if runs[index].block in period:
            shifts = _shifts([run.block for run in runs[max(0, index - 1) : index + period.length + 1]], period)
            drawn.extend((run, shift) for shift in shifts for run in runs[index : index + period.length])
            index += period.length
        else:
            drawn.append((runs[index], period.natural(runs[index].block)))
            index += 1
    starts = accumulate((run.count for run, _ in drawn), initial=0)
    return Order(period, tuple(runs), tuple([(*pair, start) for pair, start in zip(drawn, starts, strict=False)]))


def _shifts(blocks: list[int], period: Period) -> range:
    """Of a period and its copies, by the blocks that a sequence goes through there, the one before and behind too."""
    upwards = list(range(period.first - 1, period.end + 1))
    if blocks == upwards:
        return period.shifts
    if blocks == upwards[::-1]:
        return period.shifts[::-1]
    raise NotRepeated


def _runs(blocks: Sequence[int]) -> list[Run]:
    runs: list[Run] = []
    turns: dict[int, int] = {}
    start = 0
    for block, members in groupby(blocks):
        count, turn = len(list(members)), turns.get(block, 0)
        runs.append(Run(start, count, block, turn))
        turns[block] = turn + 1
        start += count
    return runs


def _joined(parts: list[NDArray[Any]]) -> Places:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])
