"""`--slurm`, `--skypilot`, `--kueue` and `--ray`: a forecast as the file that a scheduler takes, instead of a table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.errors import BadInput

if TYPE_CHECKING:
    from epochcast.decide.plan.offers import Offer
    from epochcast.decide.plan.plan_answer import Plan
    from epochcast.interval import Interval
    from epochcast.predict.forecast.forecast import Forecast

_PANEL = "Scheduler files"


def _flag(name: str, document: str) -> Any:
    return typer.Option(name, help=f"Print {document} instead.", rich_help_panel=_PANEL)


def _word(name: str, help_text: str) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=_PANEL)


Slurm = Annotated[bool, _flag("--slurm", "a batch script of Slurm")]
SkyPilot = Annotated[bool, _flag("--skypilot", "a task of SkyPilot")]
Kueue = Annotated[bool, _flag("--kueue", "a Kubernetes Job for Kueue")]
Ray = Annotated[bool, _flag("--ray", "a job of Ray")]
Run = Annotated[str | None, _word("--run", "What starts the training, for these files; of file.py:NAME, that file.")]
Queue = Annotated[str | None, _word("--queue", "The local queue of Kueue.")]
Image = Annotated[str | None, _word("--image", "The container image, for Kueue.")]


@dataclass(frozen=True, slots=True)
class HandOver:
    """Which files are wanted, and what the forecast cannot know."""

    slurm: bool = False
    skypilot: bool = False
    kueue: bool = False
    ray: bool = False
    command: str | None = None
    queue: str | None = None
    image: str | None = None

    def __bool__(self) -> bool:
        return self.slurm or self.skypilot or self.kueue or self.ray

    def of_plan(self, plan: "Plan") -> dict[str, str]:
        """The files of the configuration that a plan chose; nothing where it found none within the limits."""
        if not self or (plan.limits and plan.chosen is None):
            return {}
        if plan.chosen is None:
            raise BadInput("nothing is chosen that could be handed over: give a deadline or a budget")
        chosen = plan.chosen
        return self.texts(chosen.forecast, offer=chosen.offer, seconds=chosen.total_seconds)

    def texts(
        self, forecast: "Forecast", *, offer: "Offer | None" = None, seconds: "Interval | None" = None
    ) -> dict[str, str]:
        """The files by name. `offer` is what a plan chose, `seconds` its time where that is not the forecast's."""
        if not self:
            return {}
        from epochcast.decide.handover.kueue_job import kueue
        from epochcast.decide.handover.ray_job import ray_job
        from epochcast.decide.handover.resource_request import request_of
        from epochcast.decide.handover.skypilot_task import skypilot
        from epochcast.decide.handover.slurm_script import slurm

        request = request_of(
            forecast,
            command=self.command,
            instance=offer.instance if offer else None,
            is_spot=offer is not None and offer.is_spot,
            seconds=seconds,
        )
        makers: dict[str, Callable[[], str]] = {
            "slurm": lambda: slurm(request),
            "skypilot": lambda: skypilot(request),
            "kueue": lambda: kueue(request, queue=self.queue, image=self.image),
            "ray": lambda: ray_job(request),
        }
        return {name: make() for name, make in makers.items() if getattr(self, name)}
