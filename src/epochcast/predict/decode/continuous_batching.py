"""Continuous batching (Yu et al. 2022, Orca): a sequence that ends makes room for the next one at once.

`simulate` plays one engine: up to `slots` sequences run, prompts of admitted ones are computed first, then all running
sequences get a token per step until the next one ends. The last sequences run alone, at nearly the seconds per step of
a full batch, so the longest response sets when all are done. Between two ends the context grows by one token per
sequence and step; the step in the middle stands for all of them.

Sequences of one group (the generations of one prompt) share the prompt's computation and cache (prefix caching), where
the engine does that: `prompts_computed` is the part of prompts that is computed.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epochcast.errors import BadInput
from epochcast.predict.decode.decode_step import DecodeCost, DecodeParts, StepLoad


@dataclass(frozen=True, slots=True)
class BatchedRun:
    """What one engine did with its sequences.

    `seconds` is when the last one ended, `full_seconds` when the queue was empty and slots began to idle;
    `full_tokens` were generated until then. `request_seconds` are those of each sequence, from admission to its end.
    `peak_tokens` is the most that were cached at once.
    """

    seconds: float
    prompt_seconds: float
    full_seconds: float
    full_tokens: int
    tokens: int
    prompt_tokens: float
    request_seconds: tuple[float, ...]
    peak_tokens: int
    parts: DecodeParts

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens by the time of all of them, the tail included."""
        return self.tokens / self.seconds

    @property
    def steady_tokens_per_second(self) -> float:
        """While all slots were busy; of the whole run where they never were."""
        is_long = self.full_seconds > 0 and self.full_tokens > 0.25 * self.tokens
        return self.full_tokens / self.full_seconds if is_long else self.tokens_per_second


class _Engine:
    """The state of the simulation: a clock, and the running sequences by the step at which they end."""

    def __init__(self, cost: DecodeCost, prompt: int, prompts_computed: float) -> None:
        self.cost = cost
        self.prompt = prompt
        self.prompts_computed = prompts_computed
        self.seconds = 0.0
        self.prompt_seconds = 0.0
        self.steps = 0
        self.context = 0
        self.peak_tokens = 0
        self.parts = DecodeParts()
        self.ends: list[tuple[int, int, float]] = []

    def admit(self, lengths: Sequence[int]) -> None:
        """Compute the prompts of new sequences and let them run."""
        computed = len(lengths) * self.prompt * self.prompts_computed
        before = self.seconds
        if computed >= 1:
            # The head scores the last token of each prompt; a prompt step's engine time is counted with its tokens.
            parts = self.cost.step(StepLoad(0, 0, computed, self.prompt))
            self._pass(parts, 1.0)
            self.prompt_seconds += parts.seconds
        for length in lengths:
            heapq.heappush(self.ends, (self.steps + length, length, before))
            self.context += self.prompt
        self.peak_tokens = max(self.peak_tokens, self.context)

    def run_to_next_end(self) -> list[float]:
        """Steps until at least one sequence ends; the seconds that each of those took."""
        steps = self.ends[0][0] - self.steps
        running = len(self.ends)
        load = StepLoad(running, self.context + running * steps / 2)
        self._pass(self.cost.step(load), steps)
        self.steps += steps
        self.context += running * steps
        self.peak_tokens = max(self.peak_tokens, self.context)
        ended = []
        while self.ends and self.ends[0][0] <= self.steps:
            _, length, admitted = heapq.heappop(self.ends)
            self.context -= self.prompt + length
            ended.append(self.seconds - admitted)
        return ended

    def _pass(self, parts: DecodeParts, times: float) -> None:
        self.seconds += parts.seconds * times
        self.parts = self.parts.plus(parts, times)


def simulate(
    cost: DecodeCost, prompt: int, lengths: Sequence[int], slots: int, *, prompts_computed: float = 1.0
) -> BatchedRun:
    """One engine that generates responses of `lengths` to prompts of one length, `slots` at once."""
    if slots < 1 or not lengths:
        raise BadInput("an engine needs a slot and a response to generate")
    engine = _Engine(cost, prompt, prompts_computed)
    waiting = list(reversed([int(length) for length in lengths]))
    requests: list[float] = []
    full_seconds, full_tokens, done = 0.0, 0, 0
    while waiting or engine.ends:
        room = slots - len(engine.ends)
        if waiting and room > 0:
            engine.admit([waiting.pop() for _ in range(min(room, len(waiting)))])
        before = engine.steps
        running = len(engine.ends)
        requests += engine.run_to_next_end()
        done += running * (engine.steps - before)
        if waiting:
            full_seconds, full_tokens = engine.seconds, done
    tokens = int(np.sum(lengths))
    return BatchedRun(
        engine.seconds,
        engine.prompt_seconds,
        full_seconds,
        full_tokens,
        tokens,
        len(lengths) * prompt * prompts_computed,
        tuple(requests),
        engine.peak_tokens,
        engine.parts,
    )


def steady_tokens_per_second(cost: DecodeCost, prompt: float, response: float, sequences: float) -> float:
    """Of an engine that always has `sequences` running: each has generated half of its response, and a prompt joins for
    every response that ends.
    """
    load = StepLoad(sequences, sequences * (prompt + response / 2), sequences * prompt / response, prompt)
    return sequences / cost.step(load).seconds
