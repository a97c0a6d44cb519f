"""`make bench`: the speed of epochcast itself, as ratios where possible, against the project's own limits.

    python -m benchmarks [--strict]

Prints only: figures of one machine are no part of the repository. With `--strict` a limit that is missed ends in exit
code 1. Each figure is the processor time of the best of several runs, so that a busy machine disturbs little; nothing
captured earlier is used.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochcast.describe.capture.model import Model


@dataclass(frozen=True)
class Figure:
    """One figure and its upper limit; `note` says how it is computed."""

    what: str
    value: float
    unit: str
    most: float
    note: str = ""

    @property
    def is_met(self) -> bool:
        return self.value <= self.most


def best(task: Callable[[], object], repeats: int = 5) -> float:
    """Processor seconds of the quickest of several runs, of this process and of those it starts."""

    def used() -> float:
        now = os.times()
        return now.user + now.system + now.children_user + now.children_system

    def once() -> float:
        start = used()
        task()
        return used() - start

    return min(once() for _ in range(repeats))


def figures() -> Iterator[Figure]:
    """Every figure, the quick ones first."""
    yield from start_up()
    yield from forecasting()
    yield from planning()
    yield from recording()
    yield from reading_logs()
    yield from capturing()
    yield from in_callbacks()


def start_up() -> Iterator[Figure]:
    """Whole processes, as a user starts them."""
    bare = max(0.01, best(lambda: _process("-c", "pass")))  # a clock tick at least
    helped = best(lambda: _process("-m", "epochcast", "--help"))
    forecast_seconds = best(
        lambda: _process("-m", "epochcast", "forecast", "resnet50", "--device", "V100", "--batch", "64")
    )
    yield Figure("epochcast --help", helped, "s", 0.3, f"{helped / bare:.1f} times an empty Python process")
    yield Figure(
        "first forecast of resnet50, with start-up", forecast_seconds, "s", 1.0, f"{forecast_seconds / bare:.1f} times"
    )


def storing() -> Iterator[Figure]:
    """Reports into the store; wall-clock time, because a server does much of it."""
    from benchmarks.storing import ROWS, rates

    for database, seconds, bare_seconds in rates():
        note = f"{ROWS / seconds:,.0f} a second; {seconds / bare_seconds:.2f} times a bare executemany"
        yield Figure(f"{ROWS:,} observations into {database}", seconds, "s", 1.0, note)


def forecasting() -> Iterator[Figure]:
    """Forecasts in one process."""
    import epochcast as ec
    from epochcast.api import find_model
    from epochcast.describe.graph.recipe import Recipe

    model = find_model("resnet50")
    batches = iter(range(2, 10_000))

    def another() -> object:
        return ec.forecast(model, device="V100", batch=next(batches), dataset="imagenet-1k", epochs=90)

    another()
    warm = best(lambda: [another() for _ in range(20)], 3) / 20
    yield Figure("forecast of resnet50, warm", warm * 1e3, "ms", 10)
    trace = model.trace(Recipe(64))
    rebatched = best(lambda: [trace.rebatch(next(batches)).columns for _ in range(500)], 3) / 500
    built = best(lambda: _rebuilt_resnet50().trace(Recipe(64)).columns, 3)
    yield Figure("resnet50 at another batch", rebatched * 1e3, "ms", 5)
    yield Figure(
        "the same against building it", rebatched / built, "of it", 0.05, f"building takes {built * 1e3:.0f} ms"
    )
    small = find_model("mnist_cnn")
    sweep = best(lambda: [ec.forecast(small, device="V100", batch=next(batches)) for _ in range(100)], 3)
    yield Figure("1,000 configurations of a small network", sweep * 10, "s", 1.0)

    def largest(nodes: int) -> object:
        _rebuilt_resnet50()
        return ec.forecast(
            "llama2_70b",
            device="H100",
            batch=1,
            precision="bf16",
            optimizer="adamw",
            accumulate=32,
            gpus=8 * nodes,
            nodes=nodes,
            strategy=f"dp{nodes // 4},tp8,pp4,zero1",
            topology="hgx_h100",
        )

    few, many = (best(partial(largest, nodes), 3) for nodes in (8, 1280))
    yield Figure("first forecast of llama2_70b on 10,240 GPUs", many, "s", 2.0, f"{many / few:.2f} times that on 64")


def _rebuilt_resnet50() -> "Model":
    """ResNet-50, built again by the zoo."""
    from epochcast.describe.capture.zoo import zoo_model

    zoo_model.cache.clear()
    return zoo_model("resnet50")


def planning() -> Iterator[Figure]:
    """Every offer of the catalogue, with the model traced and all other caches empty."""
    import epochcast as ec
    from epochcast.api import find_model

    for name in ("mnist_cnn", "resnet50"):
        plan = partial(ec.plan, find_model(name), dataset="imagenet-1k", batch=1024)
        configurations = plan().considered
        plan_seconds = best(plan, 3)
        yield Figure(
            f"1,000 configurations planned, {name}",
            1e3 * plan_seconds / configurations,
            "s",
            1.0,
            f"{configurations} in {plan_seconds:.2f} s",
        )
    line = "plan resnet50 --dataset imagenet-1k --epochs 90 --batch 256 --deadline 24h --json"
    cold = best(lambda: _process("-m", "epochcast", *line.split()), 3)
    yield Figure("epochcast plan of resnet50, with start-up", cold, "s", 1.5)
    yield from _plan_memory()


def _plan_memory() -> Iterator[Figure]:
    """What a configuration keeps: all of two variants against one, everything shared already made."""
    import tracemalloc

    import epochcast as ec
    from epochcast.api import find_model

    model, answers = find_model("mnist_cnn"), []
    plan = partial(ec.plan, model, dataset="mnist", batch=1024)
    answers.append(plan())
    tracemalloc.start()
    answers.append(plan())
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    each = kept / answers[-1].considered
    yield Figure(
        "memory of a planned configuration", each / 1024, "KiB", 16, f"{answers[-1].considered} configurations"
    )


def recording() -> Iterator[Figure]:
    """What `ec.track` adds to a step: as it is used, and where every step is written, its thread's work included."""
    import epochcast as ec

    many, some = 1_000_000, 9_000
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"

        def tracked() -> None:
            for _ in ec.track(range(many), to=file):
                pass

        def by_hand() -> None:
            with ec.track(total=many, to=file) as run:
                for _ in range(many):
                    run.step(loss=0.5)

        def each_written() -> None:
            with ec.track(total=some, to=file) as run:
                for _ in range(some):
                    run.step(loss=0.5)
                    run.settle()

        bare = best(lambda: [None for _ in range(many)], 3) / many
        for what, task, count in (
            ("a step in a tracked loop", tracked, many),
            ("a step told by hand", by_hand, many),
            ("a step that is written to a file", each_written, some),
        ):
            each = best(task, 3) / count - bare
            yield Figure(what, each * 1e6, "µs", 50, _against_tqdm(each, many))


