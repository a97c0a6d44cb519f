"""Answers to verbs: kept for a while, so that the same question is worked out once, or asked of a worker."""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epochcast.errors import BadInput
from epochcast.surfaces.web.api_verbs import PROJECT
from epochcast.surfaces.web.metrics import Metrics
from epochcast.surfaces.web.worker_pool import Workers

# Prices and calibrations change rarely; a server that is open all day sees them after this time.
KEPT_SECONDS = 300.0
MOST_KEPT_BYTES = 64 * 2**20


@dataclass(slots=True)
class AnswerCache:
    """Answers as the bytes that go out. Whoever asks while the same question is worked out waits for that answer."""

    workers: Workers
    seconds: float
    metrics: Metrics
    _answers: "OrderedDict[bytes, tuple[float, bytes]]" = field(default_factory=OrderedDict)
    _answer_bytes: int = 0
    _under_way: "dict[bytes, asyncio.Task[bytes]]" = field(default_factory=dict)

    async def answer(self, verb: str, options: Any, project: str | None, seconds: float | None = None) -> bytes:
        """The JSON text that answers a question; `seconds` is how long it may take, where not as usual."""
        if not isinstance(options, Mapping):
            raise BadInput(f"a {verb} is asked with an object of options, got {type(options).__name__}")
        question = {**options, PROJECT: project or ""}
        key = json.dumps([verb, question], sort_keys=True).encode()
        answer = self._answers.get(key)
        if answer is not None and time.monotonic() - answer[0] < KEPT_SECONDS:
            self._answers.move_to_end(key)
            self.metrics.answers.labels(verb, "kept").inc()
            return answer[1]
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._computed(verb, question, key, seconds or self.seconds))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._forget(key))
        return await asyncio.shield(task)

    async def _computed(self, verb: str, question: Mapping[str, Any], key: bytes, seconds: float) -> bytes:
        content = await self.workers.ask(verb, question, seconds)
        self.metrics.answers.labels(verb, "made").inc()
        self._keep(key, content)
        return content

    def _forget(self, key: bytes) -> None:
        self._under_way.pop(key, None)

    def _keep(self, key: bytes, content: bytes) -> None:
        if key in self._answers:
            self._answer_bytes -= len(key) + len(self._answers.pop(key)[1])
        self._answers[key] = time.monotonic(), content
        self._answer_bytes += len(key) + len(content)
        while self._answer_bytes > MOST_KEPT_BYTES:
            old, (_, gone) = self._answers.popitem(last=False)
            self._answer_bytes -= len(old) + len(gone)
