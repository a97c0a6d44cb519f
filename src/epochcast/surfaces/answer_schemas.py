"""The JSON schema of what each command prints with `--json`; the OpenAPI document has the same.

The keys follow from the fields of the answer's class. `keys` are what the command adds, or all of an answer without a
class; `optional` are keys that only some options bring.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from epochcast import api
from epochcast.base.record import Record
from epochcast.base.record_schema import json_schema, object_schema, type_schema
from epochcast.decide.afford.affordable import Affordable
from epochcast.decide.plan.job_moves import Move
from epochcast.describe.capture.model_comparison import ModelComparison
from epochcast.describe.datasets import Dataset
from epochcast.errors import UnknownName
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance
from epochcast.hardware.link import Link
from epochcast.hardware.price_update import PriceUpdate
from epochcast.hardware.skypilot_catalogue import Skipped
from epochcast.hardware.topology import Topology
from epochcast.measure.bench.link_fit import LinkFit
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.memory_probe import ProbeAnswer
from epochcast.measure.evaluate.evaluate import Evaluation
from epochcast.measure.fit.calibrate import Calibration
from epochcast.measure.fit.local_fit import FittedDevice
from epochcast.measure.fit.shared_fit import SharedFit
from epochcast.measure.neighbours.nearest_runs import Neighbour
from epochcast.measure.shared.shared_run import SharedRun
from epochcast.observe.check.speed_check import SpeedCheck
from epochcast.observe.history.history_compare import HistoryComparison
from epochcast.observe.history.history_verbs import HistoryPrediction
from epochcast.observe.oom.oom_diagnosis import OomDiagnosis
from epochcast.observe.runs.standing import Standing
from epochcast.observe.runs.tracked_log import TrackedLog
from epochcast.observe.store.access_tokens import Token
from epochcast.observe.store.run_bill import RunBill
from epochcast.observe.store.store_rows import Attempt, RunRow
from epochcast.observe.store.thinning import Thinned
from epochcast.predict.forecast.forecast import MEMORY_KEYS, SETUP
from epochcast.predict.forecast.remedies import Remedy
from epochcast.predict.forecast.step_explain import StepShares
from epochcast.schedule.job_launcher import SchedulerEvent
from epochcast.schedule.policy_comparison import PolicyComparison
from epochcast.schedule.queue_changes import CancelledJob
from epochcast.schedule.queue_document import RefusedJob
from epochcast.schedule.timetable import QueueListing, Timetable
from epochcast.surfaces.doctor import DoctorReport


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """The class of an answer, and the types of further keys. `parts` are classes some of whose keys it has, too."""

    record: type[Record] | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[type[Record], Iterable[str]] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """The JSON schema (2020-12) of the answer."""
        definitions: dict[str, Any] = {}
        return {**self.object_schema(definitions), "$defs": definitions}

    def object_schema(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """The schema without `$defs`; records inside it are added to `definitions`."""
        properties: dict[str, Any] = {}
        for record, names in self.parts.items():
            declared = object_schema(record, definitions)["properties"]
            properties |= {name: declared[name] for name in names}
        answer = {} if self.record is None else object_schema(self.record, definitions)
        properties |= answer.get("properties", {})
        for name, kind in {**self.keys, **self.optional}.items():
            properties[name] = _part_schema(kind, definitions)
        required = [key for key in (*answer.get("required", ()), *self.keys) if key not in self.optional]
        return {"type": "object", **answer, "properties": properties, "required": list(dict.fromkeys(required))}


def _part_schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Of a key: a type, a shape, a list of one shape, or a tuple of shapes of which it has one."""
    match kind:
        case AnswerShape():
            return kind.object_schema(definitions)
        case [shape] if isinstance(kind, list):
            return {"type": "array", "items": _part_schema(shape, definitions)}
        case tuple():
            return {"anyOf": [_part_schema(shape, definitions) for shape in kind]}
    return type_schema(kind, definitions)


