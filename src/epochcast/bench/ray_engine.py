"""The same campaign on a Ray cluster: one actor per device, questions to whoever is free, rows as they arrive.

A device is never shared by two measurements, of this campaign or of another one on the same cluster, because Ray gives
away its resources once: on CUDA an actor has one GPU, otherwise (and for collectives) all processors and GPUs of its
node. Nodes that join are used, those that leave are not.

A question whose worker is lost is asked again elsewhere, first in line. Where only the worker process died and not its
node, the question may be what killed it: after `MOST_LOSSES` such deaths it is answered as failed. Only this process
writes, and a question is in one place at a time, so no row is lost or doubled. When the budget is over, what still runs
is left for `--resume`.

Every node needs epochcast and the framework that is measured.
"""

import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from time import perf_counter, sleep
from typing import Any

from epochcast.bench import campaign
from epochcast.bench.campaign import Engine, Question
from epochcast.bench.fingerprint import machine
from epochcast.bench.measurements import Machine, Measurement
from epochcast.errors import BadInput, MissingExtra

Measure = Callable[[Question], Measurement]
Shares = Callable[[str, Mapping[str, float]], "list[_Place]"]

# Other campaigns may hold all devices; longer than this nobody waits for the first free one.
FREE_SECONDS = 120.0
# How long at most until joined nodes, and the end of the budget, are noticed.
LOOK_SECONDS = 0.5
MOST_LOSSES = 3
CONNECT_SECONDS = 5.0
# Beyond the budget an execution under way may end, as in the local engine.
GRACE_SECONDS = 10.0


@contextmanager
def fleet(
    address: str = "auto",
    device: str = "cpu",
    *,
    whole_nodes: bool = False,
    budget_seconds: float | None = None,
    measure: Measure = campaign.measure,
) -> Iterator[Engine]:
    """An engine for `campaign.run` on the cluster at `address`; `whole_nodes` for questions that use all of a node."""
    ray = _connected(address)
    shares = _gpus if device.startswith("cuda") and not whole_nodes else _whole_node
    end = inf if budget_seconds is None else perf_counter() + budget_seconds
    try:
        yield lambda questions: _Campaign(ray, device, shares, measure, end).answers(questions)
    finally:
        ray.shutdown()


