"""Which files a forecast or a plan is handed over as, and what it cannot know of them."""

from dataclasses import dataclass

from epochcast.base.options import Option, check_fields, option, options_of

GROUP = "handover"


@dataclass(frozen=True, kw_only=True)
class HandoverRequest:
    """The files of schedulers that are wanted."""

    slurm: bool = option(False, "Print a batch script of Slurm instead.", group=GROUP)
    skypilot: bool = option(False, "Print a task of SkyPilot instead.", group=GROUP)
    kueue: bool = option(False, "Print a Kubernetes Job for Kueue instead.", group=GROUP)
    ray: bool = option(False, "Print a job of Ray instead.", group=GROUP)
    command: str | None = option(
        None, "What starts the training, for these files; of file.py:NAME, that file.", flag="--run", group=GROUP
    )
    queue: str | None = option(None, "The local queue of Kueue.", group=GROUP)
    image: str | None = option(None, "The container image, for Kueue.", group=GROUP)

    def __post_init__(self) -> None:
        check_fields(self, HANDOVER_OPTIONS)

    def __bool__(self) -> bool:
        return self.slurm or self.skypilot or self.kueue or self.ray


HANDOVER_OPTIONS: tuple[Option, ...] = options_of(HandoverRequest)
