"""epochcast: how long a training job will take, what it needs and what it costs, before it runs.

Public names are loaded on first use, so that importing the package is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochcast import testing as testing
    from epochcast.api import advise as advise
    from epochcast.api import afford as afford
    from epochcast.api import diff as diff
    from epochcast.api import forecast as forecast
    from epochcast.api import generate as generate
    from epochcast.api import inspect as inspect
    from epochcast.api import plan as plan
    from epochcast.api import post_train as post_train
    from epochcast.api import scaling as scaling
    from epochcast.api_measured import check as check
    from epochcast.api_measured import fit as fit
    from epochcast.api_measured import oom as oom
    from epochcast.api_measured import share as share
    from epochcast.describe.capture.workload import Workload as Workload
    from epochcast.describe.graph.op import Kind as Kind
    from epochcast.describe.graph.op import Op as Op
    from epochcast.describe.graph.op_registry import register_op as register_op
    from epochcast.describe.graph.op_work import OpClass as OpClass
    from epochcast.errors import AmbiguousName as AmbiguousName
    from epochcast.errors import BadInput as BadInput
    from epochcast.errors import DoesNotFit as DoesNotFit
    from epochcast.errors import EpochcastError as EpochcastError
    from epochcast.errors import MissingExtra as MissingExtra
    from epochcast.errors import OverLimit as OverLimit
    from epochcast.errors import UnknownName as UnknownName
    from epochcast.errors import UnknownOption as UnknownOption
    from epochcast.hardware.device import Device as Device
    from epochcast.interval import Interval as Interval
    from epochcast.observe.logs.follow_log import follow as follow
    from epochcast.observe.logs.log_reader import read_log as read_log
    from epochcast.observe.recording.speed_line import SpeedLine as SpeedLine
    from epochcast.observe.recording.track_loop import track as track
    from epochcast.observe.runs.standing import Standing as Standing
    from epochcast.predict.forecast.forecast import Forecast as Forecast
    from epochcast.predict.forecast.job import Job as Job
    from epochcast.predict.forecast.job_file import read_job as read_job
    from epochcast.predict.forecast.job_file import read_jobs as read_jobs
    from epochcast.predict.forecast.placement import Placement as Placement
    from epochcast.predict.forecast.placement import place as place
    from epochcast.predict.forecast.session import Session as Session
    from epochcast.predict.forecast.where import Where as Where
    from epochcast.predict.post_training.generation import Generation as Generation
    from epochcast.predict.post_training.post_training import PostTraining as PostTraining
    from epochcast.queues import schedule_plan as schedule_plan

__version__ = "0.2.0"
__all__ = [
    "AmbiguousName",
    "BadInput",
    "Device",
    "DoesNotFit",
    "EpochcastError",
    "Forecast",
    "Generation",
    "Interval",
    "Job",
    "Kind",
    "MissingExtra",
    "Op",
    "OpClass",
    "OverLimit",
    "Placement",
    "PostTraining",
    "Session",
    "SpeedLine",
    "Standing",
    "UnknownName",
    "UnknownOption",
    "Where",
    "Workload",
    "__version__",
    "advise",
    "afford",
    "check",
    "diff",
    "fit",
    "follow",
    "forecast",
    "generate",
    "inspect",
    "oom",
    "place",
    "plan",
    "post_train",
    "read_job",
    "read_jobs",
    "read_log",
    "register_op",
    "scaling",
    "schedule_plan",
    "share",
    "testing",
    "track",
]

# Where each public name is defined.
_HOMES = {
    **dict.fromkeys(
        (
            "advise",
            "afford",
            "check",
            "diff",
            "fit",
            "forecast",
            "generate",
            "inspect",
            "oom",
            "plan",
            "post_train",
            "scaling",
            "share",
        ),
        "epochcast.api",
    ),
    **dict.fromkeys(
        (
            "AmbiguousName",
            "BadInput",
            "DoesNotFit",
            "EpochcastError",
            "MissingExtra",
            "OverLimit",
            "UnknownName",
            "UnknownOption",
        ),
        "epochcast.errors",
    ),
    "Device": "epochcast.hardware.device",
    "Forecast": "epochcast.predict.forecast.forecast",
    "Interval": "epochcast.interval",
    "Job": "epochcast.predict.forecast.job",
    **dict.fromkeys(("Kind", "Op"), "epochcast.describe.graph.op"),
    "OpClass": "epochcast.describe.graph.op_work",
    "Placement": "epochcast.predict.forecast.placement",
    "Standing": "epochcast.observe.runs.standing",
    "Session": "epochcast.predict.forecast.session",
    "SpeedLine": "epochcast.observe.recording.speed_line",
    "Where": "epochcast.predict.forecast.where",
    "Generation": "epochcast.predict.post_training.generation",
    "PostTraining": "epochcast.predict.post_training.post_training",
    "Workload": "epochcast.describe.capture.workload",
    "place": "epochcast.predict.forecast.placement",
    **dict.fromkeys(("read_job", "read_jobs"), "epochcast.predict.forecast.job_file"),
    "follow": "epochcast.observe.logs.follow_log",
    "read_log": "epochcast.observe.logs.log_reader",
    "register_op": "epochcast.describe.graph.op_registry",
    "schedule_plan": "epochcast.queues",
    "track": "epochcast.observe.recording.track_loop",
}


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other names

    def __getattr__(name: str) -> Any:
        if name == "testing":
            return import_module("epochcast.testing")
        if name not in _HOMES:
            raise AttributeError(f"module 'epochcast' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return __all__
