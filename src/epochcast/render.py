"""Answers as tables for a terminal. Numbers are scaled here and nowhere before."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from epochcast.capture.comparison import QUANTITIES, Comparison
from epochcast.capture.inspection import Inspection
from epochcast.forecast.explain import Share, by_class, by_layer
from epochcast.forecast.job import Forecast
from epochcast.hardware.dataset import Dataset
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.link import Link
from epochcast.interval import COVERAGE, Interval
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds

Cells = Iterable[Sequence[str]]

LAYERS_EXPLAINED = 15
INTERVAL = f"{COVERAGE:.0%} interval".replace("%", " %")

_PARTS = {
    "forward": "forward kernels",
    "backward": "backward kernels",
    "update": "optimizer kernels",
    "exposed_comm": "waiting for gradients",
    "exposed_input": "waiting for data",
    "host": "waiting for launches",
}


def table(title: str, columns: str, rows: Cells, caption: str | None = None) -> RenderableType:
    """A plain table under its title. `columns` are headings between bars; one that begins with ">" is for numbers."""
    headings = [heading.strip() for heading in columns.split("|")]
    made = Table(box=box.SIMPLE_HEAD, show_header=any(heading.strip("> ") for heading in headings))
    for heading in headings:
        is_number = heading.startswith(">")
        made.add_column(
            heading.removeprefix(">").strip(),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
        )
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    # The table's own title and caption would be folded to its width.
    return Group(Text(title, style="bold"), made, *([] if caption is None else [Text(caption, style="dim")]))


def forecast(answer: Forecast, *, explain: bool = False) -> RenderableType:
    """The forecast of one job."""
    step = answer.step
    parts = table(
        "one step",
        "part | > time | > share",
        [(_PARTS[n], show_seconds(s), f"{s / step.seconds.mid:.0%}") for n, s in step.parts.as_dict().items() if s > 0],
    )
    answered = ", ".join(f"{name} {share:.0%}" for name, share in step.answered_by.items())
    main = table(_title(answer), f"| > expected | {INTERVAL} |", _answers(answer))
    pieces: list[RenderableType] = [main, parts, Text(f"answered by: {answered}", style="dim")]
    if explain:
        layers = by_layer(answer)
        heaviest = (
            f"the {LAYERS_EXPLAINED} heaviest layers of {len(layers)}" if len(layers) > LAYERS_EXPLAINED else "layers"
        )
        pieces += [
            Text(),
            _shares("kernel time by class of op", by_class(answer)),
            _shares(f"kernel time of {heaviest}", layers[:LAYERS_EXPLAINED]),
        ]
    if answer.trace.opaque:
        pieces.append(Text("not understood, costed by bytes: " + ", ".join(answer.trace.opaque), style="yellow"))
    pieces += [Text(f"note: {warning}", style="dim") for warning in answer.warnings]
    return Group(*pieces)


def _title(answer: Forecast) -> str:
    place, recipe = answer.placement, answer.trace.recipe
    where = place.device.name if place.gpus == 1 else f"{place.gpus} × {place.device.name}"
    if place.nodes > 1:
        where += f" in {place.nodes} boxes"
    said = [f"{answer.trace.name} on {where}"]
    said += (
        [f"batch {answer.batch_per_gpu} per GPU, {answer.global_batch} in all", place.strategy]
        if place.gpus > 1
        else [f"batch {answer.batch_per_gpu}"]
    )
    said += [recipe.precision]
    said += [recipe.optimizer] if recipe.mode == "training" else [recipe.mode.replace("_", " and ") + " only"]
    return " · ".join(said)


def _answers(answer: Forecast) -> Cells:
    """The rows of a forecast: what, expected, interval, remark."""
    place = answer.placement
    yield "step", *_interval(answer.step.seconds, show_seconds), f"{_rate(answer.samples_per_second)} samples/s"
    if answer.epoch_seconds and answer.total_seconds:
        epochs = answer.schedule.epochs
        yield "epoch", *_interval(answer.epoch_seconds, show_seconds), f"{answer.steps_per_epoch:,} steps"
        yield "job", *_interval(answer.total_seconds, show_seconds), f"{epochs:,} epoch{'s' if epochs > 1 else ''}"
    else:
        yield "epoch, job", "unknown", "", "say how much data: --dataset NAME or --samples N"
    verdict = "fits" if answer.fits else "DOES NOT FIT"
    has = f"of {show_bytes(place.device.memory_bytes)}: {verdict}"
    yield "memory", f"≥ {show_bytes(answer.memory.peak_bytes)}", "", has
    if answer.dollars and place.dollars_per_hour is not None:
        price = f"{show_dollars(place.dollars_per_hour)}/h, {place.price_source}"
        yield "cost", *_interval(answer.dollars, show_dollars), price
    elif place.dollars_per_hour is None:
        yield "cost", "unknown", "", "no list price known: --price DOLLARS_PER_GPU_HOUR"
    else:
        yield "cost", "unknown", "", f"{show_dollars(place.dollars_per_hour)}/h, {place.price_source}"


def choices(title: str, answers: Iterable[Forecast]) -> RenderableType:
    """Several forecasts of one job, a row each."""
    rows = []
    for answer in answers:
        total, place = answer.total_seconds, answer.placement
        rows.append(
            (
                place.device.name if place.gpus == 1 else f"{place.gpus} × {place.device.name}",
                answer.trace.recipe.precision,
                f"{answer.batch_per_gpu:,}",
                _rate(answer.samples_per_second),
                *(_interval(total, show_seconds) if total else ("unknown", "")),
                f"≥ {show_bytes(answer.memory.peak_bytes)}",
                show_dollars(answer.dollars.mid) if answer.dollars else "unknown",
            )
        )
    return table(title, f"device | precision | > batch | > samples/s | > job | {INTERVAL} | > memory | > cost", rows)


def _shares(title: str, shares: Iterable[Share]) -> RenderableType:
    rows = [
        (s.name, show_seconds(s.seconds), f"{s.fraction:.1%}", show_count(s.flops, "FLOP"), show_bytes(s.bytes))
        for s in shares
    ]
    return table(title, "| > time | > share | > work | > moved", rows)


@dataclass(frozen=True)
class Fitting:
    """Draws `wide` where there is room for it, otherwise `narrow`."""

    wide: RenderableType
    narrow: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        wanted = Measurement.get(console, options.update(width=10 * room), self.wide).maximum
        yield self.wide if wanted <= room else self.narrow


def inspection(answer: Inspection) -> RenderableType:
    """The table of layers and the totals."""
    has_fields = any(layer.receptive_field for layer in answer.layers)
    rows = [
        (
            layer.name,
            shape(layer.output_shape),
            f"{layer.parameters:,}",
            f"{layer.activations:,}",
            show_count(layer.forward_flops, "FLOP") if layer.forward_flops else "",
            layer.kind,
            show_bytes(layer.bytes),
            shape(layer.receptive_field or ()) if has_fields else "",
        )
        for layer in answer.layers
    ]
    title = f"{answer.model}, one sample of {shape(answer.input_shape)}"
    columns = "layer | output | > parameters | > activations | > matrix work"
    made = Fitting(
        table(title, f"{columns} | kind | > moved | > {'sees' if has_fields else ''}", rows),
        table(title, columns, [row[:5] for row in rows]),
    )
    flops = answer.forward_flops_per_sample
    totals = table(
        "totals per sample",
        "| > |",
        [
            ("parameters", f"{answer.parameters:,}", ""),
            ("trainable", f"{answer.trainable_parameters:,}", ""),
            ("activations", f"{answer.activations_per_sample:,}", ""),
            ("forward, matrix work", show_count(flops, "FLOP"), f"{flops // 2:,} multiply-adds of 2 FLOP"),
            ("forward, elementwise", show_count(answer.elementwise_flops_per_sample, "FLOP"), ""),
            ("training step, matrix work", show_count(answer.training_flops_per_sample, "FLOP"), ""),
        ],
    )
    pieces: list[RenderableType] = [made, totals]
    if answer.opaque_ops:
        pieces.append(Text("not understood: " + ", ".join(answer.opaque_ops), style="yellow"))
    pieces += [Text(f"note: {note}", style="dim") for note in answer.notes]
    return Group(*pieces)


def comparison(answer: Comparison) -> RenderableType:
    """Two models' totals and what the second saves."""
    one, other = answer.one, answer.other
    rows: list[Sequence[str]] = [("output", shape(one.output_shape), shape(other.output_shape), "", "")]
    for name, words in QUANTITIES.items():
        ratio, unit = answer.ratio(name), "FLOP" if "flops" in name else ""
        cells = [show_count(getattr(seen, name), unit) if unit else f"{getattr(seen, name):,}" for seen in (one, other)]
        rows.append((words, *cells, *(("", "") if ratio is None else (f"{ratio:.3f}", f"{ratio - 1:+.1%}"))))
    return table(f"{one.model} versus {other.model}", f"| > {one.model} | > {other.model} | > ratio | > change", rows)


