"""Verbs that begin with a measurement: a speed, an error message, files of `epochcast bench`. `api` has them, too."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epochcast.api_options import Config, job_and_where, session_for, setting_paths, takes, with_read_notes
from epochcast.errors import BadInput
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.forecast.where import Where

if TYPE_CHECKING:
    from epochcast.measure.fit.local_fit import FittedDevice
    from epochcast.measure.shared.shared_run import SharedRun
    from epochcast.observe.check.observation import Observation
    from epochcast.observe.check.observed import Observed
    from epochcast.observe.check.speed_check import SpeedCheck
    from epochcast.observe.oom.oom_diagnosis import OomDiagnosis

__all__ = ["check", "fit", "oom", "share"]


@takes(Job, Where)
def check(
    model: object = None,
    observed: "Observed | None" = None,
    placement: Placement | None = None,
    *,
    pid: int | None = None,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> "SpeedCheck":
    """Whether a speed is normal for a job, and the likeliest causes where it is not.

    `observed` is a speed ("39s/it", "2.1k tokens/s"), seconds per step, the path of a log or of a trace of
    torch.profiler, or pasted lines of a log. `pid` is a running process, whose command line, log and GPU are read.
    `options` are those of `Job` and `Where`.

    >>> import epochcast as ec
    >>> answer = ec.check("resnet50", observed="100img/s", device="V100", batch=64)
    >>> answer.verdict, len(answer.causes) > 0
    ('slower', True)
    """
    from epochcast.observe.check.speed_check import check_speed

    observation = _observation(observed, pid)
    if pid is not None and config is not None and not isinstance(model, Job):
        config = _with_command(pid, config, is_alone=model is None and not config)
    job, where, notes = job_and_where(check, model, options, placement, config)
    session = session_for(session, cost_model, profile)
    answer = check_speed(job, placement or placement_of(where, job, session), observation, session)
    return replace(answer, forecast=with_read_notes(answer.forecast, notes))


def _with_command(pid: int, config: Sequence[str | Path], is_alone: bool) -> Sequence[str | Path]:
    """The command line of a process before the files of settings."""
    from epochcast.observe.check.observed_process import command_settings

    return (*command_settings(pid, is_alone), *setting_paths(config))


def _observation(observed: "Observed | None", pid: int | None) -> "Observation":
    from epochcast.observe.check.observed import read_observed
    from epochcast.observe.check.observed_process import RunningProcess

    observation = None if observed is None else read_observed(observed)
    if pid is not None:
        return RunningProcess.of(pid).observation(observation)
    if observation is None:
        raise BadInput("say what was observed: a speed like '39s/it', a log, or the number of a process (`pid`)")
    return observation


@takes(Job, Where)
def oom(
    message: str | Path,
    model: object = None,
    placement: Placement | None = None,
    *,
    config: Config = (),
    profile: str | Path | None = None,
    cost_model: CostModel | str | None = None,
    session: Session | None = None,
    **options: Any,
) -> "OomDiagnosis":
    """What filled the card when a training ran out of memory, and what would fit.

    `message` is the error with its traceback, or the path of a log that holds it. With a job (a `model` or a `Job`,
    options of `Job` and `Where`, or files of `config`) tensors are separated, and remedies are forecast.

    >>> import epochcast as ec
    >>> message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    >>> answer = ec.oom(message, "resnet50", device="V100", batch=512)
    >>> len(answer.remedies) > 0
    True
    """
    from epochcast.observe.oom.oom_diagnosis import diagnosed, diagnosed_job
    from epochcast.observe.oom.oom_message import read_oom, read_oom_file

    said = read_oom_file(message) if isinstance(message, Path) else read_oom(message)
    if model is None and not config:
        if options or placement is not None:
            raise BadInput("options of a job need its model, or a file of settings (`config`)")
        return diagnosed(said)
    job, where, notes = job_and_where(oom, model, options, placement, config)
    session = session_for(session, cost_model, profile)
    answer = diagnosed_job(said, job, placement or placement_of(where, job, session), session)
    return replace(answer, warnings=(*answer.warnings, *notes))


def fit(
    measurements: Sequence[Path],
    *,
    progress: Callable[[float], None] | None = None,
    allow_code: bool = False,
    shared: Path | None = None,
) -> "FittedDevice":
    """The model of the device that files of `epochcast bench` measure; `cost_model=answer.model` forecasts with it.

    `allow_code` lets a measured step be of `file.py:factory`, which runs it; files from elsewhere should not. `shared`
    is a folder of shared runs, whose steps on the same hardware count, too.

    >>> import epochcast as ec
    >>> from pathlib import Path
    >>> try:
    ...     answer = ec.fit([Path("ops.jsonl")])  # written by `epochcast bench ops --out ops.jsonl`
    ... except ec.EpochcastError as error:
    ...     print("measure first:", error)
    measure first: ...
    """
    from epochcast.measure.fit.local_fit import fit_files
    from epochcast.measure.fit.shared_fit import shared_steps
    from epochcast.measure.shared.shared_run import shared_in

    today = datetime.now(UTC).date().isoformat()
    steps = () if shared is None else shared_steps(shared_in(shared))
    return fit_files(measurements, date=today, progress=progress, allow_code=allow_code, steps=steps)


@takes(Job, Where)
def share(
    model: object = None,
    observed: "Observed | None" = None,
    placement: Placement | None = None,
    *,
    pid: int | None = None,
    contributor: str | None = None,
    config: Config = (),
    session: Session | None = None,
    **options: Any,
) -> "SharedRun":
    """A measured run as it is shared: `answer.text()` is the file, and nothing in it says who or where.

    `observed`, `pid` and options are those of `check`; `contributor` is named where one wants to be.

    >>> import epochcast as ec
    >>> run = ec.share("resnet50", observed="350img/s", device="V100", batch=64)
    >>> "resnet50" in run.text()
    True
    """
    from epochcast.observe.share.run_sharing import shared_observation

    observation = _observation(observed, pid)
    job, where, _ = job_and_where(share, model, options, placement, config)
    session = session_for(session, None, None)
    placement = placement or placement_of(where, job, session)
    return shared_observation(job, placement, observation, session, contributor=contributor)
