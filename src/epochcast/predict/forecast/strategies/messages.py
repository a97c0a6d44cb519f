"""Two streams and a wire: the host launches kernels, the device runs them in order, messages travel beside them.

    kernel i    starts when it was launched, kernel i-1 has ended and every message with `before` = i has arrived
    message     starts when kernel `after` has ended and its wire is free

Messages of a wire travel one after another in the order in which they become ready. This is the event simulation behind
every strategy: what a message hides behind kernels is not charged, what a kernel waits for is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.predict.forecast.streams import Seconds, kernel_ends


@dataclass(frozen=True, slots=True)
class Message:
    """A collective between two kernels: it may begin when kernel `after` has ended (-1: at once), and kernel `before`
    waits for it. A message that no kernel waits for has `before` = the number of kernels.
    """

    after: int
    before: int
    seconds: float
    wire: int = 0

    def __post_init__(self) -> None:
        if not -1 <= self.after < self.before:
            raise ValueError(f"a message must begin before it is waited for, got {self.after} and {self.before}")


def timeline(kernels: Seconds, launches: Seconds, messages: Sequence[Message]) -> tuple[Seconds, float]:
    """When each kernel ends, and when the last message has arrived."""
    if not messages:
        return kernel_ends(kernels, launches), 0.0
    queue = sorted(messages, key=lambda m: m.after)
    waited: dict[int, list[int]] = {}  # by kernel: the places in the queue of the messages it waits for
    for place, message in enumerate(queue):
        waited.setdefault(message.before, []).append(place)
    launched = np.cumsum(launches)
    ends = np.zeros(len(kernels))
    free: dict[int, float] = {}
    arrived = [0.0] * len(queue)
    sent = done = 0
    last_end = 0.0
    # Between two waits kernels run as if there were no messages.
    for stop in sorted({*(before for before in waited if before < len(kernels)), len(kernels)}):
        if stop > done:
            run = slice(done, stop)
            busy = np.cumsum(kernels[run])
            starts = np.maximum(np.maximum.accumulate(launched[run] - (busy - kernels[run])), last_end)
            ends[run] = busy + starts
            last_end, done = float(ends[stop - 1]), stop
        while sent < len(queue) and queue[sent].after < stop:
            message = queue[sent]
            ready = float(ends[message.after]) if message.after >= 0 else 0.0
            arrived[sent] = max(ready, free.get(message.wire, 0.0)) + message.seconds
            free[message.wire] = arrived[sent]
            sent += 1
        if stop < len(kernels):
            last_end = max(last_end, *(arrived[place] for place in waited[stop]))
    return ends, max(free.values(), default=0.0)


def pass_seconds(kernels: Seconds, launches: Seconds, messages: Sequence[Message]) -> float:
    """When kernels and messages are all done."""
    ends, wire = timeline(kernels, launches, messages)
    return max(float(ends[-1]) if len(ends) else 0.0, wire)
