"""The verbs of the library, as the command line and notebooks call them.

A job and where it runs are given by their options (`Job`, `Where`), or as values made before:

>>> import epochcast as ec
>>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
>>> job = ec.Job("resnet50", batch=64, dataset="imagenet-1k", epochs=90)
>>> ec.forecast(job, device="V100") == answer == ec.forecast(job, ec.place("V100"))
True

An answer draws itself: `rich.print(answer)` and a notebook show the tables of the command line, `as_dict()` is the
object that `--json` prints.

`config` are files of settings: a trainer's, DeepSpeed's, a training script, a shell script that starts one. Their
values count where no option says otherwise; so do those of the script that makes the model. `config=None` reads none
of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from inspect import signature
from pathlib import Path
from typing import Any

from epochcast.api_measured import check, fit, oom, share
from epochcast.api_options import Config, job_and_where, requested, session_for, setting_paths, takes, with_read_notes
from epochcast.decide.advise.advice import Advice, AdviceProblem
from epochcast.decide.advise.advice import advise as solve_advice
from epochcast.decide.advise.advise_request import AdviseRequest
from epochcast.decide.advise.placement_advice import PlacementAdvice
from epochcast.decide.advise.placement_advice import advise_placement as solve_placement
from epochcast.decide.afford.afford_request import AffordRequest
from epochcast.decide.afford.affordable import Affordable, affordable
from epochcast.decide.diff.diff_answer import Diff
from epochcast.decide.diff.diff_compare import DiffSession
from epochcast.decide.diff.diff_request import DiffRequest
from epochcast.decide.diff.diff_side import Side, side_of
from epochcast.decide.diff.side_reference import JOB, DiffQuestion, side_for
from epochcast.decide.plan.plan_answer import Plan, planned
from epochcast.decide.plan.plan_request import PlanRequest
from epochcast.decide.scaling import Case, Scaling, cases, scaled
from epochcast.decide.scaling_request import ScalingRequest
from epochcast.describe.capture.inspection import Inspection, inspect_graph
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.workload import WORKLOAD_NAMES, as_workload
from epochcast.errors import BadInput, UnknownOption
from epochcast.hardware.topology import GPUS_PER_NODE, find_topology
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.assumed import host_of, service_of
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.generation_options import GENERATE
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_data import data_of
from epochcast.predict.forecast.job_defaults import placement_of, settled
from epochcast.predict.forecast.loader_queue import Service
from epochcast.predict.forecast.loader_step import CountedLoader
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.usual_choice import with_usual_choice
from epochcast.predict.forecast.where import Where
from epochcast.predict.post_training.generation import Generation, forecast_generation
from epochcast.predict.post_training.post_training import PostTraining, forecast_post_training

__all__ = [
    "Advice",
    "Affordable",
    "Diff",
    "Forecast",
    "Generation",
    "Inspection",
    "PlacementAdvice",
    "Plan",
    "PostTraining",
    "Scaling",
    "advise",
    "advise_placement",
    "afford",
    "check",
    "diff",
    "find_model",
    "fit",
    "forecast",
    "generate",
    "inspect",
    "oom",
    "plan",
    "post_train",
    "scaling",
    "share",
]

Progress = Callable[[int, int], None]


@takes(Job, Where)
def forecast(
    model: object = None,
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

    `model` is a `Job`, or what it trains; left out, a file of `config` says it. `options` are those of `Job` and
    `Where`. A live PyTorch module may come with `inputs`, `loss` or `step`, those of a `Workload`. `profile` is a file
    of `epochcast fit` to answer with, `history` one of `epochcast history fit` that corrects the answer; a `session`
    keeps what several forecasts share.

    >>> import epochcast as ec
    >>> answer = ec.forecast("resnet50", device="V100", batch=64, dataset="imagenet-1k", epochs=90)
    >>> answer.steps_per_epoch, answer.fits
    (20019, True)
    """
    answer = _forecast(forecast, model, options, config, session_for(session, cost_model, profile), placement)
    if history is None:
        return answer
    from epochcast.observe.history.experience import by_history

    return by_history(answer, history)