def memory(answer: Forecast) -> RenderableType:
    """What the least memory of a training step holds."""
    held = answer.memory
    rows = [
        ("parameters", show_bytes(held.parameter_bytes)),
        ("gradients", show_bytes(held.gradient_bytes)),
        ("optimizer state", show_bytes(held.state_bytes)),
        ("activations and inputs", show_bytes(held.activation_bytes)),
        ("at least", show_bytes(held.peak_bytes)),
        (f"{answer.placement.device.name} has", show_bytes(answer.placement.device.memory_bytes)),
    ]
    verdict = "fits" if answer.fits else "DOES NOT FIT"
    return table(
        f"memory of a training step at batch {answer.batch_per_gpu}: {verdict}",
        "| >",
        rows,
        caption=f"at its peak, in {held.peak_op}; allocator, workspaces and context come on top",
    )


def models(rows: Iterable[Mapping[str, Any]]) -> RenderableType:
    """The zoo, with counts where they were made."""
    listed = list(rows)
    if not any("parameters" in row for row in listed):
        return table("models", "model | what it is", [(row["name"], row["title"]) for row in listed])
    cells = [
        (
            row["name"],
            row["title"],
            shape(row["input_shape"]),
            f"{row['parameters']:,}",
            show_count(row["forward_flops_per_sample"], "FLOP"),
        )
        for row in listed
    ]
    return table("models", "model | what it is | input | > parameters | > forward", cells)


