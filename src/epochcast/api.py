"""The verbs of the library, as the command line and notebooks call them.

A job and where it runs are given by their options (`Job`, `Where`), or as values made before:

>>> import epochcast as ec
>>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
>>> job = ec.Job("resnet50", batch=64, dataset="imagenet-1k", epochs=90)
>>> ec.forecast(job, device="V100") == answer == ec.forecast(job, ec.place("V100"))
True

An answer draws itself: `rich.print(answer)` and a notebook show the tables of the command line, `as_dict()` is the
object that `--json` prints.

`config` are files of settings (DeepSpeed, Accelerate, TrainingArguments, a training script) whose values count where no
option says otherwise; so do those of the script that makes the model. `config=None` reads none of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from epochcast.advising.advice import Advice, AdviceRequest
from epochcast.advising.advice import advise as solve_advice
from epochcast.capture.inspection import Inspection, inspect_graph
from epochcast.capture.resolve import find_model
from epochcast.capture.workload import WORKLOAD_NAMES, as_workload
from epochcast.cost.model import CostModel
from epochcast.cost.registry import find_cost_model
from epochcast.diffing.answer import Diff
from epochcast.diffing.asked import JOB, Question, side_asked
from epochcast.diffing.compare import Comparison
from epochcast.diffing.limits import Allowed
from epochcast.diffing.side import Side, side_of
from epochcast.display import register_view
from epochcast.errors import BadInput, UnknownOption
from epochcast.forecasting.assumed import host_of, service_of
from epochcast.forecasting.data import data_of
from epochcast.forecasting.defaults import placement_of, settled
from epochcast.forecasting.forecast import Forecast
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.job import JOB_OPTIONS, Job, without_replaced
from epochcast.forecasting.loader import Service
from epochcast.forecasting.options import checked
from epochcast.forecasting.placement import Placement
from epochcast.forecasting.scaling import Case, Scaling, cases, scaled
from epochcast.forecasting.session import Session
from epochcast.forecasting.settings import filled
from epochcast.forecasting.where import PLACE_OPTIONS, Where
from epochcast.hardware.topology import GPUS_PER_NODE, find_topology
from epochcast.planning.answer import Goal, Plan, planned
from epochcast.planning.asked import Asked, policy_of, what_if_in
from epochcast.planning.billing import NO_EXTRAS, Extras
from epochcast.planning.choice import Limits
from epochcast.planning.learning import critical_batch as find_critical_batch
from epochcast.planning.offers import OFFERED_GPUS, offers
from epochcast.planning.spot import Spot

if TYPE_CHECKING:
    from epochcast.fitting.local import Fitted

__all__ = [
    "Advice",
    "Diff",
    "Forecast",
    "Inspection",
    "Plan",
    "Scaling",
    "advise",
    "diff",
    "find_model",
    "fit",
    "forecast",
    "inspect",
    "plan",
    "scaling",
]

Progress = Callable[[int, int], None]
Config = Sequence[str | Path] | None
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
    config: Config = (),
    profile: str | Path | None = None,
    history: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> Forecast:
    """How long a job takes, what it needs and what it costs.

    `model` is a `Job`, or what it trains; `options` are those of `Job` and `Where`. A live PyTorch module may come with
    `inputs`, `loss` or `step`, those of a `Workload`. `profile` is a file of `epochcast fit` to answer with, `history`
    one of `epochcast history fit` that corrects the answer; a `session` keeps what several forecasts share.
    """
    answer = _forecast(forecast, model, options, config, _session(session, cost_model, profile), placement)
    if history is None:
        return answer
    from epochcast.history.experience import by_history

    return by_history(answer, history)


def _forecast(
    verb: Callable[..., object],
    model: object,
    options: Mapping[str, Any],
    config: Config,
    session: Session,
    placement: Placement | None = None,
) -> Forecast:
    job, where, notes = _asked(verb, model, options, placement, config)
    return _told(forecast_job(job, placement or placement_of(where, job, session), session), notes)


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
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> Advice:
    """Largest and best batch, loader workers and prefetch, and the bottleneck; `cpus` and memory are those of one node.

    `options` are those of `Job` and `Where`; the job's own batch is left aside. The loader is given by the seconds one
    worker needs for a sample, or as it was measured (`bench.loader.measure_loader(…).service()`).
    """
    job, where, told = _asked(advise, model, options, placement, config, leave=("batch", "global_batch", "workers"))
    session = _session(session, cost_model, profile)
    placement = placement or placement_of(where, job, session)
    own = settled(job, placement.device, session)
    job = own.job
    host_memory_bytes = checked("host_memory_bytes", float, host_memory_bytes, above=0)
    disk_bytes_per_second = checked("disk_bytes_per_second", float, disk_bytes_per_second, above=0)
    most_batch = checked("most_batch", int, most_batch, least=1)
    trace = session.trace(session.model(job), job.recipe(1))
    service, notes = (loader, ()) if loader is not None else service_of(trace, job.loader_seconds)
    host, assumed = host_of(
        placement, cpus=job.cpus, memory_bytes=host_memory_bytes, disk_bytes_per_second=disk_bytes_per_second
    )
    dataset, data = job.known_dataset, data_of(job, trace)
    if data.stored_bytes_per_sample is not None and not service.stored_bytes:
        service = replace(service, stored_bytes=data.stored_bytes_per_sample)
    data_bytes = 0.0 if dataset is None else dataset.training_bytes
    request = AdviceRequest(job, placement, session, service, host, data_bytes, most_batch, own.assumed)
    return solve_advice(request, with_thesis=with_thesis, notes=(*notes, *assumed, *told))


@_takes(*_JOB_NAMES, *_PLACE_NAMES)
def scaling(
    model: object,
    *,
    gpus: Sequence[int],
    regime: str = "weak",
    allreduce: Sequence[str] = (),
    nodes: int | None = None,
    gpus_per_node: int | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Scaling:
    """One job at several numbers of GPUs. `batch` is per GPU at the least number, `global_batch` what strong scaling
    keeps instead; the other `options` are those of `Job` and `Where`.

    A `link` joins the nodes; where all numbers of GPUs fit in one node, its GPUs.
    """
    counts = checked("gpus", tuple[int, ...], gpus, example="[1, 2, 4, 8]")
    strong_batch = checked("global_batch", int, options.pop("global_batch", None), least=1)
    own = ("gpus", "nodes", "allreduce", *(() if strong_batch is None else ("batch", "global_batch")))
    job, where, notes = _asked(scaling, model, options, None, config, leave=own)
    session = _session(session, cost_model, profile)
    asked = cases(
        counts,
        regime=regime,
        batch=job.batch,
        global_batch=strong_batch or job.global_batch,
        accumulate=job.accumulate,
        allreduce=checked("allreduce", tuple[str, ...], allreduce, example="['nccl', 'ring']"),
        strategy=where.strategy,
        gpus_per_node=checked("gpus_per_node", int, gpus_per_node, least=1)
        or (find_topology(where.topology).gpus if where.topology else GPUS_PER_NODE),
        nodes=checked("nodes", int, nodes, least=1),
    )
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
        return forecast_job(
            replace(job, batch=case.batch, global_batch=None), placement_of(place, job, session), session
        )

    return _told(scaled(asked, answer, progress), notes)


@_takes(*_JOB_NAMES)
def plan(
    model: object,
    *,
    batch: int | None = None,
    deadline_seconds: float | None = None,
    budget_dollars: float | None = None,
    objective: str | None = None,
    most_epochs: bool = False,
    clouds: Sequence[str] = (),
    devices: Sequence[str] = (),
    regions: Sequence[str] = (),
    gpus: Sequence[int] = OFFERED_GPUS,
    any_host: bool = False,
    strategies: Sequence[str] = (),
    batch_policy: str | None = None,
    max_global_batch: int | None = None,
    critical_batch: float | str | None = None,
    what_if: Sequence[str] = (),
    augment_epochs: Mapping[int, int] | None = None,
    spot: Spot | float | None = None,
    extras: Extras = NO_EXTRAS,
    today: date | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """What to rent: every offer by time and cost, the frontier, and the one that a deadline or a budget picks.

    `batch` is the job's, over all GPUs; without it every GPU takes the largest power of two that it holds. A `Job` may
    have a batch per GPU instead. `batch_policy` says otherwise (`planning.asked.BatchPolicy`). `spot` are interruptions
    per hour and machine. `most_epochs` asks how many epochs the limits allow, `augment_epochs` has the epochs to an
    accuracy by copies of each sample. `today` tells how old prices are. The other `options` are those of `Job`.
    """
    deadline_seconds = checked("deadline_seconds", float, deadline_seconds, above=0)
    limits = Limits(deadline_seconds, checked("budget_dollars", float, budget_dollars, above=0))
    rented = offers(
        checked("gpus", tuple[int, ...], gpus, example="[1, 2, 4, 8]"),
        clouds=checked("clouds", tuple[str, ...], clouds, example="['aws']"),
        devices=checked("devices", tuple[str, ...], devices, example="['A100']"),
        regions=checked("regions", tuple[str, ...], regions, example="['europe']"),
        spot=spot is not None,
        any_host=any_host,
    )
    batch = checked("batch", int, batch, least=1, example="1024")
    policy = policy_of(batch_policy, batch, checked("max_global_batch", int, max_global_batch, least=1))
    if policy is None and batch is not None:
        if options.get("global_batch") is not None:
            raise BadInput("the batch of a plan is the global one: give batch or global_batch, not both")
        options = {**options, "global_batch": batch}
    job, _, notes = _asked(plan, model, options, None, config, has_place=False)
    critical = None if critical_batch is None else find_critical_batch(str(critical_batch))
    tried = what_if_in(checked("what_if", tuple[str, ...], what_if, example="['precision=amp,bf16']") or ())
    spare = Spot(float(spot)) if isinstance(spot, int | float) else spot
    asked = Asked(policy, critical, tried, extras, spare, tuple((augment_epochs or {}).items()))
    names = checked("strategies", tuple[str, ...], strategies, example="['ddp', 'zero3']")
    goal = Goal(limits, objective, most_epochs, today)
    answer = planned(job, rented, names, goal, _session(session, cost_model, profile), progress, asked)
    return replace(answer, notes=notes)


@_takes(*_JOB_NAMES, *_PLACE_NAMES)
def diff(
    base: object,
    head: object = None,
    *,
    base_revision: str | None = None,
    head_revision: str | None = None,
    allowed: Allowed | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    session: Session | None = None,
    **options: Any,
) -> Diff:
    """What changes from one model or job to another, how sure that is, and which layers do it.

    `base` and `head` are models, `Job`s, or "job:NAME" of the nearest job file; `options` hold for both. With a
    `base_revision` one reference is compared at two git revisions, without a `head_revision` with the working tree.
    """
    limits = allowed or Allowed()
    if base_revision is not None:
        if not isinstance(base, str) or head is not None:
            raise BadInput("at two revisions one reference is compared: give one model as text, or 'job:NAME'")
        question = Question(options, tuple(map(str, _paths(config or ()))))
        path = None if profile is None else Path(profile)
        return Comparison(question, limits, path, session).of_revisions(base, base_revision, head_revision)
    if head is None or head_revision is not None:
        raise BadInput("a comparison needs two models or jobs, or one with a base_revision")
    session = _session(session, None, profile)

    def side(asked: object) -> Side:
        if isinstance(asked, str) and asked.startswith(JOB):
            return side_asked(asked, Question(options, tuple(map(str, _paths(config or ())))), session)
        made = _forecast(diff, asked, options, () if isinstance(asked, Job) else config, session)
        return side_of(asked if isinstance(asked, str) else made.model, made)

    return Diff(side(base), side(head), limits)


def fit(
    measurements: Sequence[Path], *, progress: Callable[[float], None] | None = None, allow_code: bool = False
) -> "Fitted":
    """The model of the device that files of `epochcast bench` measure; `cost_model=answer.model` forecasts with it.

    `allow_code` lets a measured step be of `file.py:factory`, which runs it; files from elsewhere should not."""
    from epochcast.fitting.local import fit_files

    today = datetime.now(UTC).date().isoformat()
    return fit_files(measurements, date=today, progress=progress, allow_code=allow_code)


def inspect(
    model: object,
    *,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    count_bias: bool = True,
    **options: Any,
) -> Inspection:
    """What a model (or that of a `Job`) is made of, layer by layer; `inputs` and `step` as for a forecast."""
    model = as_workload(model, options)
    for name in options:
        raise UnknownOption(name, {*signature(inspect).parameters, *WORKLOAD_NAMES})
    job = model if isinstance(model, Job) else Job(model, input_shape=input_shape, aux=aux)
    return inspect_graph(find_model(job.model, job.input_shape, aux=job.aux), count_bias=count_bias)


def _asked(
    verb: Callable[..., object],
    model: object,
    options: Mapping[str, Any],
    placement: Placement | None,
    config: Config = None,
    *,
    has_place: bool = True,
    leave: tuple[str, ...] = (),
) -> tuple[Job, Where, tuple[str, ...]]:
    """The job and the place that a model (or a job) and options by name come to, and what was read elsewhere.

    A `Job` says everything itself: settings are read for a model alone. `leave` are options that are not to be read.
    """
    if placement is not None and not isinstance(placement, Placement):
        raise BadInput(f"placement must be a Placement, such as place('A100', gpus=8), got {placement!r}")
    taken = (*_JOB_NAMES, *(_PLACE_NAMES if has_place else ()))
    options = dict(options)
    asked = as_workload(model.model if isinstance(model, Job) else model, options)
    model = replace(model, model=asked) if isinstance(model, Job) and asked is not model.model else model
    for name in options:
        if name not in taken:
            raise UnknownOption(name, {*taken, *signature(verb).parameters, *WORKLOAD_NAMES})
    notes: tuple[str, ...] = ()
    if not isinstance(model, Job) and config is not None:
        places = _PLACE_NAMES if has_place and placement is None else ()
        read = filled(model, options, _paths(config), {*_JOB_NAMES, *places} - {*leave})
        options, notes = read.options, read.notes
    elif config:
        raise BadInput("a job says everything itself: give config with a model, not with a Job")
    of_job = {name: value for name, value in options.items() if name in _JOB_NAMES}
    of_place = {name: value for name, value in options.items() if name in _PLACE_NAMES}
    if placement is not None and of_place:
        raise BadInput(f"{next(iter(of_place))} is given twice: by its name and by the placement")
    if not isinstance(model, Job):
        return Job(asked, **of_job), Where(**of_place), notes
    kept = without_replaced({one.name: None for one in JOB_OPTIONS}, of_job)
    reset = {one.name: one.default for one in JOB_OPTIONS if one.name not in kept}
    return replace(model, **{**reset, **of_job}), Where(**of_place), notes


def _paths(config: Sequence[str | Path]) -> Sequence[str | Path]:
    return (config,) if isinstance(config, str | Path) else config


Told = TypeVar("Told", Forecast, Scaling)


def _told(answer: Told, notes: tuple[str, ...]) -> Told:
    """The answer, with what was read for it among its warnings."""
    return replace(answer, warnings=(*answer.warnings, *notes)) if notes else answer


def _session(session: Session | None, cost_model: CostModel | str | None, profile: str | Path | None) -> Session:
    """The one given, or a new one for this question."""
    if session is not None:
        if cost_model is not None or profile is not None:
            raise BadInput("a session has its cost model: give session, or cost_model and profile, not both")
        return session
    model = find_cost_model(cost_model) if isinstance(cost_model, str) else cost_model
    return Session(model, profile=None if profile is None else Path(profile))


def _view(name: str, answer: Any) -> Any:
    """A drawing of `render`, which is loaded when something is drawn."""
    from epochcast import render

    return getattr(render, name)(answer)


register_view(Forecast, partial(_view, "forecast"))
register_view(Inspection, partial(_view, "inspection"))
register_view(Advice, partial(_view, "advice"))
register_view(Scaling, partial(_view, "scaling"))
register_view(Plan, partial(_view, "plan"))
register_view(Diff, partial(_view, "diff"))
