"""The verbs of the library, as the command line and notebooks call them.

A job and where it runs are given by their options (`Job`, `Where`), or as values made before:

>>> import epochcast as ec
>>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
>>> job = ec.Job("resnet50", batch=64, dataset="imagenet-1k", epochs=90)
>>> ec.forecast(job, device="V100") == answer == ec.forecast(job, ec.place("V100"))
True

An answer draws itself: `rich.print(answer)` and a notebook show the tables of the command line, `as_dict()` is the
object that `--json` prints.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from epochcast.advising.advice import Advice, Question
from epochcast.advising.advice import advise as solve_advice
from epochcast.capture.inspection import Inspection, inspect_graph
from epochcast.capture.resolve import find_model
from epochcast.cost.model import CostModel
from epochcast.display import register_view
from epochcast.errors import BadInput
from epochcast.forecasting.assumed import host_of, service_of
from epochcast.forecasting.forecast import Forecast
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.job import JOB_OPTIONS, Job
from epochcast.forecasting.loader import Service
from epochcast.forecasting.options import check_names
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.scaling import Case, Scaling, cases, scaled
from epochcast.forecasting.session import Session
from epochcast.forecasting.where import PLACE_OPTIONS, Where
from epochcast.hardware.catalogue import find_dataset
from epochcast.hardware.topology import GPUS_PER_NODE, find_topology
from epochcast.planning.answer import Plan, planned
from epochcast.planning.choice import Limits
from epochcast.planning.offers import OFFERED_GPUS, offers

if TYPE_CHECKING:
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

Progress = Callable[[int, int], None]
Verb = TypeVar("Verb", bound=Callable[..., Any])

_JOB_NAMES = tuple(one.name for one in JOB_OPTIONS if one.name != "model")
_PLACE_NAMES = tuple(one.name for one in PLACE_OPTIONS)


def _takes(*names: str) -> Callable[[Verb], Verb]:
    """Show the options that a verb passes on, beside its own, to `help` and to editors that look at signatures."""

    def shown(verb: Verb) -> Verb:
        own = signature(verb)
        options = {one.name: one for one in (*JOB_OPTIONS, *PLACE_OPTIONS)}
        own_parameters = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        taken = {p.name for p in own_parameters}
        passed = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=options[name].default)
            for name in names
            if name not in taken
        ]
        setattr(verb, "__signature__", Signature([*own_parameters, *passed], return_annotation=own.return_annotation))  # noqa: B010
        return verb

    return shown


@_takes(*_JOB_NAMES, *_PLACE_NAMES)
def forecast(
    model: object,
    placement: Placement | None = None,
    *,
    profile: Path | None = None,
    cost_model: CostModel | None = None,
    session: Session | None = None,
    **options: Any,
) -> Forecast:
    """How long a job takes, what it needs and what it costs.

    `model` is a `Job`, or what it trains; `options` are those of `Job` and `Where`. `profile` is a file of `epochcast
    fit` to answer with; a `session` keeps what several forecasts share.
    """
    job, where = _asked(model, options, needs_place=placement is None)
    session = session or Session(cost_model, profile=profile)
    return forecast_job(job, placement or where.placement(), session)


@_takes(*_JOB_NAMES, *_PLACE_NAMES)
def advise(
    model: object,
    placement: Placement | None = None,
    *,
    host_memory_bytes: float | None = None,
    disk_bytes_per_second: float | None = None,
    loader: Service | None = None,
    most_batch: int | None = None,
    with_thesis: bool = False,
    cost_model: CostModel | None = None,
    session: Session | None = None,
    **options: Any,
) -> Advice:
    """Largest and best batch, loader workers and prefetch, and what binds; `cpus` and memory are those of one box.

    `options` are those of `Job` and `Where`; the job's own batch is left aside. The loader is given by the seconds one
    worker needs for a sample, or as it was measured (`bench.loader.measure_loader(…).service()`).
    """
    job, where = _asked(model, options, needs_place=placement is None)
    placement, session = placement or where.placement(), session or Session(cost_model)
    job = session.resolved(job)
    trace = session.trace(session.model(job), job.recipe(1))
    service, notes = (loader, ()) if loader is not None else service_of(trace, job.loader_seconds)
    host, assumed = host_of(
        placement, cpus=job.cpus, memory_bytes=host_memory_bytes, disk_bytes_per_second=disk_bytes_per_second
    )
    data = None if job.dataset is None else find_dataset(job.dataset)
    if data is not None and not service.stored_bytes:
        service = replace(service, stored_bytes=data.bytes_per_sample)
    data_bytes = 0.0 if data is None else data.training_samples * data.bytes_per_sample
    question = Question(job, placement, session, service, host, data_bytes, most_batch)
    return solve_advice(question, with_thesis=with_thesis, notes=(*notes, *assumed))


@_takes(*_JOB_NAMES, *_PLACE_NAMES)
def scaling(
    model: object,
    *,
    gpus: Sequence[int],
    regime: str = "weak",
    allreduce: Sequence[str] = (),
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    profile: Path | None = None,
    cost_model: CostModel | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Scaling:
    """One job at several numbers of GPUs. `batch` is per GPU at the least number, `global_batch` what strong scaling
    keeps instead; the other `options` are those of `Job` and `Where`.

    A `link` joins the boxes; where all numbers fit in one box, its GPUs.
    """
    global_batch = options.pop("global_batch", None)
    job, where = _asked(model, options, needs_place=True)
    if job.batch is None:
        raise BadInput("scaling needs a batch: that of each GPU at the least number of GPUs")
    session = session or Session(cost_model, profile=profile)
    asked = cases(
        _several("gpus", gpus),
        regime=regime,
        batch=job.batch,
        global_batch=global_batch,
        accumulate=job.accumulate,
        allreduce=_several("allreduce", allreduce),
        strategy=where.strategy,
        gpus_per_node=gpus_per_node or (find_topology(where.topology).gpus if where.topology else GPUS_PER_NODE),
        nodes=nodes,
    )
    job = session.resolved(job)
    is_across = any(case.nodes > 1 for case in asked)

    def answer(case: Case) -> Forecast:
        place = replace(
            where,
            gpus=case.gpus,
            nodes=case.nodes,
            strategy=case.strategy.name,
            allreduce=case.allreduce,
            link=None if is_across and case.nodes == 1 else where.link,
        )
        return forecast_job(replace(job, batch=case.batch), place.placement(), session)

    return scaled(asked, answer, progress)


@_takes(*_JOB_NAMES)
def plan(
    model: object,
    *,
    batch: int | None = None,
    deadline_seconds: float | None = None,
    budget_dollars: float | None = None,
    clouds: Sequence[str] = (),
    devices: Sequence[str] = (),
    gpus: Sequence[int] = OFFERED_GPUS,
    strategies: Sequence[str] = (),
    profile: Path | None = None,
    cost_model: CostModel | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """What to rent: every offer by time and cost, the frontier, and the one that a deadline or a budget picks.

    `batch` is the job's, over all GPUs; without it every GPU takes the largest power of two that it holds. A `Job` may
    have a batch per GPU instead. The other `options` are those of `Job`.
    """
    limits = Limits(deadline_seconds, budget_dollars)
    rented = offers(_several("gpus", gpus), clouds=_several("clouds", clouds), devices=_several("devices", devices))
    if batch is not None:
        options = {"batch": None, **options, "global_batch": batch}
    check_names(options, _JOB_NAMES)
    job, _ = _asked(model, options, needs_place=False)
    session = session or Session(cost_model, profile=profile)
    return planned(job, rented, _several("strategies", strategies), limits, session, progress)


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


def _asked(model: object, options: Mapping[str, Any], *, needs_place: bool) -> tuple[Job, Where]:
    """The job and the place that a model (or a job) and options by name come to."""
    check_names(options, (*_JOB_NAMES, *(_PLACE_NAMES if needs_place else ())))
    of_job = {name: value for name, value in options.items() if name in _JOB_NAMES}
    of_place = {name: value for name, value in options.items() if name in _PLACE_NAMES}
    if not isinstance(model, Job):
        return Job(model, **of_job), Where(**of_place)
    if "global_batch" in of_job and of_job["global_batch"] is not None:
        of_job.setdefault("batch", None)
    if "batch" in of_job and of_job["batch"] is not None:
        of_job.setdefault("global_batch", None)
    return replace(model, **of_job), Where(**of_place)


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """A sequence given under a name; one text, or a number alone, is none."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | range | set | frozenset):
        raise BadInput(f"{name} must be a list, got {values!r}")
    return tuple(values)


def _view(name: str) -> Callable[[Any], Any]:
    """A drawing of `render`, which is loaded when something is drawn."""

    def view(answer: Any) -> Any:
        from epochcast import render

        return getattr(render, name)(answer)

    return view


for _kind, _name in {
    Forecast: "forecast",
    Inspection: "inspection",
    Advice: "advice",
    Scaling: "scaling",
    Plan: "plan",
}.items():
    register_view(_kind, _view(_name))
