"""The forecast of a job, and several side by side."""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.text import Text

from epochcast.predict.forecast.device_doubts import UNMEASURED
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.loader_step import LEAST_WAIT
from epochcast.predict.forecast.step import HOST
from epochcast.predict.forecast.step_explain import Share, by_class, by_layer
from epochcast.predict.forecast.uncertainty import MEASURE, narrowed_width
from epochcast.surfaces.render.answer_header import assumed, header, place
from epochcast.surfaces.render.memory_table import remedies, verdict_text
from epochcast.surfaces.render.notes_view import Notes
from epochcast.surfaces.render.table_parts import INTERVAL, Cells, interval_cells, rate, speed, table
from epochcast.units import show_bytes, show_count, show_dollars, show_seconds, show_tokens

MOST_LAYERS = 15

_PARTS = {
    "forward": "forward kernels",
    "backward": "backward kernels",
    "update": "optimizer kernels",
    "exposed_comm": "waiting for other GPUs",
    "exposed_input": "waiting for data",
    "host": "waiting for launches",
}
_USUAL_COST_MODELS = "learned model"
"""Named by --explain alone: every other answer says what it is based on."""


def forecast(answer: Forecast, *, explain: bool = False) -> RenderableType:
    """The forecast of one job; `explain` adds where its time goes, by part of the step, class of op and layer."""
    pieces: list[RenderableType] = [table(_title(answer), f"| > expected | {INTERVAL} |", _rows(answer))]
    if explain:
        pieces.append(_step_parts(answer))
    pieces += assumed(answer)
    cost_models = _cost_models(answer)
    if explain or cost_models != _USUAL_COST_MODELS:
        pieces.append(Text(f"based on: {cost_models}", style="dim"))
    pieces += [Text(f"range {line}", style="dim") for line in _range(answer)]
    if explain or any(part.narrow_by for part in answer.peak_uncertainty):
        pieces += [Text(f"memory range {line}", style="dim") for line in _memory_range(answer)]
    if explain:
        layers = by_layer(answer)
        layers_text = f"the {MOST_LAYERS} heaviest layers of {len(layers)}" if len(layers) > MOST_LAYERS else "layers"
        pieces += [
            Text(),
            _shares("kernel time by class of op", by_class(answer)),
            _shares(f"kernel time of {layers_text}", layers[:MOST_LAYERS]),
        ]
    if answer.fits is False:
        pieces.append(remedies(answer))
    if answer.opaque_ops:
        pieces.append(Text("unknown ops, costed by their bytes: " + ", ".join(answer.opaque_ops), style="yellow"))
    pieces.append(Notes(answer.warnings))
    return Group(*pieces)


def _step_parts(answer: Forecast) -> RenderableType:
    """The parts that the expected step is the sum of."""
    seconds, parts = answer.step_seconds.mid, answer.as_dict()["step_parts"] or {}
    rows = [(_PARTS[name], show_seconds(part), f"{part / seconds:.0%}") for name, part in parts.items() if part > 0]
    return table("one step", "part | > time | > share", rows)


_UNCERTAIN = {
    "gpu": "the GPU",
    "framework": "the framework",
    "network": "this network's kernels",
    "setup": "how such jobs are run",
    "host": "the host",
    "communication": "communication",
    "input": "data loading",
}
# Intervals narrower than this are good enough to decide by; less of an interval is not worth a word.
WIDE, LEAST_SHARE = 1.3, 0.05


def _range(answer: Forecast) -> Iterable[str]:
    """How wide the interval of the step is, what from, and what would narrow it."""
    step, parts = answer.step_seconds, answer.uncertainty
    if not parts or not step.low > 0:
        return
    width = step.high / step.low
    shares = ", ".join(f"{part.share:.0%} from {_UNCERTAIN[part.part]}" for part in parts if part.share >= LEAST_SHARE)
    first = parts[0]
    launches = 0.0 if answer.step_parts is None else answer.step_parts.host
    is_launch_bound = first.part == HOST and launches > step.mid / 2
    narrowed = narrowed_width(width, parts, is_launch_bound=is_launch_bound)
    advice = ""
    if first.narrow_by and (first.narrow_by == MEASURE or is_launch_bound) and narrowed < width / 1.1:
        advice = f"; one measured step narrows it to {narrowed:.1f}×: {MEASURE} SECONDS@{answer.batch_per_gpu}"
        advice += f"; {first.narrow_by} narrows it, too" if is_launch_bound else ""
    elif first.narrow_by not in (MEASURE, "") and width > WIDE:
        advice = f"; {first.narrow_by} narrows it"
    yield f"{width:.1f}×: {shares}{advice}"


_UNCERTAIN_MEMORY = {
    "activations": "activations",
    "recomputation": "recomputed blocks",
    "quantised": "the quantised base",
    "fragmentation": "fragmentation",
    "context": "the context",
    "communication": "buffers of NCCL",
    "sharding": "sharding",
    "setup": "how such jobs are run",
    "assumed": "what was assumed",
}


def _memory_range(answer: Forecast) -> Iterable[str]:
    """How wide the interval of peak memory is, what from, and which options that nobody gave would narrow it."""
    peak, parts = answer.peak_bytes, answer.peak_uncertainty
    if peak is None or not parts or peak.high <= WIDE * peak.low:
        return
    shown = (part for part in parts if part.share >= LEAST_SHARE)
    shares = ", ".join(f"{part.share:.0%} from {_UNCERTAIN_MEMORY[part.part]}" for part in shown)
    advice = "".join(f"; {part.narrow_by} narrows it" for part in parts if part.narrow_by)
    yield f"{peak.high / peak.low:.1f}×: {shares}{advice}"


