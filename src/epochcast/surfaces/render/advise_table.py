"""Advice: batch, workers, the bottleneck, and what else could be changed."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.decide.advise.advice import Advice, Alternative
from epochcast.decide.advise.batch_search import BatchChoice
from epochcast.decide.advise.thesis_rule import MEANINGS, Coefficients
from epochcast.measure.bench.memory_probe import ProbeAnswer
from epochcast.predict.forecast.job_data import Data
from epochcast.surfaces.render.answer_header import assumed, header, place
from epochcast.surfaces.render.memory_table import verdict_text
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, Cells, interval_cells, speed, table
from epochcast.units import show_bytes, show_seconds

_BOTTLENECKS = {
    "gpu": "the device's arithmetic and bandwidth",
    "gpu_memory": "the device's memory: a larger batch would be faster",
    "cpus": "processors: decoding cannot keep up",
    "disk": "the disk: reading cannot keep up",
    "host_memory": "the host's memory: no room for more workers",
    "workers": "loader workers",
    "copy": "copying to the device",
}


def advice(answer: Advice) -> RenderableType:
    """The answer as tables."""
    pieces: list[RenderableType] = [table(_title(answer), f"| > advised | {INTERVAL} |", _rows(answer))]
    pieces += assumed(answer.forecast)
    pieces.append(Text(f"bottleneck: {_BOTTLENECKS[answer.binding]}"))
    if answer.alternatives:
        unit = speed(0.0, answer.data.fed, answer.data.tokens_per_sample)[1]
        headings = f"change | > batch, safe | > batch | > workers | > step | > {unit} | > memory | > speed-up"
        rows = [_alternative(alternative, answer.data) for alternative in answer.alternatives]
        pieces += [
            Text(),
            table("what else could be changed", headings, rows, drop=("workers", "memory", "batch, safe")),
        ]
    if answer.thesis is not None:
        pieces += [Text(), _thesis(answer)]
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def probe(answer: ProbeAnswer) -> RenderableType:
    """The memory of two real steps."""
    measured = answer.probe.coefficients
    steps = zip(measured.batches, measured.memory_bytes, strict=True)
    memory = show_bytes(answer.memory_bytes)
    rows = [
        *((f"M at batch {batch}", show_bytes(memory_bytes), "measured") for batch, memory_bytes in steps),
        *_letter_rows(measured),
        ("B_m", f"{answer.max_batch:,}", f"(GPU_M − X) / (I + O + 2·Y) for {memory}"),
    ]
    return table(f"two real steps ({answer.probe.counter})", "| > | what it is", rows)


def loader(body: Mapping[str, object]) -> RenderableType:
    """The measurement of a loader; `body` is its JSON."""

    def seconds(key: str) -> str:
        value = body[key]
        return show_seconds(value) if isinstance(value, float) else "unknown"

    rows = [
        ("decode", seconds("decode_seconds"), "processor, per sample"),
        ("wait", seconds("wait_seconds"), f"per sample; samples vary by {body['variation']:.0%}"),
        ("collate", seconds("collate_seconds"), "per batch"),
        ("send", seconds("transfer_seconds"), "per batch, from a worker process"),
        ("receive", seconds("receive_seconds"), "per batch, by the training process"),
        ("one worker", seconds("worker_seconds"), f"for a batch of {body['batch']}"),
        ("idle processors", f"{body['idle_cpus']:.2g}", "on this host, now"),
    ]
    return table(f"loader: {body['name']}", "| > |", rows)


def _title(answer: Advice) -> str:
    forecast = answer.forecast
    strategy = [forecast.strategy] if forecast.gpus > 1 else []
    return header([place(forecast), *strategy], forecast)


def _rows(answer: Advice) -> Cells:
    max_batch, placement = answer.max_batch, answer.problem.placement
    yield (
        "largest batch",
        f"{max_batch.safe:,}",
        "",
        f"safe; {max_batch.expected:,} expected, {max_batch.limit:,} at the limit",
    )
    of_memory = f"of {show_bytes(placement.device.memory_bytes)}" + (" on each GPU" if placement.gpus > 1 else "")
    if answer.solution is None:
        yield (
            "memory",
            *interval_cells(answer.peak_bytes, show_bytes),
            f"{of_memory}: {verdict_text(answer.forecast)} at batch 1",
        )
        for remedy in answer.remedies:
            peak = interval_cells(remedy.peak_bytes, show_bytes)
            yield "would fit", *peak, f"{remedy.change}: {remedy.value} ({remedy.effort})"
        return
    choice, fastest = answer.solution.smallest, answer.solution.fastest
    total = f"{choice.batch * placement.replicas:,} in total; " if placement.gpus > 1 else ""
    yield "batch per GPU" if total else "batch", f"{choice.batch:,}", "", f"{total}{_batch_remark(choice, fastest)}"
    workers = f"{choice.feed.workers * answer.problem.ranks} per node; " if answer.problem.ranks > 1 else ""
    prefetch = f"prefetch {choice.feed.prefetch}" if choice.feed.workers else "loaded by the training process"
    yield "workers", f"{choice.feed.workers}", "", f"{workers}{prefetch}"
    data = answer.data
    throughput = speed(placement.replicas * choice.samples_per_second, data.fed, data.tokens_per_sample)
    yield "step", *interval_cells(choice.step.seconds, show_seconds), " ".join(throughput)
    wait = show_seconds(choice.step.parts.exposed_input)
    yield "waiting for data", f"{choice.stall_fraction:.1%}", "", f"{wait} per step"
    yield "memory", *interval_cells(answer.peak_bytes, show_bytes), f"{of_memory}: {verdict_text(answer.forecast)}"
    host_bytes = answer.problem.host.memory_bytes
    of_host_memory = f"of {show_bytes(host_bytes)} per node" if host_bytes < float("inf") else "per node"
    yield "host memory", show_bytes(choice.feed.host_bytes), "", of_host_memory


def _batch_remark(choice: BatchChoice, fastest: BatchChoice) -> str:
    if choice.batch == fastest.batch:
        return "the fastest batch"
    loss = 1 - choice.samples_per_second / fastest.samples_per_second
    return f"{loss:.1%} slower than the fastest batch, {fastest.batch:,}"


def _alternative(alternative: Alternative, data: Data) -> tuple[str, ...]:
    choice = alternative.choice
    return (
        alternative.change,
        f"{alternative.max_batch.safe:,}",
        f"{choice.batch:,}",
        f"{choice.feed.workers}",
        show_seconds(choice.step.seconds.mid),
        speed(alternative.replicas * choice.samples_per_second, data.fed, data.tokens_per_sample)[0],
        show_bytes(alternative.peak_bytes.mid),
        "–" if alternative.speedup is None else f"{alternative.speedup:.2f}×",
    )


def _letter_rows(coefficients: Coefficients) -> list[tuple[str, str, str]]:
    values = coefficients.as_dict()
    return [(letter, show_bytes(values[letter]), meaning) for letter, meaning in MEANINGS.items()]


def _thesis(answer: Advice) -> RenderableType:
    rule = answer.thesis
    assert rule is not None
    rows = [
        ("largest batch", f"{rule.max_batch:,}", "(GPU_M − X) / (I + O + 2·Y)"),
        ("batch", f"{rule.batch:,}", "W·B·I < DRAM"),
        ("workers", f"{rule.workers}", "t_d ≤ t_g·W/N"),
        *_letter_rows(rule.coefficients),
    ]
    return table("by the rule of the thesis, over all GPUs of a node", "| > | by", rows)
