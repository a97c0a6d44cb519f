"""The forecast of a job, and several side by side."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.forecasting.explain import Share, by_class, by_layer
from epochcast.forecasting.job import Forecast
from epochcast.render.memory import remedies
from epochcast.render.table import INTERVAL, Cells, interval_cells, rate, table
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds

LAYERS_EXPLAINED = 15

_PARTS = {
    "forward": "forward kernels",
    "backward": "backward kernels",
    "update": "optimizer kernels",
    "exposed_comm": "waiting for other GPUs",
    "exposed_input": "waiting for data",
    "host": "waiting for launches",
}


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
    if not answer.fits:
        pieces.append(remedies(answer))
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
    shares = "GPU" if place.replicas == place.gpus else f"{place.gpus // place.replicas} GPUs"
    said += (
        [f"batch {answer.batch_per_gpu} per {shares}, {answer.global_batch} in all", place.strategy.name]
        if place.gpus > 1
        else [f"batch {answer.batch_per_gpu}"]
    )
    said += [recipe.precision]
    said += [recipe.optimizer] if recipe.mode == "training" else [recipe.mode.replace("_", " and ") + " only"]
    if recipe.lora:
        said += [f"LoRA {recipe.lora}" + (" on four bits" if recipe.four_bit else "")]
    return " · ".join(said)


def _answers(answer: Forecast) -> Cells:
    """The rows of a forecast: what, expected, interval, remark."""
    place = answer.placement
    yield "step", *interval_cells(answer.step.seconds, show_seconds), f"{rate(answer.samples_per_second)} samples/s"
    if answer.epoch_seconds and answer.total_seconds:
        epochs = answer.schedule.epochs
        yield "epoch", *interval_cells(answer.epoch_seconds, show_seconds), f"{answer.steps_per_epoch:,} steps"
        yield "job", *interval_cells(answer.total_seconds, show_seconds), f"{epochs:,} epoch{'s' if epochs > 1 else ''}"
    else:
        yield "epoch, job", "unknown", "", "say how much data: --dataset NAME or --samples N"
    verdict = "fits" if answer.fits else "DOES NOT FIT"
    has = f"of {show_bytes(place.device.memory_bytes)}: {verdict}"
    yield "memory", *interval_cells(answer.memory.bytes, show_bytes), has
    if answer.dollars and place.dollars_per_hour is not None:
        price = f"{show_dollars(place.dollars_per_hour)}/h, {place.price_source}"
        yield "cost", *interval_cells(answer.dollars, show_dollars), price
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
                rate(answer.samples_per_second),
                *(interval_cells(total, show_seconds) if total else ("unknown", "")),
                show_bytes(answer.memory.bytes.mid),
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
