"""What can be asked over HTTP: the verbs, each with its options. Those of a job are declared in `Job` and `Where`; the
few that belong to a verb alone are declared here. The OpenAPI document and the form of the page follow from both.

What would read a file of the server or run code is not among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.base.options import Option
from epochcast.errors import BadInput, CodeNotAllowed, UnknownOption
from epochcast.predict.forecast.job import JOB_OPTIONS, without_replaced
from epochcast.predict.forecast.job_file import schema_of
from epochcast.predict.forecast.where import PLACE_OPTIONS
from epochcast.units import parse_bytes, parse_seconds

# Options that say something of a live object or of the caller's own files.
_NOT_HERE = ("reference", "fingerprint")
_JOB = {one.name: one for one in JOB_OPTIONS if one.name not in _NOT_HERE}
_PLACE = {one.name: one for one in PLACE_OPTIONS}
_TEXTS, _COUNTS = tuple[str, ...], tuple[int, ...]

DRAW = Option("draw", bool, False, "Answer with a chart, too: a Vega-Lite specification under `chart`.")
_GPU_COUNTS = Option("gpus", _COUNTS, None, "Numbers of GPUs, like [1, 2, 4, 8].", example="[1, 2, 4, 8]")

_ADVISE = (
    Option("host_memory_bytes", float, None, "Memory of a node, like 128GiB.", "bytes", above=0, parse=parse_bytes),
    Option("most_batch", int, None, "No batch is larger.", least=1),
)
_SCALING = (
    _GPU_COUNTS,
    Option("regime", str, "weak", "weak, strong or both."),
    Option("allreduce", _TEXTS, (), "Collectives to compare, like ['nccl', 'ring'].", example="['ring']"),
    Option("gpus_per_node", int, None, "GPUs of a node.", least=1),
    DRAW,
)
_PLAN = (
    _GPU_COUNTS,
    Option("deadline_seconds", float, None, "The cheapest by then, like 6h.", "seconds", above=0, parse=parse_seconds),
    Option("budget_dollars", float, None, "The fastest for at most this.", "dollars", above=0),
    Option("objective", str, None, "cheapest, fastest or knee."),
    Option("clouds", _TEXTS, (), "Only these clouds.", example="['aws']"),
    Option("devices", _TEXTS, (), "Only these devices.", example="['A100']"),
    Option("regions", _TEXTS, (), "Only these regions.", example="['europe']"),
    Option("strategies", _TEXTS, (), "Only these strategies.", example="['ddp', 'zero3']"),
    Option("spot", float, None, "Spot prices, with so many interruptions per hour and machine.", least=0),
    DRAW,
)


@dataclass(frozen=True)
class Verb:
    """One question: its own options, and whether those of a place are taken. `leaves` are options it sets itself."""

    name: str
    about: str
    own: tuple[Option, ...] = ()
    has_place: bool = True
    leaves: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, Option]:
        """All that may be asked, by name."""
        given = {**_JOB, **(_PLACE if self.has_place else {})}
        kept = {name: one for name, one in given.items() if name not in self.leaves}
        return {**kept, **{one.name: one for one in self.own}}

    def read(self, asked: object) -> dict[str, Any]:
        """The options of a request, checked; text is read as the command line reads it."""
        if not isinstance(asked, Mapping):
            raise BadInput(f"a {self.name} is asked with an object of options, got {type(asked).__name__}")
        known = self.options
        for name in asked:
            if name not in known:
                raise UnknownOption(str(name), known)
        found = {name: known[name].read(value) for name, value in asked.items() if value is not None}
        if "model" not in found:
            raise BadInput(f"a {self.name} needs a model: a name of /api/v1/models, or an upload")
        check_plain(found)
        return found

    def schema(self) -> dict[str, Any]:
        """The JSON schema of a request."""
        properties = {name: schema_of(one) for name, one in self.options.items()}
        return {"type": "object", "additionalProperties": False, "required": ["model"], "properties": properties}


VERBS: Mapping[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("forecast", "How long a job takes, what it needs and what it costs.", (DRAW,)),
        Verb("advise", "Largest and best batch, loader workers, the bottleneck.", _ADVISE),
        Verb("scaling", "One job at several numbers of GPUs.", _SCALING, leaves=("gpus", "allreduce")),
        Verb("plan", "What to rent: every offer by time and cost, and the one to choose.", _PLAN, has_place=False),
        Verb("inspect", "What a model is made of, layer by layer.", has_place=False),
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
    from epochcast.describe.capture.resolve import FILE_ENDINGS, is_code

    if is_code(model):
        raise CodeNotAllowed(model)
    kind, colon, rest = model.partition(":")
    is_path = any(mark in (rest if colon else model) for mark in ("\\", "\0", "..", "~"))
    is_config_path = kind == "hf" and bool(colon) and "(" not in rest and not rest.isidentifier()
    if model.lower().endswith((*FILE_ENDINGS, ".ipynb")) or model.startswith("/") or is_path or is_config_path:
        raise BadInput(f"{model!r} is a file; upload it first (POST /api/v1/uploads), files of the server are not read")


def replaced(before: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Options with others laid over them; those that say the same in another way are taken back."""
    return {**without_replaced(before, later), **later}
