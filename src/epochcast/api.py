"""The verbs of the library, as the command line and notebooks call them.

An answer draws itself: `rich.print(answer)` and a notebook show the tables of the command line, `as_dict()` is the
object that `--json` prints.

>>> import epochcast as ec
>>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
>>> answer.global_batch, answer.trace.recipe.precision
(64, 'fp32')
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.advising.advice import Advice, Question
from epochcast.advising.advice import advise as solve_advice
from epochcast.advising.assumed import host_of, service_of
from epochcast.capture.inspection import Inspection, inspect_graph
from epochcast.capture.model import Model
from epochcast.capture.resolve import find_model
from epochcast.cost.calibrated import calibrated_device, hints, model_in, with_profile
from epochcast.cost.model import CostModel
from epochcast.cost.registry import find_cost_model
from epochcast.errors import BadInput
from epochcast.forecasting.job import Forecast, Schedule
from epochcast.forecasting.keras_step import framework_step
from epochcast.forecasting.loader import PREFETCH, Service, feed_for, with_input
from epochcast.forecasting.placement import place
from epochcast.forecasting.rank_memory import rank_memory
from epochcast.forecasting.scaling import Case, Scaling, cases, scaled
from epochcast.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_dataset
from epochcast.hardware.device import Device
from epochcast.hardware.topology import GPUS_PER_NODE, find_topology, largest_box
from epochcast.memory.remedies import Remedy, would_fit
from epochcast.planning.answer import Plan, planned
from epochcast.planning.choice import Limits
from epochcast.planning.offers import OFFERED_GPUS, offers
from epochcast.planning.search import Job

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.fitting.local import Fitted

__all__ = [
    "Advice",
    "Forecast",
    "Inspection",
    "Plan",
    "Scaling",
    "advise",
    "find_model",
    "fit",
    "forecast",
    "inspect",
    "plan",
    "scaling",
]


def forecast(
    model: object,
    *,
    device: str | Device,
    batch: int,
    dataset: str | None = None,
    samples: int | None = None,
    epochs: int = 1,
    gpus: int = 1,
    nodes: int = 1,
    strategy: str | None = None,
    link: str | None = None,
    topology: str | None = None,
    allreduce: str | None = None,
    precision: str = "fp32",
    optimizer: str = "sgd",
    mode: str = "training",
    augment: int = 1,
    accumulate: int = 1,
    uneven: float = 0.0,
    freeze: Sequence[str] = (),
    attention: str = "flash",
    channels_last: bool = False,
    update_style: str = "foreach",
    checkpointing: bool = False,
    lora: int = 0,
    lora_targets: Sequence[str] = (),
    four_bit: bool = False,
    set_to_none: bool = True,
    framework: str = "pytorch",
    dollars_per_gpu_hour: float | None = None,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    loader_seconds: float | None = None,
    workers: int | None = None,
    prefetch: int = PREFETCH,
    cpus: float | None = None,
    profile: Path | None = None,
    cost_model: CostModel | None = None,
) -> Forecast:
    """How long a job takes, what it needs and what it costs. `batch` is per GPU, prices are dollars per GPU-hour.

    `loader_seconds` are those one worker needs for one sample; without them data is taken to be always there.
    `set_to_none` drops gradients between steps; without it they are zeroed and stay.
    `uneven` is by which fraction of its work one batch differs from the next: several GPUs wait for the largest.
    `lora` is the rank of the updates that are trained instead of the network, beside the layers whose last name is in
    `lora_targets`; `four_bit` keeps the frozen weights in four bits.
    """
    if batch < 1:
        raise BadInput(f"batch must be at least 1, got {batch}")
    schedule = _schedule(dataset, samples, epochs, augment)
    placement = place(
        device,
        gpus=gpus,
        nodes=nodes,
        strategy=strategy,
        link=link,
        topology=topology,
        allreduce=allreduce,
        dollars_per_gpu_hour=dollars_per_gpu_hour,
    )
    recipe = Recipe(
        batch * augment,
        optimizer=optimizer,
        precision=precision,
        mode=mode,
        freeze=tuple(freeze),
        attention=attention,
        channels_last=channels_last,
        accumulate=accumulate,
        uneven=uneven,
        update_style=update_style,
        checkpointing=checkpointing,
        lora=lora,
        lora_targets=tuple(lora_targets),
        four_bit=four_bit,
    )
    found: Model = find_model(model, input_shape, aux=aux)
    trace = found.trace(recipe)
    costing = model_in(profile, placement.device) if profile is not None else cost_model or find_cost_model()
    own = replace(placement, device=calibrated_device(costing, placement.device))
    step = framework_step(framework, trace, own, with_profile(costing, placement.device))
    warnings = [*trace.notes, *hints(costing, placement.device)]
    if loader_seconds is not None:
        service, _ = service_of(trace, loader_seconds)
        host, said = host_of(placement, cpus=cpus, memory_bytes=float("inf"))
        step = with_input(step, feed_for(trace, placement, service, host, workers=workers, prefetch=prefetch))
        warnings += said
    elif workers is not None or cpus is not None:
        raise BadInput("workers and cpus of a loader mean nothing without its speed: give --loader-seconds")
    if step.parts.bubble:
        share = step.parts.bubble / step.seconds.mid
        warnings.append(f"{share:.0%} of the step is a stage waiting for others (bubble)")
    if placement.nodes == 1 and topology is None and gpus > largest_box(placement.device.name):
        warnings.append(f"{gpus} GPUs are taken to be in one box, and no known box has so many: give --nodes")
    if placement.link_assumed is not None:
        warnings.append(f"no --link given: boxes are taken to be joined by {placement.link_assumed}")
    if trace.opaque:
        warnings.append(f"{len(trace.opaque)} kinds of op are unknown and costed by their bytes alone")
    if not placement.device.verified:
        warnings.append(f"data sheet of {placement.device.name} is recalled, not checked against the vendor's")
    allocator = "bfc" if framework == "tensorflow" else "caching"
    memory = rank_memory(trace, placement, set_to_none=set_to_none, allocator=allocator)

    def remedies() -> tuple[Remedy, ...]:
        return would_fit(found, recipe, placement.device, placement.strategy.memory_shares(trace, placement.gpus))

    return Forecast(trace, placement, schedule, step, memory, tuple(warnings), remedies)


def advise(
    model: object,
    *,
    device: str | Device,
    gpus: int = 1,
    nodes: int = 1,
    strategy: str | None = None,
    link: str | None = None,
    precision: str = "fp32",
    optimizer: str = "sgd",
    freeze: Sequence[str] = (),
    attention: str = "flash",
    channels_last: bool = False,
    dataset: str | None = None,
    cpus: float | None = None,
    host_memory_bytes: float | None = None,
    disk_bytes_per_second: float | None = None,
    loader_seconds: float | None = None,
    loader: Service | None = None,
    most_batch: int | None = None,
    with_thesis: bool = False,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    cost_model: CostModel | None = None,
) -> Advice:
    """Largest and best batch, loader workers and prefetch, and what binds; `cpus` and memory are those of one box.

    The loader is given by the seconds one worker needs for a sample, or as it was measured
    (`bench.loader.measure_loader(…).service()`).
    """
    placement = place(device, gpus=gpus, nodes=nodes, strategy=strategy, link=link)
    recipe = Recipe(
        1,
        optimizer=optimizer,
        precision=precision,
        freeze=tuple(freeze),
        attention=attention,
        channels_last=channels_last,
    )
    found: Model = find_model(model, input_shape, aux=aux)
    trace = found.trace(recipe)
    service, notes = (loader, ()) if loader is not None else service_of(trace, loader_seconds)
    host, said = host_of(
        placement, cpus=cpus, memory_bytes=host_memory_bytes, disk_bytes_per_second=disk_bytes_per_second
    )
    data = None if dataset is None else find_dataset(dataset)
    if data is not None and not service.stored_bytes:
        service = replace(service, stored_bytes=data.bytes_per_sample)
    data_bytes = 0.0 if data is None else data.training_samples * data.bytes_per_sample
    costing = cost_model or find_cost_model()
    question = Question(found, recipe, placement, costing, service, host, data_bytes, most_batch)
    return solve_advice(question, with_thesis=with_thesis, notes=(*notes, *said))


def scaling(
    model: object,
    *,
    device: str | Device,
    gpus: Sequence[int],
    batch: int,
    global_batch: int | None = None,
    regime: str = "weak",
    allreduce: Sequence[str] = (),
    strategy: str | None = None,
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    link: str | None = None,
    topology: str | None = None,
    accumulate: int = 1,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    progress: Callable[[int, int], None] | None = None,
    **job: Any,
) -> Scaling:
    """One job at several numbers of GPUs; `job` are options of `forecast`. `batch` is per GPU at the least number.

    A `link` joins the boxes; where all numbers fit in one box, its GPUs.
    """
    box = find_topology(topology).gpus if topology else GPUS_PER_NODE
    asked = cases(
        gpus,
        regime=regime,
        batch=batch,
        global_batch=global_batch,
        accumulate=accumulate,
        allreduce=allreduce,
        strategy=strategy,
        gpus_per_node=gpus_per_node or box,
        nodes=nodes,
    )
    found = find_model(model, input_shape, aux=aux)
    is_across = any(case.nodes > 1 for case in asked)

    def answer(case: Case) -> Forecast:
        return forecast(
            found,
            device=device,
            batch=case.batch,
            gpus=case.gpus,
            nodes=case.nodes,
            strategy=case.strategy.name,
            allreduce=case.allreduce,
            link=None if is_across and case.nodes == 1 else link,
            topology=topology,
            accumulate=accumulate,
            **job,
        )

    return scaled(asked, answer, progress)


def plan(
    model: object,
    *,
    dataset: str | None = None,
    samples: int | None = None,
    epochs: int = 1,
    batch: int | None = None,
    deadline_seconds: float | None = None,
    budget_dollars: float | None = None,
    clouds: Sequence[str] = (),
    devices: Sequence[str] = (),
    gpus: Sequence[int] = OFFERED_GPUS,
    strategies: Sequence[str] = (),
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    cost_model: CostModel | None = None,
    progress: Callable[[int, int], None] | None = None,
    **recipe: Any,
) -> Plan:
    """What to rent: every offer by time and cost, the frontier, and the one that a deadline or a budget picks.

    `batch` is the job's, over all GPUs; without it every GPU takes the largest power of two that it holds. `recipe` are
    fields of a `Recipe`: precision, optimizer, accumulate, freeze, checkpointing, …
    """
    limits = Limits(deadline_seconds, budget_dollars)
    rented = offers(gpus, clouds=clouds, devices=devices)
    schedule = _schedule(dataset, samples, epochs, augment=1)
    costing = cost_model or find_cost_model()
    job = Job(find_model(model, input_shape, aux=aux), Recipe(1, **recipe), schedule, costing, batch)
    return planned(job, rented, strategies, limits, progress)


def fit(measurements: Sequence[Path], *, progress: Callable[[float], None] | None = None) -> "Fitted":
    """The model of the device that files of `epochcast bench` measure; `cost_model=answer.model` forecasts with it."""
    from datetime import UTC, datetime

    from epochcast.fitting.local import fit_files

    return fit_files(measurements, date=datetime.now(UTC).date().isoformat(), progress=progress)


def inspect(
    model: object, *, input_shape: tuple[int, ...] | None = None, aux: bool = True, count_bias: bool = True
) -> Inspection:
    """What a model is made of, layer by layer."""
    return inspect_graph(find_model(model, input_shape, aux=aux), count_bias=count_bias)


def _schedule(dataset: str | None, samples: int | None, epochs: int, augment: int) -> Schedule:
    if dataset is None:
        return Schedule(samples, epochs, augment=augment)
    known = find_dataset(dataset)
    return Schedule(
        samples if samples is not None else known.training_samples,
        epochs,
        known.validation_samples if samples is None else 0,
        augment=augment,
        dataset=known.name,
    )


def _rich(answer: Forecast | Inspection | Advice | Scaling | Plan) -> "RenderableType":
    """How rich prints an answer."""
    from epochcast import render

    if isinstance(answer, Advice):
        return render.advice(answer)
    if isinstance(answer, Scaling):
        return render.scaling(answer)
    if isinstance(answer, Plan):
        return render.plan(answer)
    return render.forecast(answer) if isinstance(answer, Forecast) else render.inspection(answer)


def _html(answer: Forecast | Inspection | Advice | Scaling | Plan) -> str:
    """How a notebook shows an answer."""
    from io import StringIO

    from rich.console import Console

    console = Console(width=120, record=True, file=StringIO(), highlight=False)
    console.print(_rich(answer))
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


# Answers are made far left of where they are drawn and know nothing of it; whoever has the verbs has the pictures.
for _kind in (Forecast, Inspection, Advice, Scaling, Plan):
    setattr(_kind, "__rich__", _rich)  # noqa: B010  (a plain assignment would not pass the type check)
    setattr(_kind, "_repr_html_", _html)  # noqa: B010
