"""The same campaign on a Ray cluster: one actor per device, each question to a free device, rows as they arrive.

Two measurements never share a device, neither of this campaign nor of another one on the same cluster, because Ray
reserves resources: on CUDA an actor has one GPU, otherwise (and for collectives) all processors and GPUs of its node.
Nodes may join and leave.

A question whose worker is lost is measured again on another device, before all others. Where only the worker process
died and not its node, the question may be the cause: after `MOST_LOSSES` such losses its row says that it failed. Only
this process writes, and a question is on one device at a time, so no row is lost or written twice. Measurements that
still run when the budget is over are left for a resumed campaign.

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

from epochcast.errors import BadInput, MissingExtra
from epochcast.measure.bench import campaign
from epochcast.measure.bench.campaign import BenchQuestion, Engine
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.measure.bench.torch_device import device_type

Measure = Callable[[BenchQuestion], Measurement]
Slots = Callable[[str, Mapping[str, float]], "list[_Slot]"]

# Other campaigns may use all devices. This is how long to wait for the first free one.
FREE_SECONDS = 120.0
# How often to look for new nodes and for the end of the budget.
LOOK_SECONDS = 0.5
MOST_LOSSES = 3
CONNECT_SECONDS = 5.0
# How long an execution may run beyond the budget, as in the local engine.
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
    """An engine for `campaign.run` on the cluster at `address`; `whole_nodes` for questions that use a whole node."""
    ray = _connected(address)
    slots_of = _gpus if device_type(device) == "cuda" and not whole_nodes else _whole_node
    end = inf if budget_seconds is None else perf_counter() + budget_seconds
    try:
        yield lambda questions: _Campaign(ray, device, slots_of, measure, end).answers(questions)
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
    """Raise at once where nothing listens at the address; Ray would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (colon and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as problem:
        raise BadInput(f"no Ray cluster answers at {address!r}: {problem}") from None


# ---- devices ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slot:
    """A device of the cluster: its node, its number there, and the resources that its actor reserves."""

    node: str
    number: int
    cpus: float
    gpus: float


def _gpus(node: str, resources: Mapping[str, float]) -> list[_Slot]:
    """A slot per GPU, with processors to launch its kernels."""
    gpus = int(resources.get("GPU", 0))
    cpus = min(1.0, resources.get("CPU", 0) // max(1, gpus) or 0.01)
    return [_Slot(node, number, cpus, 1) for number in range(gpus)]


def _whole_node(node: str, resources: Mapping[str, float]) -> list[_Slot]:
    """One slot per node that has processors, with all of its resources."""
    cpus = int(resources.get("CPU", 0))
    return [_Slot(node, 0, cpus, resources.get("GPU", 0))] if cpus else []


class _Device:
    """The actor that runs on a device."""

    def __init__(self, measure: Measure, node: str) -> None:
        self._measure, self._node = measure, node

    def machine(self) -> MeasuredMachine:
        """The host, without facts of a framework; answered once the actor has its device."""
        return machine()

    def answer(self, question: BenchQuestion) -> Measurement:
        """The row, with the node it was measured on."""
        row = self._measure(question)
        return replace(row, details={**row.details, "node": self._node})


# ---- the campaign -------------------------------------------------------------------------------


@dataclass
class _Campaign:
    """One campaign: its devices, the questions under way, and those to repeat."""

    ray: Any
    device: str
    slots_of: Slots
    measure: Measure
    end: float
    actors: dict[_Slot, Any] = field(default_factory=dict)
    machines: dict[_Slot, MeasuredMachine] = field(default_factory=dict)
    idle: deque[_Slot] = field(default_factory=deque)
    starting: dict[Any, _Slot] = field(default_factory=dict)
    running: dict[Any, tuple[_Slot, BenchQuestion]] = field(default_factory=dict)
    to_repeat: deque[BenchQuestion] = field(default_factory=deque)
    losses: Counter[str] = field(default_factory=Counter)
    excluded: dict[_Slot, str] = field(default_factory=dict)

    def answers(self, questions: Iterable[BenchQuestion]) -> Iterator[Measurement]:
        """Rows, in the order in which they arrive."""
        left = iter(questions)
        busy_until = perf_counter()
        try:
            while perf_counter() < self.end + GRACE_SECONDS:
                self._start_actors()
                has_more = self._start_questions(left)
                if not has_more and not self.running:
                    return
                if self.running:
                    busy_until = perf_counter()
                elif perf_counter() > self.end:
                    return
                elif perf_counter() - busy_until > FREE_SECONDS or (self.excluded and not self.starting):
                    raise BadInput(self._no_device_message())
                yield from self._arrived_rows()
        finally:
            for actor in self.actors.values():
                self.ray.kill(actor)

    def _start_actors(self) -> None:
        """An actor for every device that has none yet."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        for node, resources in self._nodes().items():
            for slot in self.slots_of(node, resources):
                if slot in self.actors or slot in self.excluded:
                    continue
                kind = self.ray.remote(_Device).options(
                    num_cpus=slot.cpus, num_gpus=slot.gpus, scheduling_strategy=strategy(node, soft=False)
                )
                self.actors[slot] = kind.remote(self.measure, node)
                self.starting[self.actors[slot].machine.remote()] = slot

    def _nodes(self) -> dict[str, Mapping[str, float]]:
        return {node["NodeID"]: node["Resources"] for node in self.ray.nodes() if node["Alive"]}

    def _start_questions(self, left: Iterator[BenchQuestion]) -> bool:
        """Give each idle device a question. Returns whether there may be more questions."""
        if perf_counter() > self.end:
            self.to_repeat.clear()
        while self.idle:
            question = self.to_repeat.popleft() if self.to_repeat else next(left, None)
            if question is None:
                return False
            slot = self.idle.popleft()
            self.running[self.actors[slot].answer.remote(question)] = (slot, question)
        return True

    def _arrived_rows(self) -> Iterator[Measurement]:
        """The rows that arrive within `LOOK_SECONDS`."""
        pending = [*self.starting, *self.running]
        if not pending:
            sleep(LOOK_SECONDS)
            return
        for reference in self.ray.wait(pending, timeout=LOOK_SECONDS)[0]:
            if reference in self.starting:
                self._started(reference, self.starting.pop(reference))
            else:
                slot, question = self.running.pop(reference)
                row = self._row(reference, slot, question)
                if row is not None:
                    yield row

    def _started(self, reference: Any, slot: _Slot) -> None:
        try:
            self.machines[slot] = self.ray.get(reference)
        except self.ray.exceptions.RayError as problem:
            self._exclude(slot, _line(problem))
        else:
            self.idle.append(slot)

    def _row(self, reference: Any, slot: _Slot, question: BenchQuestion) -> Measurement | None:
        """The row; None where the question has to be repeated."""
        try:
            row: Measurement = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as problem:
            # A configuration that fails is a row. This is a node that cannot measure: no torch, an old version.
            self._exclude(slot, _line(problem))
        except self.ray.exceptions.RayError as problem:
            self._stop(slot)
            if slot.node in self._nodes():
                self.losses[question.key] += 1
            if self.losses[question.key] == MOST_LOSSES:
                failed = f"unsupported: its worker process died {MOST_LOSSES} times: {_line(problem)}"[:300]
                return Measurement(question.kind, question.key, self.machines[slot], question.ask, failed=failed)
        else:
            self.idle.append(slot)
            return row
        self.to_repeat.append(question)
        return None

    def _exclude(self, slot: _Slot, reason: str) -> None:
        self.excluded[slot] = reason
        self._stop(slot)

    def _stop(self, slot: _Slot) -> None:
        self.ray.kill(self.actors.pop(slot))

    def _no_device_message(self) -> str:
        if self.excluded:
            return f"no node of the Ray cluster can measure: {next(iter(self.excluded.values()))}"
        if self.starting:
            return f"all {len(self.starting)} devices of the Ray cluster were in use for {FREE_SECONDS:.0f} s"
        return f"the Ray cluster has no device of kind {self.device}"


def _line(problem: BaseException) -> str:
    """The last line of Ray's message, which is the error on the node."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if lines else type(problem).__name__
