"""`epochcast bench ops`, `models`, `loader`, `collectives`: measure, row by row, into one file."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from epochcast.surfaces.cli.command_line import MEASURES, Json, command_group, show

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.measure.bench.campaign import BenchQuestion, Progress
    from epochcast.measure.bench.link_fit import LinkFit

bench = command_group(
    "bench",
    MEASURES,
    help="Measure this machine, or a fleet through Ray.",
    epilog="Example: epochcast bench ops --budget 5m --out here.jsonl",
)

Out = Annotated[Path, typer.Option(help="The measurement file (JSON lines); rows are appended.")]
Budget = Annotated[str | None, typer.Option(help="Stop after this time, like 5m.")]
Resume = Annotated[bool, typer.Option("--resume", help="Measure only what the file does not have yet.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps (default: the first GPU, else cpu).")]
Threads = Annotated[int | None, typer.Option(help="Threads on the processor (default: torch's own choice).")]
EngineName = Annotated[str, typer.Option("--engine", help="local, or ray: spread over a cluster.")]
Address = Annotated[str, typer.Option(help="Where the Ray cluster is.")]

DEFAULT_OUT = Path("measurements.jsonl")
ENGINES = ("local", "ray")
# What is left of a very short budget after start-up: at least one measurement is made.
SHORTEST_SECONDS = 1e-3


@bench.command(epilog="Example: epochcast bench ops --budget 5m --out here.jsonl --resume")
def ops(
    out: Out = DEFAULT_OUT,
    budget: Budget = "5m",
    resume: Resume = False,
    device: Device = None,
    threads: Threads = None,
    dtypes: Annotated[
        str | None, typer.Option(help="Like float32,bfloat16 (default: those that suit the device).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other shapes.")] = 0,
    layers: Annotated[
        bool, typer.Option("--layers", help="Whole layers instead of ops, each as it is trained in a network.")
    ] = False,
    as_in_report: Annotated[
        bool,
        typer.Option(
            "--as-in-report", help="Whole layers with trainable input and target, as the source report timed them."
        ),
    ] = False,
    engine: EngineName = "local",
    address: Address = "auto",
    as_json: Json = False,
) -> int:
    """Measure random, realistic operators, forward and backward, the most informative first."""
    from epochcast.measure.bench.torch_device import find_torch_device

    end = _end_of_budget(budget)
    where = find_torch_device(device, threads)
    if layers or as_in_report:
        from epochcast.measure.bench.layers_bench import questions as layer_questions

        questions = layer_questions(where, "report" if as_in_report else "network", seed=seed)
    else:
        from epochcast.measure.bench.ops_bench import find_dtypes
        from epochcast.measure.bench.ops_bench import questions as op_questions

        questions = op_questions(where, seed, dtypes=find_dtypes(dtypes))
    return _run(questions, out, where, end, resume, engine, address, as_json)


@bench.command(epilog="Example: epochcast bench models campaign.toml --out here.jsonl")
def models(
    campaign: Annotated[Path, typer.Argument(help="Models × batches × optimizers × precisions, in TOML.")],
    out: Out = DEFAULT_OUT,
    budget: Budget = None,
    resume: Resume = False,
    device: Device = None,
    threads: Threads = None,
    engine: EngineName = "local",
    address: Address = "auto",
    as_json: Json = False,
) -> int:
    """Measure training steps of the networks in a campaign file."""
    # Set before torch is imported: its profiler, which counts the memory of a step, writes to standard error otherwise.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    from epochcast.measure.bench.campaign_file import read_campaign
    from epochcast.measure.bench.torch_device import find_torch_device

    end = _end_of_budget(budget)
    where = device or "cpu"
    questions = read_campaign(campaign, where)
    if any(question.ask["backend"] == "torch" for question in questions):
        where = find_torch_device(device, threads)
        questions = read_campaign(campaign, where)
    return _run(questions, out, where, end, resume, engine, address, as_json)


@bench.command(epilog="Example: epochcast bench loader train.py:make_loader --out here.jsonl")
def loader(
    reference: Annotated[str, typer.Argument(help="file.py:make_loader (default: generated JPEG files).")] = "",
    batch: Annotated[int, typer.Option(help="Samples per batch of the generated files.")] = 32,
    out: Out = DEFAULT_OUT,
    budget: Budget = "20s",
    resume: Resume = False,
    as_json: Json = False,
) -> int:
    """Measure how long a data loader takes to decode, collate and send a batch."""
    from epochcast.errors import BadInput
    from epochcast.measure.bench.loader_rows import check_reference, question_of

    if batch < 1:
        raise BadInput(f"--batch must be at least 1, got {batch}")
    end = _end_of_budget(budget)
    if reference:
        check_reference(reference)
    question = question_of(reference, batch)
    return _run([question], out, "cpu", end, resume, "local", "", as_json, threads=1)


@bench.command(epilog="Example: epochcast bench collectives --ranks 2 --out here.jsonl")
def collectives(
    ranks: Annotated[int, typer.Option(help="Processes (GPUs with nccl) that take part.")] = 2,
    sizes: Annotated[str | None, typer.Option(help="Like 4KiB,1MiB,64MiB (default: 1 KiB to 64 MiB).")] = None,
    out: Out = DEFAULT_OUT,
    budget: Budget = "2m",
    resume: Resume = False,
    device: Device = None,
    engine: EngineName = "local",
    address: Address = "auto",
    as_json: Json = False,
) -> int:
    """Measure all-reduce, all-gather and reduce-scatter over sizes: gloo on CPUs, nccl on GPUs."""
    from epochcast.measure.bench.collectives_bench import SIZES_BYTES, questions
    from epochcast.measure.bench.torch_device import find_torch_device
    from epochcast.units import parse_bytes

    end = _end_of_budget(budget)
    where = find_torch_device(device)
    sizes_bytes = SIZES_BYTES if sizes is None else [parse_bytes(size) for size in sizes.split(",")]
    all_questions = questions(ranks, sizes_bytes, device=where)
    return _run(all_questions, out, where, end, resume, engine, address, as_json, threads=1)


def _end_of_budget(text: str | None) -> float | None:
    """When the budget ends, by `perf_counter`; it begins with the command."""
    from epochcast.errors import BadInput
    from epochcast.units import parse_seconds

    if text is None:
        return None
    seconds = parse_seconds(text, "--budget", unit="m")
    if seconds <= 0:
        raise BadInput(f"--budget must be more than zero, got {text}")
    return perf_counter() + seconds


def _run(
    questions: Sequence["BenchQuestion"],
    out: Path,
    device: str,
    end: float | None,
    resume: bool,
    engine: str,
    address: str,
    as_json: bool,
    threads: int | None = None,
) -> int:
    """Run the measurements with an engine, and show the result."""
    from epochcast.errors import UnknownName
    from epochcast.measure.bench.campaign import run
    from epochcast.measure.bench.machine_fingerprint import machine, torch_threads
    from epochcast.measure.bench.measurements import Appender, read

    if engine not in ENGINES:
        raise UnknownName("engine", engine, ENGINES)
    has_collectives = any(question.kind == "collective" for question in questions)
    with Appender(out) as appender, _groups(has_collectives and engine == "local"):
        for warning in appender.before.warnings:
            sys.stderr.write(f"epochcast: {warning}\n")
        where = machine(device, torch_threads() if threads is None else threads)
        budget_seconds = None if end is None else max(SHORTEST_SECONDS, end - perf_counter())
        with _progress_bar("measuring") as progress:
            if engine == "ray":
                from epochcast.measure.bench.ray_campaign import fleet

                with fleet(address, device, whole_nodes=has_collectives, budget_seconds=budget_seconds) as ray_engine:
                    report = run(
                        questions, appender, where, budget_seconds=budget_seconds, resume=resume, progress=progress,
                        engine=ray_engine,
                    )  # fmt: skip
            else:
                report = run(
                    questions, appender, where, budget_seconds=budget_seconds, resume=resume, progress=progress
                )
    keys = {question.key for question in questions}
    rows = [row for row in read(out).rows if row.key in keys]
    from epochcast.surfaces import render

    answer = {
        "out": str(out),
        "machine": {"id": where.id, **where.facts},
        "measured": report.measured,
        "failed": report.failed,
        "known": report.measured_before,
        "left": report.left,
        "seconds": report.seconds,
        "rows": [row.as_dict() for row in rows[-report.measured :]] if report.measured else [],
    }
    if has_collectives:
        from epochcast.measure.bench.link_fit import link_fits

        fits = link_fits(rows)
        answer["links"] = [fit.as_dict() for fit in fits]
        show(answer, as_json, lambda: _with_links(render.campaign(report, rows, str(out)), fits))
        return 0
    show(answer, as_json, lambda: render.campaign(report, rows, str(out)))
    return 0


def _with_links(campaign: "RenderableType", fits: "list[LinkFit]") -> "RenderableType":
    """The campaign, and below it the links fitted to it, if any."""
    from rich.console import Group

    from epochcast.surfaces.render import bench_table

    return Group(campaign, bench_table.link_fits(fits)) if fits else campaign


def _groups(is_needed: bool) -> AbstractContextManager[None]:
    if not is_needed:
        return nullcontext()
    from epochcast.measure.bench.collectives_bench import reused_groups

    return reused_groups()


@contextmanager
def _progress_bar(title: str) -> Iterator["Progress | None"]:
    """A progress bar on stderr with the remaining time; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[rows]} rows"),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, rows=0)
        yield lambda done, rows: bar.update(task, completed=done, rows=rows)