@takes(Job, Where)
def generate(
    model: object = None,
    placement: Placement | None = None,
    *,
    config: Config = (),
    session: Session | None = None,
    **options: Any,
) -> Generation:
    """How fast a decoder generates text, how long requests take, and what that needs and costs.

    `options` are those of `Job` and `Where`: `prompt`, `response`, `concurrency`, `requests`, `engine` and others.

    >>> answer = generate("llama-3.1-8b", device="H100", precision="bf16", prompt=512, response="128")
    >>> answer.tokens_per_second.mid > 0
    True
    """
    options = {**options, "mode": GENERATE}
    job, where, notes = job_and_where(generate, model, options, placement, config)
    session = session or Session()
    return with_read_notes(forecast_generation(job, placement or placement_of(where, job, session), session), notes)


@takes(Job, Where)
def post_train(
    model: object = None,
    placement: Placement | None = None,
    *,
    config: Config = (),
    session: Session | None = None,
    **options: Any,
) -> PostTraining:
    """How long DPO, PPO, GRPO or DAPO take, part by part, and what that needs and costs.

    `options` are those of `Job` and `Where`: `algorithm`, `prompts_per_step`, `generations`, `prompt`, `response` and
    others. Several GPUs shard the policy (fsdp) where no strategy is given.

    >>> options = {"prompts_per_step": 32, "generations": 4, "prompt": 256, "response": "300"}
    >>> post_train("llama3_2_1b", device="H100", algorithm="grpo", **options).parts[0].name
    'generation'
    """
    job, where, notes = job_and_where(post_train, model, options, placement, config)
    if not job.is_post_training:
        raise BadInput("post_train needs an algorithm: dpo, ppo, grpo or dapo")
    where = _sharded(where)
    session = session or Session()
    answer = forecast_post_training(job, placement or placement_of(where, job, session), session)
    return with_read_notes(answer, notes)


def _sharded(where: Where) -> Where:
    """Several GPUs of post-training shard the policy where nobody says otherwise."""
    return replace(where, strategy="fsdp") if where.strategy is None and where.gpus > 1 else where


def _forecast(
    verb: Callable[..., object],
    model: object,
    options: Mapping[str, Any],
    config: Config,
    session: Session,
    placement: Placement | None = None,
) -> Forecast:
    job, where, notes = job_and_where(verb, model, options, placement, config)
    place = placement or placement_of(where, job, session)
    answer = with_usual_choice(forecast_job(job, place, session), job, place, session)
    return with_read_notes(answer, notes)