def _cost_models(answer: Forecast) -> str:
    """Which cost models answered, and what was measured of the device."""
    shares = answer.answered_by
    named = ", ".join(f"{name} model" + (f" {share:.0%}" if len(shares) > 1 else "") for name, share in shares.items())
    if "learned" in shares and answer.device_measured in UNMEASURED:
        named += f" ({UNMEASURED[answer.device_measured].words})"
    return named


def _title(answer: Forecast) -> str:
    holder = "GPU" if answer.replicas == answer.gpus else f"{answer.gpus // answer.replicas} GPUs"
    passes = f" in {answer.accumulate} passes" if answer.accumulate > 1 else ""
    words = (
        [f"batch {answer.batch_per_gpu} per {holder}{passes}, {answer.global_batch} in total", answer.strategy]
        if answer.gpus > 1
        else [f"batch {answer.batch_per_gpu}{passes}"]
    )
    return header([place(answer), *words], answer)


def _rows(answer: Forecast) -> Cells:
    """The rows of a forecast: quantity, expected, interval, remark."""
    yield "step", *interval_cells(answer.step_seconds, show_seconds), _speed(answer)
    waiting = answer.step_parts.exposed_input if answer.step_parts is not None else 0.0
    if waiting > LEAST_WAIT * answer.step_seconds.mid:
        alone = answer.step_seconds.mid - waiting
        value, unit = speed(answer.global_batch / alone, answer.fed, answer.tokens_per_sample)
        yield "  GPU alone", show_seconds(alone), "", f"{value} {unit} when data is loaded in time"
    if answer.tokens_per_second_per_gpu is not None and answer.mfu is not None:
        yield "MFU", *_utilisation(answer), f"{rate(answer.tokens_per_second_per_gpu)} tokens/s per GPU"
    if answer.epoch_seconds and answer.total_seconds:
        yield "epoch", *interval_cells(answer.epoch_seconds, show_seconds), f"{answer.steps_per_epoch:,} steps"
        yield "job", *interval_cells(answer.total_seconds, show_seconds), _amount(answer)
    else:
        hint = ", or tokens" if answer.tokens_per_sample else ""
        yield "epoch, job", "unknown", "", f"give a dataset or its samples{hint}"
    if answer.peak_bytes is not None:
        of_memory = f"of {show_bytes(answer.memory_bytes or 0)}: {verdict_text(answer)}"
        yield "memory", *interval_cells(answer.peak_bytes, show_bytes), of_memory
        if answer.reserved_bytes and answer.allocated_bytes:
            quoted = f"{show_bytes(answer.reserved_bytes)} reserved, {show_bytes(answer.allocated_bytes)} allocated"
            yield "", "", "", f"in nvidia-smi; {quoted}"
    if answer.host_bytes:
        yield "host memory", show_bytes(answer.host_bytes), "", "of each node, beside the data"
    if answer.dollars_per_hour is None:
        yield "cost", "unknown", "", "no list price known: give the price of a GPU-hour"
        return
    price = f"{show_dollars(answer.dollars_per_hour)}/h, {answer.price_source}"
    yield "cost", *(interval_cells(answer.dollars, show_dollars) if answer.dollars else ("unknown", "")), price


def _speed(answer: Forecast) -> str:
    value, unit = speed(answer.samples_per_second, answer.fed, answer.tokens_per_sample)
    return f"{value} {unit}" + (f" ({rate(answer.samples_per_second)} samples/s)" if unit == "tokens/s" else "")


def _utilisation(answer: Forecast) -> tuple[str, str]:
    """MFU, which is the lower the longer a step takes."""
    step, mfu = answer.step_seconds, answer.mfu or 0.0
    low, high = (mfu * step.mid / seconds for seconds in (step.high, step.low))
    return f"{mfu:.0%}", "" if step.low == step.high else f"{low:.0%} … {high:.0%}"


def _amount(answer: Forecast) -> str:
    """The epochs of a job, and its tokens."""
    epochs = f"{answer.epochs:,}" if isinstance(answer.epochs, int) else f"{answer.epochs:.3g}"
    words = f"{epochs} epoch{'s' if answer.epochs > 1 else ''}"
    return f"{words}, {show_tokens(answer.tokens)} tokens" if answer.tokens is not None else words


def choices(title: str, answers: Iterable[Forecast]) -> RenderableType:
    """Several forecasts of one job, a row each."""
    rows, unit = [], "samples/s"
    for answer in answers:
        total = answer.total_seconds
        value, unit = speed(answer.samples_per_second, answer.fed, answer.tokens_per_sample)
        rows.append(
            (
                answer.device if answer.gpus == 1 else f"{answer.gpus} × {answer.device}",
                answer.precision,
                f"{answer.batch_per_gpu:,}",
                value,
                *(interval_cells(total, show_seconds) if total else ("unknown", "")),
                show_bytes(answer.peak_bytes.mid) if answer.peak_bytes else "unknown",
                show_dollars(answer.dollars.mid) if answer.dollars else "unknown",
            )
        )
    columns = f"device | precision | > batch | > {unit} | > job | {INTERVAL} | > memory | > cost"
    return table(title, columns, rows, drop=("memory", "batch", unit))


def _shares(title: str, shares: Iterable[Share]) -> RenderableType:
    rows = [
        (s.name, show_seconds(s.seconds), f"{s.fraction:.1%}", show_count(s.flops, "FLOP"), show_bytes(s.bytes))
        for s in shares
    ]
    return table(title, "| > time | > share | > work | > moved", rows)
