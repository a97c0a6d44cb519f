"""What can be asked over HTTP: the verbs, each with its options.

Options of a job are declared in `Job` and `Where`, those of a verb in its request (`PlanRequest`, …). The OpenAPI
document and the form of the page follow from them.

What would read a file of the server or run code is not among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.base.options import Option, check_names, options_of
from epochcast.decide.advise.advise_request import AdviseRequest
from epochcast.decide.diff.diff_request import DIFF_OPTIONS
from epochcast.decide.plan.plan_request import PlanRequest
from epochcast.decide.scaling_request import ScalingRequest
from epochcast.errors import BadInput, CodeNotAllowed
from epochcast.observe.check.check_request import CheckQuestion
from epochcast.observe.oom.oom_question import OomQuestion
from epochcast.predict.forecast.job import JOB_OPTIONS
from epochcast.predict.forecast.job_file import schema_of
from epochcast.predict.forecast.where import PLACE_OPTIONS

# Options about a live object, the caller's own files or the git repository of the server.
_NOT_HERE = ("reference", "fingerprint", "base_revision", "head_revision")


def _offered(options: tuple[Option, ...]) -> dict[str, Option]:
    return {option.name: option for option in options if option.name not in _NOT_HERE}


DRAW = Option("draw", bool, False, "Answer with a chart, too: a Vega-Lite specification under `chart`.")
NEIGHBOURS = Option("neighbours", bool, False, "Answer with the measured public runs nearest to the job, too.")
PROJECT = "_project"
"""Whose uploads a question may mean; from the token, never from the request."""
DIFF_LIMITS: Mapping[str, Option] = _offered(DIFF_OPTIONS)


@dataclass(frozen=True)
class Verb:
    """One question: the class of its own options, whether those of a place are taken, and further options of the
    answer. One with `can_lack_job` is answered without a model, too.
    """

    name: str
    about: str
    request: type | None = None
    has_place: bool = True
    extras: tuple[Option, ...] = ()
    can_lack_job: bool = False

    @property
    def options(self) -> dict[str, Option]:
        """All that may be asked, by name."""
        place = PLACE_OPTIONS if self.has_place else ()
        of_request = () if self.request is None else options_of(self.request)
        return _offered((*JOB_OPTIONS, *place, *of_request, *self.extras))

    def read(self, question: object) -> dict[str, Any]:
        """The options of a request, checked; text is read as the command line reads it."""
        if not isinstance(question, Mapping):
            raise BadInput(f"a {self.name} is asked with an object of options, got {type(question).__name__}")
        options = read_options(question, self.options)
        if "model" not in options and not self.can_lack_job:
            raise BadInput(f"a {self.name} needs a model: a name of /api/v1/models, or an upload")
        for name, option in self.options.items():
            if option.is_required and name != "model" and name not in options:
                raise BadInput(f"{name} must be given, such as {option.example}")
        if "model" in options:
            check_plain(options)
        return options

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a request."""
        required = [name for name, option in self.options.items() if option.is_required]
        if self.can_lack_job:
            required.remove("model")
        properties = {name: schema_of(option) for name, option in self.options.items()}
        return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def read_options(question: Mapping[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    """The values of a request, checked; text is read as the command line reads it. Null is an option not given."""
    check_names(map(str, question), options)
    return {name: options[name].read(value) for name, value in question.items() if value is not None}


def diff_schema() -> dict[str, Any]:
    """The JSON schema of a comparison: two jobs, and the limits of the change."""
    side = VERBS["forecast"].schema()
    limits = {name: schema_of(option) for name, option in DIFF_LIMITS.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["base", "head"],
        "properties": {"base": side, "head": side, **limits},
    }


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("forecast", "How long a job takes, what it needs and what it costs.", extras=(DRAW, NEIGHBOURS)),
        Verb("advise", "Largest and best batch, loader workers, the bottleneck.", AdviseRequest),
        Verb("scaling", "One job at several numbers of GPUs.", ScalingRequest, extras=(DRAW,)),
        Verb("plan", "What to rent: every offer by time and cost, and the one to choose.", PlanRequest, False, (DRAW,)),
        Verb("inspect", "What a model is made of, layer by layer.", has_place=False),
        Verb(
            "check",
            "Whether a speed is normal for a job, and the likeliest causes.",
            CheckQuestion,
            True,
            (NEIGHBOURS,),
        ),
        Verb("oom", "What filled the memory of a GPU, and what would fit.", OomQuestion, can_lack_job=True),
    )
}

UPLOAD = "upload:"


def check_plain(options: Mapping[str, Any]) -> None:
    """Refuse what would read a file of the server or run code."""
    model = options["model"]
    if not isinstance(model, str) or len(model) > 2_000:
        raise BadInput("model must be a name of at most 2,000 letters")
    if not model.startswith(UPLOAD):
        check_model(model)
    device = options.get("device")
    if device is not None:
        from epochcast.hardware.catalogue import is_sheet

        if not isinstance(device, str) or is_sheet(device) or "/" in device or "\\" in device:
            raise BadInput("device must be a name of /api/v1/devices")
    if "file=" in (options.get("lengths") or "").replace(" ", ""):
        raise BadInput("lengths must be numbers here, such as mean=180,max=512,padded")


def check_model(model: str) -> None:
    """Refuse references that are files of the server or run code."""
    from epochcast.describe.capture.model_reference import CONFIG, DIFFUSERS, FILE_ENDINGS, ModelReference

    reference = ModelReference.of(model)
    if reference.is_code:
        raise CodeNotAllowed(model)
    name = reference.name
    is_path = any(mark in name for mark in ("\\", "\0", "..", "~"))
    is_config_path = reference.prefix == CONFIG and "(" not in name and not name.isidentifier()
    is_config_path = is_config_path or (reference.prefix == DIFFUSERS and "(" not in name and "/" in name)
    if model.lower().endswith((*FILE_ENDINGS, ".ipynb")) or model.startswith("/") or is_path or is_config_path:
        raise BadInput(f"{model!r} is a file; upload it first (POST /api/v1/uploads), files of the server are not read")
