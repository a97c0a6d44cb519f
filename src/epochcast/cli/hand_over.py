"""`--slurm`, `--skypilot`, `--kueue` and `--ray`: a forecast as the file that a scheduler takes, instead of a table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from epochcast.forecasting.forecast import Forecast
    from epochcast.hardware.instance import Instance
    from epochcast.interval import Interval

_PANEL = "Handed over"


@dataclass(frozen=True, slots=True)
class HandOver:
    """Which files are wanted, and what the forecast cannot know. The annotations are those of the command line."""

    slurm: bool = False
    skypilot: bool = False
    kueue: bool = False
    ray: bool = False
    command: str | None = None
    queue: str | None = None
    image: str | None = None

    def texts(
        self, forecast: "Forecast", *, instance: "Instance | None" = None, seconds: "Interval | None" = None
    ) -> dict[str, str]:
        """The files by name. `instance` is what a plan chose, `seconds` its time where that is not the forecast's."""
        if not (self.slurm or self.skypilot or self.kueue or self.ray):
            return {}
        from epochcast.handover.kueue import kueue
        from epochcast.handover.ray_job import ray_job
        from epochcast.handover.request import request_of
        from epochcast.handover.skypilot import skypilot
        from epochcast.handover.slurm import slurm

        request = request_of(forecast, command=self.command, instance=instance, seconds=seconds)
        makers = {
            "slurm": lambda: slurm(request),
            "skypilot": lambda: skypilot(request),
            "kueue": lambda: kueue(request, queue=self.queue, image=self.image),
            "ray": lambda: ray_job(request),
        }
        return {name: make() for name, make in makers.items() if getattr(self, name)}

    Slurm = Annotated[
        bool, typer.Option("--slurm", help="Print a batch script of Slurm instead.", rich_help_panel=_PANEL)
    ]
    SkyPilot = Annotated[
        bool, typer.Option("--skypilot", help="Print a task of SkyPilot instead.", rich_help_panel=_PANEL)
    ]
    Kueue = Annotated[
        bool, typer.Option("--kueue", help="Print a Kubernetes Job for Kueue instead.", rich_help_panel=_PANEL)
    ]
    Ray = Annotated[bool, typer.Option("--ray", help="Print a job of Ray instead.", rich_help_panel=_PANEL)]
    Command = Annotated[
        str | None,
        typer.Option(
            "--run",
            help="What starts the training, for these files; of file.py:NAME, that file.",
            rich_help_panel=_PANEL,
        ),
    ]
    Queue = Annotated[str | None, typer.Option("--queue", help="The local queue of Kueue.", rich_help_panel=_PANEL)]
    Image = Annotated[
        str | None, typer.Option("--image", help="The container image, for Kueue.", rich_help_panel=_PANEL)
    ]