@takes(AdviseRequest, Job, Where)
def advise(
    model: object,
    placement: Placement | None = None,
    *,
    request: AdviseRequest | None = None,
    loader: Service | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> Advice:
    """Largest and best batch, loader workers and prefetch, and the bottleneck; `cpus` and memory are those of one node.

    `options` are those of `AdviseRequest` (or a `request` made before), `Job` and `Where`; the job's own batch is left
    aside. The loader is given by the seconds one worker needs for a sample, or as it was measured
    (`bench.loader.measure_loader(…).service()`).

    >>> import epochcast as ec
    >>> advice = ec.advise("resnet50", device="V100", precision="amp")
    >>> advice.solution.smallest.batch > 0
    True
    """
    terms, options = requested(AdviseRequest, request, options)
    job, where, read_notes = job_and_where(
        advise, model, options, placement, config, leave=("batch", "global_batch", "workers")
    )
    session = session_for(session, cost_model, profile)
    placement = placement or placement_of(where, job, session)
    settings = settled(job, placement.device, session)
    job = settings.job
    trace = session.trace(session.model(job), job.recipe(1))
    service, notes = (loader, ()) if loader is not None else service_of(trace, job.loader_seconds)
    host, assumed = host_of(
        placement,
        cpus=job.cpus,
        memory_bytes=terms.host_memory_bytes,
        disk_bytes_per_second=terms.disk_bytes_per_second,
    )
    dataset, data = job.known_dataset, data_of(job, trace)
    if data.stored_bytes_per_sample is not None and not service.stored_bytes:
        service = replace(service, stored_bytes=data.stored_bytes_per_sample)
    data_bytes = 0.0 if dataset is None else dataset.training_bytes
    problem = AdviceProblem(job, placement, session, service, host, data_bytes, terms.most_batch, settings.assumed)
    return solve_advice(problem, with_thesis=terms.with_thesis, notes=(*notes, *assumed, *read_notes))


@takes(Job, Where)
def advise_placement(
    model: object,
    placement: Placement | None = None,
    *,
    config: Config = (),
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> PlacementAdvice:
    """How a post-training job shares its GPUs between generation and training, the fastest way that fits first."""
    job, where, notes = job_and_where(advise_placement, model, options, placement, config)
    where = _sharded(where)
    session = session_for(session, cost_model, None)
    return with_read_notes(solve_placement(job, placement or placement_of(where, job, session), session), notes)


@takes(ScalingRequest, Job, Where)
def scaling(
    model: object,
    request: ScalingRequest | None = None,
    *,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Scaling:
    """One job at several numbers of GPUs. `batch` is per GPU at the least number, `global_batch` what strong scaling
    keeps instead; `options` are those of `ScalingRequest` (or a `request` made before), `Job` and `Where`.

    A `link` joins the nodes; where all numbers of GPUs fit in one node, its GPUs.

    >>> import epochcast as ec
    >>> answer = ec.scaling("resnet50", device="V100", batch=64, gpus=[1, 2, 4])
    >>> sorted({row["gpus"] for row in answer.as_dict()["rows"]})
    [1, 2, 4]
    """
    terms, options = requested(ScalingRequest, request, options)
    replaced_options = (
        "gpus",
        "nodes",
        "allreduce",
        *(() if terms.global_batch is None else ("batch", "global_batch")),
    )
    job, where, notes = job_and_where(scaling, model, options, None, config, leave=replaced_options)
    session = session_for(session, cost_model, profile)
    compared = cases(
        terms.gpus,
        regime=terms.regime,
        batch=job.batch,
        global_batch=terms.global_batch or job.global_batch,
        accumulate=job.accumulate,
        allreduce=terms.allreduce,
        strategy=where.strategy,
        gpus_per_node=terms.gpus_per_node or (find_topology(where.topology).gpus if where.topology else GPUS_PER_NODE),
        nodes=terms.nodes,
    )
    is_across = any(case.nodes > 1 for case in compared)

    def answer(case: Case) -> Forecast:
        place = replace(
            where,
            gpus=case.gpus,
            nodes=case.nodes,
            strategy=case.strategy.name,
            allreduce=case.allreduce,
            link=None if is_across and case.nodes == 1 else where.link,
        )
        at_batch = replace(job, batch=case.batch, global_batch=None)
        return forecast_job(at_batch, placement_of(place, job, session), session, loader=CountedLoader.SAID)

    return with_read_notes(scaled(compared, answer, progress), notes)


@takes(PlanRequest, Job)
def plan(
    model: object,
    request: PlanRequest | None = None,
    *,
    today: date | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Plan:
    """What to rent: every offer by time and cost, the frontier, and the one that a deadline or a budget picks.

    `options` are those of `PlanRequest` (or a `request` made before) and of `Job`. `today` tells how old prices are.

    >>> import epochcast as ec
    >>> answer = ec.plan("resnet50", dataset="imagenet-1k", epochs=90, deadline_seconds=24 * 3600, devices=["A100"])
    >>> answer.chosen is not None
    True
    """
    terms, options = requested(PlanRequest, request, options)
    if terms.batch is not None and not terms.has_policy:
        if options.get("global_batch") is not None:
            raise BadInput("the batch of a plan is the global one: give batch or global_batch, not both")
        options = {**options, "global_batch": terms.batch}
    job, _, notes = job_and_where(plan, model, options, None, config, has_place=False)
    job.check_is_step()
    answer = planned(job, terms, session_for(session, cost_model, profile), progress, today)
    return replace(answer, notes=notes)


@takes(AffordRequest, Job)
def afford(
    models: object,
    request: AffordRequest | None = None,
    *,
    today: date | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    session: Session | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Affordable:
    """What a budget and a deadline pay for: the most epochs or tokens of each model, in full and by LoRA, and where.

    `models` is one or a list; `options` are those of `AffordRequest` (or a `request` made before) and of `Job`.

    >>> import epochcast as ec
    >>> answer = ec.afford("resnet50", budget_dollars=50, batch=64, precision="amp", dataset="imagenet-1k")
    >>> answer.rows[0].epochs > 1
    True
    """
    terms, options = requested(AffordRequest, request, options)
    each = list(models) if isinstance(models, list | tuple) else [models]
    jobs = [job_and_where(afford, model, options, None, config, has_place=False)[0] for model in each]
    for job in jobs:
        job.check_is_step()
    return affordable(jobs, terms, session_for(session, None, profile), progress, today)


@takes(DiffRequest, Job, Where)
def diff(
    base: object,
    head: object = None,
    *,
    request: DiffRequest | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    session: Session | None = None,
    **options: Any,
) -> Diff:
    """What changes from one model or job to another, how sure that is, and which layers do it.

    `base` and `head` are models, `Job`s, or "job:NAME" of the nearest job file; `options` hold for both, and
    are those of `DiffRequest` (or a `request` made before), `Job` and `Where`. With a `base_revision` one reference is
    compared at two git revisions, without a `head_revision` with the working tree.

    >>> import epochcast as ec
    >>> change = ec.diff("resnet18", "resnet34", device="V100", batch=64)
    >>> change.step_seconds.mid > 1
    True
    """
    terms, options = requested(DiffRequest, request, options)
    base_revision, head_revision = terms.base_revision, terms.head_revision
    if base_revision is not None:
        if not isinstance(base, str) or head is not None:
            raise BadInput("a comparison of two revisions takes one model: a reference as text, or 'job:NAME'")
        question = DiffQuestion(options, tuple(map(str, setting_paths(config or ()))))
        path = None if profile is None else Path(profile)
        return DiffSession(question, terms.limits, path, session).of_revisions(base, base_revision, head_revision)
    if head is None or head_revision is not None:
        raise BadInput("a comparison needs two models or jobs, or one with a base_revision")
    session = session_for(session, None, profile)

    def side(model: object) -> Side:
        if isinstance(model, str) and model.startswith(JOB):
            return side_for(model, DiffQuestion(options, tuple(map(str, setting_paths(config or ())))), session)
        forecast_of_side = _forecast(diff, model, options, () if isinstance(model, Job) else config, session)
        return side_of(model if isinstance(model, str) else forecast_of_side.model, forecast_of_side)

    return Diff(side(base), side(head), terms.limits)


def inspect(
    model: object,
    *,
    input_shape: tuple[int, ...] | None = None,
    aux: bool = True,
    count_bias: bool = True,
    **options: Any,
) -> Inspection:
    """What a model (or that of a `Job`) is made of, layer by layer; `inputs` and `step` as for a forecast.

    >>> import epochcast as ec
    >>> ec.inspect("resnet50").parameters
    25557032
    """
    model = as_workload(model, options)
    for name in options:
        raise UnknownOption(name, {*signature(inspect).parameters, *WORKLOAD_NAMES})
    job = model if isinstance(model, Job) else Job(model, input_shape=input_shape, aux=aux)
    return inspect_graph(
        find_model(job.model, job.input_shape, aux=job.aux, contents=job.contents), count_bias=count_bias
    )