def devices(rows: Iterable[Device]) -> RenderableType:
    """The catalogue of devices."""
    cells = [
        (
            d.name,
            d.generation,
            str(d.year),
            show_count(d.peak("fp32"), "FLOP/s"),
            show_count(d.peak("fp16"), "FLOP/s"),
            show_bytes(d.memory_bytes),
            show_count(d.memory_bytes_per_second, "B/s"),
            "yes" if d.verified else "recalled",
        )
        for d in rows
    ]
    columns = "device | generation | > year | > fp32 | > fp16 | > memory | > bandwidth | checked"
    return table("devices", columns, cells, caption="dense peaks of the data sheet")


def instances(rows: Iterable[Instance]) -> RenderableType:
    """The catalogue of instances."""
    cells = [
        (
            i.name,
            i.cloud,
            i.device,
            str(i.gpus),
            show_dollars(i.dollars_per_hour),
            str(i.cpus or "?"),
            show_bytes(i.host_memory_bytes) if i.host_memory_bytes else "?",
            i.priced_on,
        )
        for i in rows
    ]
    columns = "instance | cloud | device | > GPUs | > per hour | > CPUs | > memory | priced on"
    return table("instances", columns, cells, caption="on-demand list prices of the day named")


def datasets(rows: Iterable[Dataset]) -> RenderableType:
    """The catalogue of data sets."""
    cells = [
        (
            d.name,
            d.task,
            f"{d.training_samples:,}",
            f"{d.validation_samples:,}",
            shape(d.sample_shape),
            show_bytes(d.bytes_per_sample),
        )
        for d in rows
    ]
    return table("data sets", "data set | task | > training | > validation | sample | > on disk, each", cells)


def links(rows: Iterable[Link]) -> RenderableType:
    """The catalogue of links."""
    cells = [
        (
            link.name,
            show_count(link.bandwidth_bytes_per_second, "B/s"),
            show_seconds(link.latency_seconds),
            "yes" if link.verified else "recalled",
        )
        for link in rows
    ]
    return table("links", "link | > bandwidth | > latency | checked", cells, caption="nominal, in one direction")


def shape(sizes: Sequence[int]) -> str:
    """3×224×224; 1 for a scalar."""
    return "×".join(map(str, sizes)) or "1"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _interval(interval: Interval, show: Callable[[float], str]) -> tuple[str, str]:
    """The middle, and the ends where there are two."""
    if interval.low == interval.high:
        return show(interval.mid), ""
    return show(interval.mid), f"{show(interval.low)} … {show(interval.high)}"
