"""Forecasts for SkyPilot's optimizer, which takes an hour for every task that has no estimate.

    task = sky.Task(run="python train.py", num_nodes=2)
    task.set_resources({sky.Resources(accelerators="A100:8"), sky.Resources(accelerators="H100:8")})
    epochcast.surfaces.integrations.skypilot.estimate(task, ec.Job("resnet50", batch=128, dataset="imagenet-1k",
    epochs=90))

`sky.Task.set_time_estimator` takes a function from resources to seconds, and calls it for every candidate.
"""

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol, TypeVar

from epochcast.decide.handover.skypilot_task import device_of
from epochcast.errors import BadInput
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where


class Resources(Protocol):
    """What is read of `sky.Resources`: accelerators by name with their number on each node, None for processors."""

    @property
    def accelerators(self) -> dict[str, int | float] | None: ...


class Task(Protocol):
    """What is used of `sky.Task`."""

    @property
    def num_nodes(self) -> int: ...

    def set_time_estimator(self, func: Callable[[Any], int]) -> Any: ...


AnyTask = TypeVar("AnyTask", bound=Task)


def estimate(task: AnyTask, job: Job, *, sure: bool = False, session: Session | None = None, **place: Any) -> AnyTask:
    """The task, with the forecasts of a job for SkyPilot's optimizer; `place` are other options of `Where`."""
    task.set_time_estimator(time_estimator(job, nodes=task.num_nodes, sure=sure, session=session, **place))
    return task


def time_estimator(
    job: Job, *, nodes: int = 1, sure: bool = False, session: Session | None = None, **place: Any
) -> Callable[[Resources], int]:
    """Seconds of a job on what SkyPilot may rent: expected, or where `sure` at the 95th percentile.

    What the job does not fit on is refused, as SkyPilot has no word for it.
    """
    used_session = session or Session()

    def seconds(resources: Resources) -> int:
        accelerators = resources.accelerators
        if not accelerators:
            raise BadInput("a job is forecast for accelerators: give the resources some, such as A100:8")
        (name, count), *_ = accelerators.items()
        if count != int(count):
            raise BadInput(f"a part of an accelerator ({name}:{count}) cannot be forecast")
        where = Where(device_of(name), gpus=nodes * int(count), nodes=nodes, **place)
        forecast = forecast_job(job, placement_of(where, job, used_session), used_session)
        if forecast.total_seconds is None:
            raise BadInput("SkyPilot asks how long the job takes: give the job a dataset or samples")
        if not forecast.fits:
            raise BadInput(f"the job does not fit on {name}: it needs more memory than the device has")
        return ceil(forecast.total_seconds.high if sure else forecast.total_seconds.mid)

    return seconds
