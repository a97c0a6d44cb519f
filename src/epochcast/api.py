"""The verbs of the library, as the command line and notebooks call them.

An answer draws itself: `rich.print(answer)` and a notebook show the tables of the command line, `as_dict()` is the
object that `--json` prints.

>>> import epochcast as ec
>>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
>>> answer.global_batch, answer.trace.recipe.precision
(64, 'fp32')
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from epochcast.capture.inspection import Inspection, inspect_graph
from epochcast.capture.model import Model
from epochcast.capture.resolve import find_model
from epochcast.cost.calibrated import calibrated_device, with_profile
from epochcast.cost.model import CostModel
from epochcast.cost.registry import find_cost_model
from epochcast.errors import BadInput
from epochcast.forecast.job import Forecast, Schedule
from epochcast.forecast.placement import DEFAULT_OUTER_LINK, place
from epochcast.forecast.step import step_forecast
from epochcast.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_dataset
from epochcast.hardware.device import Device
from epochcast.memory.floor import memory_floor

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Forecast", "Inspection", "find_model", "forecast", "inspect"]


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
    precision: str = "fp32",
    optimizer: str = "sgd",
    mode: str = "training",
    augment: int = 1,
    accumulate: int = 1,
    freeze: Sequence[str] = (),
    attention: str = "flash",
    channels_last: bool = False,
    dollars_per_gpu_hour: float | None = None,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    cost_model: CostModel | None = None,
) -> Forecast:
    """How long a job takes, what it needs and what it costs. `batch` is per GPU, prices are dollars per GPU-hour."""
    if batch < 1:
        raise BadInput(f"batch must be at least 1, got {batch}")
    schedule = _schedule(dataset, samples, epochs, augment)
    placement = place(
        device, gpus=gpus, nodes=nodes, strategy=strategy, link=link, dollars_per_gpu_hour=dollars_per_gpu_hour
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
    )
    found: Model = find_model(model, input_shape, aux=aux)
    trace = found.trace(recipe)
    costing = cost_model or find_cost_model()
    own = replace(placement, device=calibrated_device(costing, placement.device))
    step = step_forecast(trace, own, with_profile(costing, placement.device))
    warnings = [*trace.notes]
    warnings.append("peak memory is the least the step can run in; allocator, workspaces and context come on top")
    if placement.assumes_outer_link:
        warnings.append(f"no --link given: boxes are taken to be joined by {DEFAULT_OUTER_LINK}")
    if trace.opaque:
        warnings.append(f"{len(trace.opaque)} kinds of op are unknown and costed by their bytes alone")
    if not placement.device.verified:
        warnings.append(f"data sheet of {placement.device.name} is recalled, not checked against the vendor's")
    return Forecast(trace, placement, schedule, step, memory_floor(trace), tuple(warnings))


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


def _rich(answer: Forecast | Inspection) -> "RenderableType":
    """How rich prints an answer."""
    from epochcast import render

    return render.forecast(answer) if isinstance(answer, Forecast) else render.inspection(answer)


def _html(answer: Forecast | Inspection) -> str:
    """How a notebook shows an answer."""
    from io import StringIO

    from rich.console import Console

    console = Console(width=120, record=True, file=StringIO(), highlight=False)
    console.print(_rich(answer))
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


# Answers are made far left of where they are drawn and know nothing of it; whoever has the verbs has the pictures.
for _kind in (Forecast, Inspection):
    setattr(_kind, "__rich__", _rich)  # noqa: B010  (a plain assignment would not pass the type check)
    setattr(_kind, "_repr_html_", _html)  # noqa: B010
