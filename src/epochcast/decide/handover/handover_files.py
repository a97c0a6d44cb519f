"""The files that schedulers take, of a forecast or of the choice of a plan, by the option that asks for each."""

from collections.abc import Callable

from epochcast.decide.handover.handover_request import HandoverRequest
from epochcast.decide.handover.kueue_job import kueue
from epochcast.decide.handover.ray_job import ray_job
from epochcast.decide.handover.resource_request import Request, request_of
from epochcast.decide.handover.skypilot_task import skypilot
from epochcast.decide.handover.slurm_script import slurm
from epochcast.decide.plan.plan_answer import Plan
from epochcast.predict.forecast.forecast import Forecast


def forecast_files(forecast: Forecast, wanted: HandoverRequest) -> dict[str, str]:
    """The files of a forecast."""
    return _files(request_of(forecast, command=wanted.command), wanted) if wanted else {}


def plan_files(plan: Plan, wanted: HandoverRequest) -> dict[str, str]:
    """The files of the configuration that a plan chose; none where nothing is within the limits."""
    chosen = plan.chosen
    if not wanted or chosen is None:
        return {}
    request = request_of(
        chosen.forecast,
        command=wanted.command,
        instance=chosen.offer.instance,
        is_spot=chosen.offer.is_spot,
        seconds=chosen.total_seconds,
    )
    return _files(request, wanted)


def _files(request: Request, wanted: HandoverRequest) -> dict[str, str]:
    writers: dict[str, Callable[[], str]] = {
        "slurm": lambda: slurm(request),
        "skypilot": lambda: skypilot(request),
        "kueue": lambda: kueue(request, queue=wanted.queue, image=wanted.image),
        "ray": lambda: ray_job(request),
    }
    return {name: write() for name, write in writers.items() if getattr(wanted, name)}
