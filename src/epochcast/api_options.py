"""How the verbs of `api` take their options: by name or as values made before, from files of settings too."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, TypeVar

from epochcast.base.options import options_of
from epochcast.decide.advise.placement_advice import PlacementAdvice
from epochcast.decide.scaling import Scaling
from epochcast.describe.capture.workload import WORKLOAD_NAMES, as_workload
from epochcast.errors import BadInput, UnknownOption
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.job import JOB_OPTIONS, Job
from epochcast.predict.forecast.job_alternatives import without_replaced
from epochcast.predict.forecast.job_settings import NoModel, filled
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import PLACE_OPTIONS, Where
from epochcast.predict.post_training.generation import Generation
from epochcast.predict.post_training.post_training import PostTraining

Config = Sequence[str | Path] | None
Verb = TypeVar("Verb", bound=Callable[..., Any])
Request = TypeVar("Request")

_JOB_NAMES = tuple(option.name for option in JOB_OPTIONS if option.name != "model")
_PLACE_NAMES = tuple(option.name for option in PLACE_OPTIONS)


def takes(*kinds: type) -> Callable[[Verb], Verb]:
    """Show the options that a verb passes on, beside its own, to `help` and to editors that look at signatures."""

    def shown(verb: Verb) -> Verb:
        verb_signature = signature(verb)
        parameters = {p.name: p for p in verb_signature.parameters.values() if p.kind is not Parameter.VAR_KEYWORD}
        for option in (option for kind in kinds for option in options_of(kind)):
            default = Parameter.empty if option.is_required else option.default
            parameters.setdefault(option.name, Parameter(option.name, Parameter.KEYWORD_ONLY, default=default))
        signed = Signature(list(parameters.values()), return_annotation=verb_signature.return_annotation)
        setattr(verb, "__signature__", signed)  # noqa: B010
        return verb

    return shown


def requested(
    kind: type[Request], request: Request | None, options: Mapping[str, Any]
) -> tuple[Request, dict[str, Any]]:
    """The request of a verb, and the options that are of its job."""
    declared = {option.name: option for option in options_of(kind)}
    of_request = {name: value for name, value in options.items() if name in declared}
    rest = {name: value for name, value in options.items() if name not in declared}
    if request is None:
        for option in declared.values():
            if option.is_required and of_request.get(option.name) is None:
                raise BadInput(f"{option.name} must be given, such as {option.example}")
        return kind(**of_request), rest
    if not isinstance(request, kind):
        raise BadInput(f"the request must be a {kind.__name__}, got {request!r}")
    if of_request:
        raise BadInput(f"{next(iter(of_request))} is given twice: by its name and by the request")
    return request, rest


def job_and_where(
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
    option_names = (*_JOB_NAMES, *(_PLACE_NAMES if has_place else ()))
    options = dict(options)
    network = None if model is None else as_workload(model.model if isinstance(model, Job) else model, options)
    model = replace(model, model=network) if isinstance(model, Job) and network is not model.model else model
    for name in options:
        if name not in option_names:
            raise UnknownOption(name, {*option_names, *signature(verb).parameters, *WORKLOAD_NAMES})
    notes: tuple[str, ...] = ()
    if model is None and not config:
        raise NoModel([])
    if not isinstance(model, Job) and config is not None:
        places = _PLACE_NAMES if has_place and placement is None else ()
        read = filled(model, options, setting_paths(config), {*_JOB_NAMES, *places} - {*leave})
        options, notes = read.options, read.notes
        network = read.model if network is None else network
    elif config:
        raise BadInput("a job says everything itself: give config with a model, not with a Job")
    of_job = {name: value for name, value in options.items() if name in _JOB_NAMES}
    of_place = {name: value for name, value in options.items() if name in _PLACE_NAMES}
    if placement is not None and of_place:
        raise BadInput(f"{next(iter(of_place))} is given twice: by its name and by the placement")
    if not isinstance(model, Job):
        return Job(network, **of_job), Where(**of_place), notes
    remaining = without_replaced({option.name: None for option in JOB_OPTIONS}, of_job)
    reset = {option.name: option.default for option in JOB_OPTIONS if option.name not in remaining}
    return replace(model, **{**reset, **of_job}), Where(**of_place), notes


def setting_paths(config: Sequence[str | Path]) -> Sequence[str | Path]:
    """One file, or several."""
    return (config,) if isinstance(config, str | Path) else config


Noted = TypeVar("Noted", Forecast, Generation, PlacementAdvice, PostTraining, Scaling)


def with_read_notes(answer: Noted, notes: tuple[str, ...]) -> Noted:
    """The answer, with what was read for it among its warnings."""
    return replace(answer, warnings=(*answer.warnings, *notes)) if notes else answer


def session_for(session: Session | None, cost_model: CostModel | str | None, profile: str | Path | None) -> Session:
    """The one given, or a new one for this question."""
    if session is not None:
        if cost_model is not None or profile is not None:
            raise BadInput("a session has its cost model: give session, or cost_model and profile, not both")
        return session
    model = find_cost_model(cost_model) if isinstance(cost_model, str) else cost_model
    return Session(model, profile=None if profile is None else Path(profile))
