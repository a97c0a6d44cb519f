"""Trainings on this machine's processor with a fault of known cause: what they logged, for `studies check`.

    python -m studies.check.fault_trainings      writes studies/check/trainings.jsonl

Steps without a fault and steps with it take turns. The median of those without is the reference: what a user measures
where the job runs well, and passes as `--step-seconds`. The others are logged in the lines of PyTorch's ImageNet
example. A step is timed by the processor time that it takes, and its waiting by the clock, so that it does not count
what else the machine computes.

    none            as the reference
    data loading    every batch is fetched by a loader that sleeps
    accumulation    the step holds four passes, and the job is described with one
    accumulation bar    one of four passes is reported as a step, and the job is described with four
    pauses          the process is stopped (SIGSTOP) now and then, in lines as `ec.track` records them
    compilation     compiled by torch.compile, and described as eager; and the other way round
    slow rank       two processes exchange gradients, and one of them has more to do
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from epochcast.describe.graph.recipe import Recipe
from epochcast.measure.bench.bench_networks import find_network
from epochcast.measure.bench.torch_step import TorchStep

TRAININGS = Path(__file__).with_name("trainings.jsonl")
NETWORKS = (
    ("mnist_cnn", 16, None),
    ("squeezenet1_1", 2, (3, 64, 64)),
    ("mobilenet_v2", 2, (3, 64, 64)),
)
RANKED = ("squeezenet1_1", 8, (3, 64, 64))
COMPILED = ("mnist_cnn", 16, None)
STEPS, WARM_UP, PASSES = 30, 3, 4
SLOW_LOADER, SLOW_RANK = 1.5, 1.2
"""Seconds that the loader sleeps, and that the slow rank computes longer, in reference steps."""
STOPS, STOPPED_SECONDS = 2, 1.0
"""How often the process is stopped, and for how long each time."""


@dataclass(frozen=True, slots=True)
class FaultTraining:
    """One training: its network and batch, the fault, the step without it, and the lines that it logged."""

    model: str
    batch: int
    input_shape: tuple[int, ...] | None
    fault: str
    reference_seconds: float
    log: str
    options: dict[str, Any]


def main() -> int:
    """Train everything, and write what was logged."""
    torch.set_num_threads(1)
    with TRAININGS.open("w", encoding="utf-8") as out:
        for row in _rows():
            out.write(f"{json.dumps(asdict(row))}\n")
            out.flush()
    return 0


def _rows() -> Iterator[FaultTraining]:
    for network in NETWORKS:
        yield from _trained(*network)
    yield from _compiled(*COMPILED)
    yield from _ranked(*RANKED)


def _compiled(name: str, batch: int, shape: tuple[int, ...] | None) -> Iterator[FaultTraining]:
    """The reference is a step of the job as it is described, the log that of the other."""
    eager, compiled = _step(name, batch, shape), _step(name, batch, shape, is_compiled=True)
    print(f"{name}: compilation", flush=True)
    yield FaultTraining(name, batch, shape, "compilation", *_in_turn(eager, compiled), {})
    yield FaultTraining(name, batch, shape, "compilation", *_in_turn(compiled, eager), {"compile": "inductor"})


def _trained(name: str, batch: int, shape: tuple[int, ...] | None) -> Iterator[FaultTraining]:
    step = _step(name, batch, shape)

    def four_passes() -> None:
        for _ in range(PASSES):
            step()

    def row(fault: str, timed: tuple[float, str], **options: Any) -> FaultTraining:
        print(f"{name}: {fault}", flush=True)
        return FaultTraining(name, batch, shape, fault, timed[0], timed[1], options)

    yield row("none", _in_turn(step, step))
    yield row("data loading", _in_turn(step, step, sleeps=SLOW_LOADER))
    yield row("accumulation", _in_turn(step, four_passes))
    yield row("accumulation bar", _in_turn(step, step), accumulate=PASSES)
    yield row("none", _in_turn(step, step))
    yield row("pauses", _paused(step))


def _step(name: str, batch: int, shape: tuple[int, ...] | None, is_compiled: bool = False) -> TorchStep:
    step = TorchStep(find_network(name, shape), Recipe(batch=batch, optimizer="sgd"), "cpu")
    if is_compiled:
        step.module.compile()
    for _ in range(WARM_UP):
        step()
    return step


def _in_turn(plain: Callable[[], None], faulty: Callable[[], None], sleeps: float = 0.0) -> tuple[float, str]:
    """The median seconds of plain steps, and the log of the faulty ones between them."""
    seconds: list[float] = []
    timed: list[tuple[float, float]] = []
    for _ in range(STEPS):
        seconds.append(_timed(plain))
        waited = sleeps * median(seconds)
        time.sleep(waited)
        own = waited + _timed(faulty)
        timed.append((own, waited))
    return median(seconds), _log(timed)


def _log(timed: Sequence[tuple[float, float]]) -> str:
    """Lines of PyTorch's ImageNet example, with running means."""
    lines = []
    for number, (own, waited) in enumerate(timed):
        mean, mean_waited = (sum(each) / (number + 1) for each in zip(*timed[: number + 1], strict=True))
        place = f"Epoch: [0][{number}/{STEPS}]"
        lines.append(f"{place}\tTime {own:.6f} ({mean:.6f})\tData {waited:.6f} ({mean_waited:.6f})")
    return "\n".join(lines)


