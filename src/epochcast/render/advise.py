"""Advice: batch, workers, what binds, and what else could be done."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.advising.advice import Advice, Alternative
from epochcast.advising.search import Choice
from epochcast.advising.thesis import MEANINGS
from epochcast.render.table import INTERVAL, Cells, interval_cells, rate, table
from epochcast.units import show_bytes, show_seconds

_BINDING = {
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
    pieces.append(Text(f"what binds: {_BINDING[answer.binding]}"))
    if answer.alternatives:
        headings = "change | > batch, safe | > batch | > workers | > step | > samples/s | > memory | > speed-up"
        pieces += [Text(), table("what else could be done", headings, map(_alternative, answer.alternatives))]
    if answer.thesis is not None:
        pieces += [Text(), _thesis(answer)]
    pieces += [Text(f"note: {warning}", style="dim") for warning in answer.warnings]
    return Group(*pieces)


def probe(body: Mapping[str, object], memory_bytes: float) -> RenderableType:
    """What two real steps measured; `body` is its JSON."""
    batches, measured = body["batches"], body["measured_bytes"]
    assert isinstance(batches, list) and isinstance(measured, list)
    rows = [(f"M at batch {b}", show_bytes(m), "measured") for b, m in zip(batches, measured, strict=True)]
    rows += _letters(body)
    rows.append(("B_m", f"{body['max_batch']:,}", f"(GPU_M − X) / (I + O + 2·Y) for {show_bytes(memory_bytes)}"))
    return table(f"two real steps ({body['counter']})", "| > | what it is", rows)


def loader(body: Mapping[str, object]) -> RenderableType:
    """What was measured of a loader; `body` is its JSON."""

    def seconds(key: str) -> str:
        value = body[key]
        return show_seconds(value) if isinstance(value, float) else "unknown"

    rows = [
        ("decode", seconds("decode_seconds"), "processor, per sample"),
        ("wait", seconds("wait_seconds"), f"per sample; samples vary by {body['variation']:.0%}"),
        ("collate", seconds("collate_seconds"), "per batch"),
        ("hand over", seconds("transfer_seconds"), "per batch, from a worker process"),
        ("take", seconds("receive_seconds"), "per batch, by the training process"),
        ("one worker", seconds("worker_seconds"), f"for a batch of {body['batch']}"),
        ("idle processors", f"{body['idle_cpus']:.2g}", "here and now"),
    ]
    return table(f"loader: {body['name']}", "| > |", rows)


def _title(answer: Advice) -> str:
    place, recipe = answer.request.placement, answer.trace.recipe
    where = place.device.name if place.gpus == 1 else f"{place.gpus} × {place.device.name}, {place.strategy.name}"
    boxes = f" in {place.nodes} boxes" if place.nodes > 1 else ""
    return f"{answer.trace.name} on {where}{boxes} · {recipe.precision} · {recipe.optimizer}"


def _rows(answer: Advice) -> Cells:
    most, place = answer.max_batch, answer.request.placement
    yield "largest batch", f"{most.safe:,}", "", f"safe; {most.expected:,} expected, {most.limit:,} at the limit"
    has = f"of {show_bytes(place.device.memory_bytes)}" + (" on each GPU" if place.gpus > 1 else "")
    if answer.solution is None:
        yield "memory", *interval_cells(answer.peak_bytes, show_bytes), f"{has}: DOES NOT FIT at batch 1"
        for remedy in answer.remedies:
            fits = interval_cells(remedy.peak_bytes, show_bytes)
            yield "would fit", *fits, f"{remedy.change}: {remedy.value}"
        return
    choice, fastest = answer.solution.smallest, answer.solution.fastest
    every = f"{choice.batch * place.replicas:,} in all; " if place.gpus > 1 else ""
    yield "batch per GPU" if every else "batch", f"{choice.batch:,}", "", f"{every}{_why(choice, fastest)}"
    workers = f"{choice.feed.workers * answer.request.ranks} per box; " if answer.request.ranks > 1 else ""
    ahead = f"prefetch {choice.feed.prefetch}" if choice.feed.workers else "the training process loads"
    yield "workers", f"{choice.feed.workers}", "", f"{workers}{ahead}"
    speed = f"{rate(place.replicas * choice.samples_per_second)} samples/s"
    yield "step", *interval_cells(choice.step.seconds, show_seconds), speed
    waits = show_seconds(choice.step.parts.exposed_input)
    yield "waiting for data", f"{choice.stall_fraction:.1%}", "", f"{waits} of each step"
    yield "memory", *interval_cells(answer.peak_bytes, show_bytes), has
    limit = answer.request.host.memory_bytes
    known = f"of {show_bytes(limit)} per box" if limit < float("inf") else "per box"
    yield "host memory", show_bytes(choice.feed.host_bytes), "", known


def _why(choice: Choice, fastest: Choice) -> str:
    if choice.batch == fastest.batch:
        return "the fastest"
    loss = 1 - choice.samples_per_second / fastest.samples_per_second
    return f"{loss:.1%} slower than the fastest, {fastest.batch:,}"


def _alternative(other: Alternative) -> tuple[str, ...]:
    choice = other.choice
    return (
        other.change,
        f"{other.max_batch.safe:,}",
        f"{choice.batch:,}",
        f"{choice.feed.workers}",
        show_seconds(choice.step.seconds.mid),
        rate(other.replicas * choice.samples_per_second),
        show_bytes(other.peak_bytes.mid),
        "–" if other.speedup is None else f"{other.speedup:.2f}×",
    )


def _letters(body: Mapping[str, object]) -> list[tuple[str, str, str]]:
    values = {letter: body[letter] for letter in MEANINGS}
    return [(k, show_bytes(v), MEANINGS[k]) for k, v in values.items() if isinstance(v, int | float)]


def _thesis(answer: Advice) -> RenderableType:
    rule = answer.thesis
    assert rule is not None
    rows = [
        ("largest batch", f"{rule.max_batch:,}", "(GPU_M − X) / (I + O + 2·Y)"),
        ("batch", f"{rule.batch:,}", "W·B·I < DRAM"),
        ("workers", f"{rule.workers}", "t_d ≤ t_g·W/N"),
        *_letters(rule.coefficients.as_dict()),
    ]
    return table("by the thesis' rule, over all GPUs of a box", "| > | by", rows)
