"""Answers as tables for a terminal. Numbers are scaled here and nowhere before."""

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from epochcast.capture.inspection import Inspection
from epochcast.forecast.explain import Share, by_class, by_layer
from epochcast.forecast.job import Forecast
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds

_PARTS = {
    "forward": "forward kernels",
    "backward": "backward kernels",
    "update": "optimizer kernels",
    "exposed_comm": "waiting for gradients",
    "exposed_input": "waiting for data",
    "host": "waiting for launches",
}


def table(
    title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]], caption: str | None = None
) -> Table:
    """A plain table; `columns` are (heading, justification)."""
    made = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        caption=caption,
        caption_justify="left",
    )
    for heading, justify in columns:
        made.add_column(heading, justify="right" if justify == "right" else "left", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def forecast(answer: Forecast, *, explain: bool = False) -> RenderableType:
    """The forecast of one job."""
    place, step = answer.placement, answer.step
    devices = f"{place.gpus} × {place.device.name}" if place.gpus > 1 else place.device.name
    where = f"{devices} in {place.nodes} boxes, {place.strategy}" if place.nodes > 1 else devices
    if place.gpus > 1 and place.nodes == 1:
        where = f"{devices}, {place.strategy}"
    rows = [("step", _seconds(step.seconds), f"{answer.samples_per_second:,.0f} samples/s")]
    if answer.epoch_seconds and answer.total_seconds:
        rows.append(("epoch", _seconds(answer.epoch_seconds), f"{answer.steps_per_epoch:,} steps"))
        rows.append(("job", _seconds(answer.total_seconds), f"{answer.schedule.epochs} epochs"))
    else:
        rows.append(("epoch, job", "unknown", "say how much data: --dataset NAME or --samples N"))
    peak, has = answer.memory.peak_bytes, place.device.memory_bytes
    verdict = "fits" if answer.fits else "DOES NOT FIT"
    rows.append(("memory", f"at least {show_bytes(peak)}", f"of {show_bytes(has)}: {verdict}"))
    if answer.dollars and place.dollars_per_hour is not None:
        rows.append(
            (
                "cost",
                _interval(answer.dollars, show_dollars),
                f"{show_dollars(place.dollars_per_hour)}/h, {place.price_source}",
            )
        )
    else:
        why = (
            "no list price known: --price DOLLARS_PER_GPU_HOUR"
            if place.dollars_per_hour is None
            else "needs the amount of data"
        )
        rows.append(("cost", "unknown", why))
    recipe = answer.trace.recipe
    batch = f"batch {answer.batch_per_gpu}" + (f" ({answer.global_batch} in all)" if place.gpus > 1 else "")
    title = f"{answer.trace.name} on {where} · {batch} · {recipe.precision} · {recipe.optimizer}"
    main = table(title, [("", "left"), ("90 % interval", "left"), ("", "left")], rows)
    parts = table(
        "one step",
        [("part", "left"), ("seconds", "right"), ("share", "right")],
        [(_PARTS[n], show_seconds(s), f"{s / step.seconds.mid:.0%}") for n, s in step.parts.as_dict().items() if s > 0],
    )
    answered = ", ".join(f"{name} {share:.0%}" for name, share in step.answered_by.items())
    pieces: list[RenderableType] = [main, parts, Text(f"answered by: {answered}", style="dim")]
    if explain:
        pieces += [
            _shares("where kernel time goes: by class of op", by_class(answer)),
            _shares("by layer", by_layer(answer)[:15]),
        ]
    if answer.trace.opaque:
        pieces.append(Text("not understood, costed by bytes: " + ", ".join(answer.trace.opaque), style="yellow"))
    pieces += [Text(f"note: {warning}", style="dim") for warning in answer.warnings]
    return Group(*pieces)


def _shares(title: str, shares: Iterable[Share]) -> Table:
    rows = [
        (s.name, show_seconds(s.seconds), f"{s.fraction:.1%}", show_count(s.flops, "FLOP"), show_bytes(s.bytes))
        for s in shares
    ]
    return table(
        title, [("", "left"), ("seconds", "right"), ("share", "right"), ("work", "right"), ("moved", "right")], rows
    )


def inspection(answer: Inspection) -> RenderableType:
    """The table of layers and the totals."""
    rows = [
        (
            layer.name,
            layer.kind,
            "×".join(map(str, layer.output_shape)) or "1",
            f"{layer.parameters:,}",
            f"{layer.activations:,}",
            show_count(layer.forward_flops, "FLOP") if layer.forward_flops else "",
            show_bytes(layer.bytes),
            "×".join(map(str, layer.receptive_field)) if layer.receptive_field else "",
        )
        for layer in answer.layers
    ]
    columns = [
        ("layer", "left"),
        ("kind", "left"),
        ("output", "left"),
        ("parameters", "right"),
        ("activations", "right"),
        ("matrix work", "right"),
        ("moved", "right"),
        ("sees", "right"),
    ]
    made = table(f"{answer.model}, one sample of {'×'.join(map(str, answer.input_shape))}", columns, rows)
    totals = table(
        "totals per sample",
        [("", "left"), ("", "right")],
        [
            ("parameters", f"{answer.parameters:,}"),
            ("trainable", f"{answer.trainable_parameters:,}"),
            ("activations", f"{answer.activations_per_sample:,}"),
            ("forward, matrix work", show_count(answer.forward_flops_per_sample, "FLOP")),
            ("forward, elementwise", show_count(answer.elementwise_flops_per_sample, "FLOP")),
            ("training step, matrix work", show_count(answer.training_flops_per_sample, "FLOP")),
        ],
        caption="a multiply-add is two FLOP",
    )
    pieces: list[RenderableType] = [made, totals]
    if answer.opaque_ops:
        pieces.append(Text("not understood: " + ", ".join(answer.opaque_ops), style="yellow"))
    pieces += [Text(f"note: {note}", style="dim") for note in answer.notes]
    return Group(*pieces)


def devices(rows: Iterable[Device]) -> Table:
    """The catalogue of devices."""
    columns = [
        ("device", "left"),
        ("generation", "left"),
        ("year", "right"),
        ("fp32", "right"),
        ("fp16", "right"),
        ("memory", "right"),
    ]
    columns += [("bandwidth", "right"), ("checked", "left")]
    return table(
        "devices",
        columns,
        [
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
        ],
        caption="dense peaks of the data sheet",
    )


def _seconds(interval: Interval) -> str:
    return _interval(interval, show_seconds)


def _interval(interval: Interval, show: Callable[[float], str]) -> str:
    return f"{show(interval.mid)}  ({show(interval.low)} … {show(interval.high)})"