def _paused(step: Callable[[], None]) -> tuple[float, str]:
    """The median seconds of steps, and the log of others between which the process is stopped."""
    seconds: list[float] = []
    spans: list[float] = []
    every = STEPS // (STOPS + 1)
    for number in range(STEPS):
        seconds.append(_timed(step))
        stopped = _stopped() if number and number % every == 0 else 0.0
        spans.append(stopped + _timed(step))
    return median(seconds), _tracked(spans)


def _stopped() -> float:
    """Seconds by the clock for which this process was stopped; another one wakes it."""
    begin = time.perf_counter()
    with subprocess.Popen(["sh", "-c", f"sleep {STOPPED_SECONDS}; kill -CONT {os.getpid()}"]):
        os.kill(os.getpid(), signal.SIGSTOP)
    return time.perf_counter() - begin


def _timed(step: Callable[[], None]) -> float:
    """Seconds of processor time, of one thread."""
    begin = time.process_time()
    step()
    return time.process_time() - begin


def _tracked(spans: Sequence[float]) -> str:
    """What `ec.track` records of steps that take so long."""
    start = {"epochcast_track": 1, "job": "run", "attempt": 1, "at": 0.0, "start_step": 0, "rank": 0, "ranks": 1}
    lines = [json.dumps(start | {"total_steps": STEPS, "steps_per_epoch": STEPS})]
    for number, span in enumerate(spans, 1):
        at = round(sum(spans[:number]), 6)
        lines.append(json.dumps({"ec": "train", "step": number, "at": at, "steps": 1, "step_seconds": round(span, 6)}))
    return "\n".join(lines)


def _ranked(name: str, batch: int, shape: tuple[int, ...] | None) -> Iterator[FaultTraining]:
    """Two ranks, each of which logs its own time, that of exchanging gradients included."""
    for fault, slower in (("none", 0.0), ("slow rank", SLOW_RANK)):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [sys.executable, "-m", "studies.check.fault_trainings", name, str(batch), folder, str(slower)]
            ranks = [subprocess.Popen([*arguments, str(rank)]) for rank in (0, 1)]
            if any(rank.wait() for rank in ranks):
                raise RuntimeError("a rank failed")
            lines = [(Path(folder) / f"{rank}.log").read_text(encoding="utf-8").splitlines() for rank in (0, 1)]
        reference, *first = lines[0]
        log = "\n".join(line for pair in zip(first, lines[1][1:], strict=True) for line in pair)
        print(f"{name}: {fault} of two ranks", flush=True)
        yield FaultTraining(name, batch, shape, fault, float(reference), log, {"gpus": 2, "strategy": "ddp"})


def rank_main(name: str, batch: int, folder: Path, slower: float, rank: int) -> None:
    """One rank: its reference step in the first line of its log, then a line per step as GNMT writes them."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    step = _step(name, batch, RANKED[2])
    reference, _ = _in_turn(step, step)

    def exchange() -> None:
        for parameter in step.module.parameters():
            dist.all_reduce(parameter.grad)

    lines = [str(reference)]
    owns: list[float] = []
    for number in range(STEPS):
        own = _timed(step)
        if rank == 1:
            time.sleep(slower * reference)
            own += slower * reference
        own += _timed(exchange)
        mean = sum([*owns, own]) / (number + 1)
        owns.append(own)
        place = f"{rank}: TRAIN [0][{number}/{STEPS}]"
        lines.append(f"{place}\tTime {own:.6f} ({mean:.6f})\tData 1.0e-05 (1.0e-05)")
    (folder / f"{rank}.log").write_text("\n".join(lines), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        rank_main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
        sys.exit(0)
    sys.exit(main())
