"""Pipeline schedules: in which order a stage works on its micro-batches, and when everything is done.

    serial                             one micro-batch at a time through all stages and back
    GPipe (Huang et al. 2019)          all forward passes, then all backward passes
    1F1B (Narayanan et al. 2019)       stage s of p begins with p-s-1 forward passes, then one forward, one backward
    interleaved (Narayanan et al. 2021, "Efficient large-scale language model training on GPU clusters")
                                       a stage has v chunks of the model: chunk c of stage s is part c·p + s

With p equal stages and m micro-batches the ideal step is m(F + B) and the bubble (p-1)(F + B), a fraction (p-1)/m of
it; v chunks make it (p-1)/vm. The simulation runs any stages: a task starts when its stage is free and its input there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from epochcast.errors import BadInput
from epochcast.predict.forecast.strategies.degrees import SERIAL


@dataclass(frozen=True, slots=True)
class MicroBatchWork:
    """Seconds of one micro-batch in every part of the model, in order, and of sending its result to the next part."""

    forward_seconds: tuple[float, ...]
    backward_seconds: tuple[float, ...]
    send_seconds: tuple[float, ...]


Task = tuple[bool, int, int]
"""(is forward, part of the model, micro-batch)"""


# A full pipeline repeats itself, uneven stages over several rounds: beyond so many micro-batches per stage the rest is
# extrapolated from the second half.
SIMULATED_ROUNDS = 8


def stage_ends(work: MicroBatchWork, stages: int, micro_batches: int, schedule: str) -> tuple[float, ...]:
    """When each stage has done all its micro-batches.

    Of very many, two smaller numbers are simulated: in between and beyond, the ends grow by the same for each.
    """
    if schedule == SERIAL:
        alone = sum(work.forward_seconds) + sum(work.backward_seconds) + 2 * sum(work.send_seconds)
        return (micro_batches * alone,) * stages
    most = SIMULATED_ROUNDS * stages
    if micro_batches <= most:
        return _simulated(work, stages, micro_batches, schedule)
    _rounds(stages, len(work.forward_seconds) // stages, micro_batches)  # refuses what the schedule cannot run
    fewer = _simulated(work, stages, most // 2, schedule)
    more = _simulated(work, stages, most, schedule)
    beyond = 2 * (micro_batches - most) / most
    return tuple(many + beyond * (many - few) for few, many in zip(fewer, more, strict=True))


def _simulated(work: MicroBatchWork, stages: int, micro_batches: int, schedule: str) -> tuple[float, ...]:
    parts = len(work.forward_seconds)
    last = parts - 1
    orders = [order(stage, stages, parts // stages, micro_batches, schedule) for stage in range(stages)]
    unknown = -1.0
    forward, backward = ([[unknown] * micro_batches for _ in range(parts)] for _ in range(2))
    free, cursor = [0.0] * stages, [0] * stages
    # A stage runs until it needs a result that is not there yet; then the stage that makes it goes on.
    waiting = list(range(stages))
    while waiting:
        blocked, before = [], sum(cursor)
        for stage in waiting:
            tasks, place, now = orders[stage], cursor[stage], free[stage]
            while place < len(tasks):
                is_forward, part, micro = tasks[place]
                if is_forward:
                    ready = forward[part - 1][micro] if part else 0.0
                    sent = work.send_seconds[part - 1] if part else 0.0
                else:
                    ready = forward[part][micro] if part == last else backward[part + 1][micro]
                    sent = 0.0 if part == last else work.send_seconds[part]
                if ready == unknown:
                    break
                ready += sent
                now = ready if ready > now else now
                if is_forward:
                    now += work.forward_seconds[part]
                    forward[part][micro] = now
                else:
                    now += work.backward_seconds[part]
                    backward[part][micro] = now
                place += 1
            cursor[stage], free[stage] = place, now
            if place < len(tasks):
                blocked.append(stage)
        assert sum(cursor) > before, "a pipeline schedule waits for itself"
        waiting = blocked
    return tuple(free)


def order(stage: int, stages: int, chunks: int, micro_batches: int, schedule: str) -> list[Task]:
    """The tasks of a stage, in the order it runs them."""
    forward = [(True, chunk * stages + stage, micro) for chunk, micro in _rounds(stages, chunks, micro_batches)]
    backward = [
        (False, (chunks - 1 - chunk) * stages + stage, micro) for chunk, micro in _rounds(stages, chunks, micro_batches)
    ]
    if schedule == "gpipe":
        return [*forward, *backward]
    early = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
    early = min(early, len(forward))
    tasks: list[Task] = list(forward[:early])
    for place, task in enumerate(forward[early:]):
        tasks += [task, backward[place]]
    return [*tasks, *backward[len(forward) - early :]]


def _rounds(stages: int, chunks: int, micro_batches: int) -> Sequence[tuple[int, int]]:
    """(chunk, micro-batch): with several chunks, as many micro-batches as stages go through each chunk in turn."""
    if chunks == 1:
        return [(0, micro) for micro in range(micro_batches)]
    if micro_batches % stages:
        raise BadInput(
            f"interleaved stages need micro-batches in multiples of {stages} (accumulate), got {micro_batches}"
        )
    return [
        (chunk, first + micro)
        for first in range(0, micro_batches, stages)
        for chunk in range(chunks)
        for micro in range(stages)
    ]