def _connected(address: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtra("ray") from None
    if ray.is_initialized():
        raise BadInput("this process is connected to a Ray cluster already")
    _check_address(address)
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        line = str(problem).strip().partition("\n")[0]
        raise BadInput(f"no Ray cluster answers at {address!r}: {line}") from None
    return ray


def _check_address(address: str) -> None:
    """Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as problem:
        raise BadInput(f"no Ray cluster answers at {address!r}: {problem}") from None


# ---- devices ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """A device of the cluster: a node, which of its devices, and what an actor has to hold of it."""

    node: str
    number: int
    cpus: float
    gpus: float


def _gpus(node: str, resources: Mapping[str, float]) -> list[_Place]:
    """One place per GPU; the processors are there to launch kernels."""
    gpus = int(resources.get("GPU", 0))
    cpus = min(1.0, resources.get("CPU", 0) // max(1, gpus) or 0.01)
    return [_Place(node, number, cpus, 1) for number in range(gpus)]


def _whole_node(node: str, resources: Mapping[str, float]) -> list[_Place]:
    """One place per node that has processors, with everything that is in it."""
    cpus = int(resources.get("CPU", 0))
    return [_Place(node, 0, cpus, resources.get("GPU", 0))] if cpus else []


class _Device:
    """What runs there: the actor that holds the device."""

    def __init__(self, measure: Measure, node: str) -> None:
        self._measure, self._node = measure, node

    def machine(self) -> Machine:
        """The host, as it is known without any framework; answered once the actor has the device."""
        return machine()

    def answer(self, question: Question) -> Measurement:
        """The row, with the node it was measured on."""
        row = self._measure(question)
        return replace(row, details={**row.details, "node": self._node})


# ---- the campaign -------------------------------------------------------------------------------


@dataclass
class _Campaign:
    """One campaign: who is there, who is asked what, and what has to be asked again."""

    ray: Any
    device: str
    shares: Shares
    measure: Measure
    end: float
    actors: dict[_Place, Any] = field(default_factory=dict)
    machines: dict[_Place, Machine] = field(default_factory=dict)
    idle: deque[_Place] = field(default_factory=deque)
    starting: dict[Any, _Place] = field(default_factory=dict)
    asked: dict[Any, tuple[_Place, Question]] = field(default_factory=dict)
    again: deque[Question] = field(default_factory=deque)
    losses: Counter[str] = field(default_factory=Counter)
    refused: dict[_Place, str] = field(default_factory=dict)

    def answers(self, questions: Iterable[Question]) -> Iterator[Measurement]:
        """Rows, in the order in which they arrive."""
        left = iter(questions)
        busy_until = perf_counter()
        try:
            while perf_counter() < self.end + GRACE_SECONDS:
                self._start_new()
                has_more = self._hand_out(left)
                if not has_more and not self.asked:
                    return
                if self.asked:
                    busy_until = perf_counter()
                elif perf_counter() > self.end:
                    return
                elif perf_counter() - busy_until > FREE_SECONDS or (self.refused and not self.starting):
                    raise BadInput(self._why_nobody())
                yield from self._arrived()
        finally:
            for actor in self.actors.values():
                self.ray.kill(actor)

    def _start_new(self) -> None:
        """An actor for every device that has none yet."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for node, resources in self._nodes().items():
            for place in self.shares(node, resources):
                if place in self.actors or place in self.refused:
                    continue
                kind = self.ray.remote(_Device).options(
                    num_cpus=place.cpus, num_gpus=place.gpus, scheduling_strategy=strategy(node, soft=False)
                )
                self.actors[place] = kind.remote(self.measure, node)
                self.starting[self.actors[place].machine.remote()] = place

    def _nodes(self) -> dict[str, Mapping[str, float]]:
        return {node["NodeID"]: node["Resources"] for node in self.ray.nodes() if node["Alive"]}

    def _hand_out(self, left: Iterator[Question]) -> bool:
        """Ask whoever is idle; whether there may be more to ask."""
        if perf_counter() > self.end:
            self.again.clear()
        while self.idle:
            question = self.again.popleft() if self.again else next(left, None)
            if question is None:
                return False
            place = self.idle.popleft()
            self.asked[self.actors[place].answer.remote(question)] = (place, question)
        return True

    def _arrived(self) -> Iterator[Measurement]:
        """What arrives next, if anything does soon."""
        waited_for = [*self.starting, *self.asked]
        if not waited_for:
            sleep(LOOK_SECONDS)
            return
        for reference in self.ray.wait(waited_for, timeout=LOOK_SECONDS)[0]:
            if reference in self.starting:
                self._started(reference, self.starting.pop(reference))
            else:
                place, question = self.asked.pop(reference)
                row = self._row(reference, place, question)
                if row is not None:
                    yield row

    def _started(self, reference: Any, place: _Place) -> None:
        try:
            self.machines[place] = self.ray.get(reference)
        except self.ray.exceptions.RayError as problem:
            self._give_up(place, _line(problem))
        else:
            self.idle.append(place)

    def _row(self, reference: Any, place: _Place, question: Question) -> Measurement | None:
        """The answer; none where the question has to be asked again."""
        try:
            row: Measurement = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as problem:
            # What is wrong with a configuration is a row. This is a node that cannot measure: no torch, an old version.
            self._give_up(place, _line(problem))
        except self.ray.exceptions.RayError as problem:
            self._forget(place)
            if place.node in self._nodes():
                self.losses[question.key] += 1
            if self.losses[question.key] == MOST_LOSSES:
                failed = f"unsupported: its worker died {MOST_LOSSES} times: {_line(problem)}"[:300]
                return Measurement(question.kind, question.key, self.machines[place], question.ask, failed=failed)
        else:
            self.idle.append(place)
            return row
        self.again.append(question)
        return None

    def _give_up(self, place: _Place, reason: str) -> None:
        self.refused[place] = reason
        self._forget(place)

    def _forget(self, place: _Place) -> None:
        self.ray.kill(self.actors.pop(place))

    def _why_nobody(self) -> str:
        if self.refused:
            return f"no node of the Ray cluster can measure: {next(iter(self.refused.values()))}"
        if self.starting:
            return f"all {len(self.starting)} devices of the Ray cluster were in use for {FREE_SECONDS:.0f} s"
        return f"the Ray cluster has no device that is a {self.device}"


def _line(problem: BaseException) -> str:
    """The last line of what Ray says, which is what went wrong there."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if lines else type(problem).__name__
