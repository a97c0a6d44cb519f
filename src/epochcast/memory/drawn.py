"""The storages of a step of many blocks, from those of a step of few (`graph.repeats`).

A storage is met first by some op: a copy of that op meets a copy of the storage. It is used last by some op, and there
are two ways that goes on. Most storages die near where they are born, and a copy dies as much farther on as it is born.
Some live until the step leaves the blocks (a gradient that is passed on in place from block to block): all copies die
there. Which of the two it is shows in the period behind the repeated one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochcast.graph.order import LOOSE, NotRepeated, Order, Run
from epochcast.graph.repeats import Repeats

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class DrawnStorages:
    """One entry per storage of the many: which of the few it is or is a copy of, how far it moved, and the ops that
    meet it first and use it last.
    """

    few: Integers
    shifts: Integers
    met: Integers
    last: Integers


def drawn_storages(
    names: Sequence[str], met: Integers, last: Integers, ops: int, repeats: Repeats, order: Order
) -> DrawnStorages:
    """The storages of few blocks, drawn out.

    `met` are the places at which they are met first, in order, and `last` those at which they are used last; at the
    place `ops`, behind the last op, is met what no op uses, and ends what stays.
    """
    pieces = list(_pieces(names, met, ops, repeats, order))
    few, shifts, places = (np.concatenate([piece[part] for piece in pieces]) for part in range(3))
    ends = np.full(len(few), len(order.positions))
    mortal = np.flatnonzero(last[few] < ops)
    one_end = _have_one_end(names, met, last, ops, repeats, order)[few[mortal]]
    ends[mortal] = order.places(last[few[mortal]], shifts[mortal], one_end)
    return DrawnStorages(few, shifts, places, ends)


def _pieces(
    names: Sequence[str], met: Integers, ops: int, repeats: Repeats, order: Order
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Storages, their shifts and where they are met, run by run; an op outside the blocks may meet a list of those of
    all blocks, and what is never met is such a list.
    """
    behind = Run(ops, 1, LOOSE, 0), 0, len(order.positions)
    for run, shift, start in [*order.many, behind]:
        storages = np.arange(*np.searchsorted(met, (run.start, run.end)))
        places = met[storages] - run.start + start
        if run.block != LOOSE:
            yield storages, np.full(len(storages), shift), places
            continue
        for place in np.unique(places):
            listed = storages[places == place]
            drawn = repeats.order(names[storage] for storage in listed.tolist())
            yield listed[drawn.positions], drawn.shifts, np.full(len(drawn.positions), place)


def _have_one_end(
    names: Sequence[str], met: Integers, last: Integers, ops: int, repeats: Repeats, order: Order
) -> NDArray[np.bool_]:
    """Whether all copies of a storage end at one place; so does what has no copies, unless it ends near its block."""
    period = repeats.period
    blocks = np.array([repeats.block(name) for name in names], dtype=np.int64)
    meeting = np.where(met < ops, order.blocks[np.minimum(met, ops - 1)], LOOSE)
    has_copies = period.have_copies(np.where(meeting == LOOSE, blocks, meeting))
    dies = last < ops
    ends = order.blocks[np.minimum(last, ops - 1)]
    ends_near = period.are_near(ends)
    found: NDArray[np.bool_] = (blocks == LOOSE) | (~has_copies & ~ends_near)
    if np.any(~found & dies & ~has_copies & (np.abs(ends - blocks) > period.length)):
        raise NotRepeated
    number = {name: storage for storage, name in enumerate(names)}
    copied = np.flatnonzero(has_copies & dies & (blocks != LOOSE))
    others = np.array([number.get(repeats.moved(names[s], period.length), -1) for s in copied.tolist()], dtype=np.int64)
    if np.any(others < 0) or not np.all(dies[others]):
        raise NotRepeated
    found[copied] = last[copied] == last[others]
    if not np.all(found[copied] | order.is_moved(last[copied], last[others])):
        raise NotRepeated
    return found