def in_callbacks() -> Iterator[Figure]:
    """A step as the callback of each framework sees it; those that are installed."""
    from epochcast import callbacks

    many = 100_000
    nothing: Any = None
    state = SimpleNamespace(global_step=0, max_steps=many, num_train_epochs=1, is_world_process_zero=True)

    def keras(file: Path) -> None:
        callback = callbacks.KerasTracking(to=file)
        callback.set_params({"epochs": 1, "steps": many})
        callback.on_train_begin()
        callback.on_epoch_begin(0)
        for batch in range(many):
            callback.on_train_batch_end(batch, {"loss": 0.5})
        callback.on_train_end()

    def lightning(file: Path) -> None:
        callback = callbacks.LightningTracking(to=file)
        callback.run = callback.options.begin(total=many)
        for batch in range(many):
            callback.on_train_batch_start(nothing, nothing, nothing, batch)
            callback.on_train_batch_end(nothing, nothing, {"loss": 0.5}, nothing, batch)
        callback.on_train_end(nothing, nothing)

    def huggingface(file: Path) -> None:
        state.global_step = 0
        callback = callbacks.TrainerTracking(to=file)
        callback.on_train_begin(nothing, state, nothing)
        for _ in range(many):
            callback.on_step_begin(nothing, state, nothing)
            state.global_step += 1
            callback.on_step_end(nothing, state, nothing)
        callback.on_train_end(nothing, state, nothing)

    for package, task in (("keras", keras), ("lightning", lightning), ("transformers", huggingface)):
        if find_spec(package) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            task(Path(folder) / "first.jsonl")  # imports the framework
            each = best(partial(task, Path(folder) / "run.jsonl"), 3) / many
        yield Figure(f"a step in the callback of {package}", each * 1e6, "µs", 50)


def _against_tqdm(each_seconds: float, many: int) -> str:
    if find_spec("tqdm") is None:
        return ""
    from tqdm import tqdm

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        bar = best(lambda: [None for _ in tqdm(range(many), file=nowhere)], 3) / many
    return f"{each_seconds / bar:.1f} times what tqdm adds"


def reading_logs() -> Iterator[Figure]:
    """A megabyte of a long log: 50 MB/s are 20 ms."""
    from benchmarks.reading import real_speeds, speeds

    for name, speed, ratio in speeds():
        yield Figure(
            f"1 MB of log: {name}", 1e3 / speed, "ms", 20, f"{speed:.0f} MB/s, {ratio:.0f} times counting lines"
        )
    if real := sorted((speed, name) for name, speed, _ in real_speeds()):
        slow, name = real[0]
        note = f"{name}: {slow:.0f} MB/s; {sum(speed < 50 for speed, _ in real)} of {len(real)} below 50"
        yield Figure("1 MB of the slowest real log, repeated", 1e3 / slow, "ms", 20, note)


def capturing() -> Iterator[Figure]:
    """Needs torch and torchvision; without them nothing is reported."""
    if find_spec("torch") is None or find_spec("torchvision") is None:
        return
    from epochcast.describe.capture.torch import load_torch
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
    from epochcast.describe.graph.recipe import Recipe

    torchvision = import_torchvision()
    import torch

    load_torch("torchvision:resnet18").trace(Recipe(4))  # torch's own first-use costs are not ours
    captured = best(lambda: load_torch("torchvision:resnet50").trace(Recipe(64)), 2)
    network, images = torchvision.models.resnet50(weights=None).eval(), torch.zeros(1, 3, 224, 224)
    with torch.no_grad():
        eager = best(lambda: network(images), 3)
    yield Figure(
        "capture of torchvision's resnet50", captured, "s", 2.0, f"{captured / eager:.1f} forward passes of one image"
    )


def _process(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Times epochcast itself.")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a limit is missed")
    strict = parser.parse_args(arguments).strict
    os.environ["EPOCHCAST_CACHE"] = "off"
    missed = 0
    print(f"{'processor time of':44} {'value':>9}       {'limit':>7}")
    for figure in figures():
        mark = "" if figure.is_met else "  MISSED"
        missed += not figure.is_met
        line = f"{figure.what:44} {figure.value:9.3g} {figure.unit:5} {figure.most:7g}{mark}  {figure.note}"
        print(line.rstrip(), flush=True)
    return int(strict and missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