@dataclass(frozen=True, slots=True)
class ZooModel(Record):
    """A network of the zoo."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class ListedHubModel(Record):
    """A model of the Hub that has a name of its own; `model` is what stands for it."""

    id: str
    model: str | None
    parameters: int | None
    aliases: list[str]


@dataclass(frozen=True, slots=True)
class ListedPolicy(Record):
    """A scheduling policy."""

    name: str
    about: str


@dataclass(frozen=True, slots=True)
class CheckedJob(Record):
    """A job of the job file; `problem` is None where its model and hardware are known."""

    name: str
    options: Mapping[str, object]
    problem: str | None


_Scalar = str | int | float | bool | None


def _bench(*questions: Mapping[str, Any], **more: Any) -> AnswerShape:
    """The answer of a campaign whose rows have one of these questions."""
    details = Mapping[str, str | int | float | bool | list[int | float] | None]
    question = tuple(AnswerShape(keys=keys) for keys in questions)
    return AnswerShape(
        keys={
            "out": str,
            "machine": Mapping[str, _Scalar],
            "measured": int,
            "failed": int,
            "known": int,
            "left": int,
            "seconds": float,
            "rows": [AnswerShape(Measurement, {"question": question, "details": details})],
            **more,
        },
    )


# `ops` is a document of describe/graph/serialization.py: tables of rows whose cells differ in kind.
_OPS_DOCUMENT = AnswerShape(keys=dict.fromkeys(("tensors", "kinds", "ops"), list[list[Any]]))
_OP_QUESTION = {"device": str, "ops": _OPS_DOCUMENT}
# `measure.bench.layers_bench.BenchLayer`, which needs torch.
_LAYER = {
    **dict.fromkeys(("kind", "activation", "optimizer"), str),
    **dict.fromkeys(("batch", "channels_in", "channels_out", "size", "kernel", "stride", "padding"), int),
}
_LAYER_QUESTION = {"device": str, "way": str, "layer": AnswerShape(keys=_LAYER)}
_MODEL_QUESTION = {
    **dict.fromkeys(("device", "backend", "model", "input", "data", "part"), str),
    "recipe": Mapping[str, _Scalar],
    "repetition": int,
}
_LOADER_QUESTION = {"loader": str, "batch": int}
_COLLECTIVE_QUESTION = {"device": str, "backend": str, "collective": str, "ranks": int, "size_bytes": int}

# What events of one kind or another say besides what all do.
_EVENT_DETAILS = {
    **{"attempt": int, "gpus": int, "device": str, "node_type": str, "node": str | None, "machine": int},
    **{"engine_id": str | None, "exit_code": int | None, "left_fraction": float, "state": str, "is_up": bool},
    **{"jobs": Mapping[str, int], "running": list[str]},
    **dict.fromkeys(("machine_dollars", "tardiness_dollars", "dollars"), float),
}
_HANDED_OVER = {"slurm": str, "skypilot": str, "kueue": str, "ray": str}
_PRICED: Mapping[str, Any] = {"price_age_days": int}
"""Where a price is of the catalogue."""
_NEIGHBOURS = {"neighbours": list[Neighbour]}
_WARNINGS = {"warnings": list[str]}
_SETUP: Mapping[type[Record], Iterable[str]] = {api.Forecast: SETUP}
_STEP_MEMORY = AnswerShape(keys={"would_fit": list[Remedy]}, parts={api.Forecast: MEMORY_KEYS})

ANSWERS: Mapping[str, AnswerShape] = {
    "afford": AnswerShape(Affordable),
    "advise": AnswerShape(
        api.Advice,
        optional={"probe": ProbeAnswer, "loader": Mapping[str, _Scalar]},
        parts=_SETUP,
    ),
    "bench collectives": _bench(_COLLECTIVE_QUESTION, links=list[LinkFit]),
    "bench loader": _bench(_LOADER_QUESTION),
    "bench models": _bench(_MODEL_QUESTION),
    "bench ops": _bench(_OP_QUESTION, _LAYER_QUESTION),
    "bill": AnswerShape(RunBill),
    "calibrate": AnswerShape(Calibration, {"saved": str | None}),
    "check": AnswerShape(SpeedCheck, optional=_NEIGHBOURS),
    "datasets": AnswerShape(keys={"datasets": list[Dataset]}),
    "demo": AnswerShape(keys={"forecast": api.Forecast, "elsewhere": list[api.Forecast]}),
    "devices": AnswerShape(keys={"devices": list[Device]}),
    "diff": AnswerShape(
        api.Diff,
        {
            "base": api.Forecast,
            "head": api.Forecast,
            "settings": Mapping[str, tuple[_Scalar, _Scalar]],
        },
        _PRICED,
    ),
    "doctor": AnswerShape(DoctorReport),
    "evaluate": AnswerShape(Evaluation),
    "fit": AnswerShape(FittedDevice, {"written": list[str]}),
    "fit --shared": AnswerShape(SharedFit, {"written": list[str]}),
    "forecast": AnswerShape(
        api.Forecast,
        optional={"would_fit": list[Remedy], "explain": StepShares, **_PRICED, **_NEIGHBOURS, **_HANDED_OVER},
    ),
    "forecast generate": AnswerShape(api.Generation),
    "forecast grpo": AnswerShape(api.PostTraining),
    "advise grpo": AnswerShape(api.PlacementAdvice),
    "history compare": AnswerShape(HistoryComparison),
    "history fit": AnswerShape(
        keys={
            "target": str,
            "model": str,
            "rows": int,
            "features": list[str],
            "options": Mapping[str, _Scalar],
            "error": float,
            "written": str,
        }
    ),
    "history predict": AnswerShape(HistoryPrediction),
    "inspect": AnswerShape(api.Inspection, optional={"versus": ModelComparison, "memory": _STEP_MEMORY, **_WARNINGS}),
    "instances": AnswerShape(keys={"instances": list[Instance]}),
    "instances add": AnswerShape(keys={"file": str, "instance": Instance}),
    "instances import": AnswerShape(
        keys={
            "files": list[str],
            "instances": int,
            "reasons": Mapping[str, int],
            "skipped": list[Skipped],
        }
    ),
    "instances remove": AnswerShape(keys={"file": str, "name": str}),
    "instances update": AnswerShape(PriceUpdate),
    "jobs": AnswerShape(keys={"file": str, "jobs": list[CheckedJob]}),
    "jobs init": AnswerShape(keys={"file": str, "name": str}),
    "links": AnswerShape(keys={"links": list[Link]}),
    "models": AnswerShape(keys={"models": list[ZooModel], "hub": list[ListedHubModel]}),
    "oom": AnswerShape(OomDiagnosis),
    "plan": AnswerShape(api.Plan, optional=_HANDED_OVER, parts={api.Forecast: ("precision", "optimizer", *SETUP)}),
    "runs": AnswerShape(keys={"database": str, "runs": list[RunRow]}),
    "runs NAME": AnswerShape(
        RunRow,
        {
            "options": Mapping[str, object] | None,
            "attempts": list[Attempt],
            "observations": int,
            "progress": Standing | None,
        },
    ),
    "scaling": AnswerShape(api.Scaling, optional=_PRICED, parts=_SETUP),
    "schedule cancel": AnswerShape(keys={"queue": str, "cancelled": list[CancelledJob], "is_worked_on": bool}),
    "schedule plan": AnswerShape(Timetable, {"exceeded": list[str], "files": list[str]}),
    "schedule policies": AnswerShape(keys={"policies": list[ListedPolicy]}),
    "schedule queue": AnswerShape(QueueListing),
    "schedule run": AnswerShape(SchedulerEvent, optional=_EVENT_DETAILS),
    "schedule simulate": AnswerShape(PolicyComparison, {"refused": list[RefusedJob]}),
    "schedule submit": AnswerShape(keys={"queue": str, "added": list[str], "refused": list[RefusedJob]}),
    "serve token add": AnswerShape(keys={"name": str, "token": str}),
    "serve token end": AnswerShape(keys={"name": str, "ended": bool}),
    "serve token list": AnswerShape(keys={"tokens": list[Token]}),
    "share": AnswerShape(keys={"shared": SharedRun, "file": str | None}),
    "store export": AnswerShape(keys={"file": str, "lines": int}),
    "store import": AnswerShape(keys={"file": str, "added": Mapping[str, int]}),
    "store migrate": AnswerShape(keys={"database": str, "before": str | None, "after": str}),
    "store vacuum": AnswerShape(Thinned),
    "topologies": AnswerShape(keys={"topologies": list[Topology]}),
    "track": AnswerShape(
        TrackedLog,
        {"moves": list[Move] | None},
        parts={Standing: json_schema(Standing)["properties"]},
    ),
}


def answer_schema(command: str) -> dict[str, Any]:
    """The JSON schema of the answer of a command, such as "forecast" or "schedule plan"."""
    if command not in ANSWERS:
        raise UnknownName("command with a schema", command, ANSWERS)
    return ANSWERS[command].schema()
