"""How a post-training job shares its GPUs between generation and training: every way, the fastest that fits first.

colocated       all GPUs generate, then all train: none waits, and the engine's cache shares the memory
split           some generate while the others wait, and the other way round
asynchronous    a split whose generation runs one step ahead: a step takes as long as the slower side
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.notes import Note
from epochcast.base.record import Record
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.session import Session
from epochcast.predict.post_training.post_training import PostTraining, forecast_post_training
from epochcast.units import show_seconds

QUARTERS = (1, 2, 3)
"""Of the GPUs that may generate alone."""


@dataclass(frozen=True, slots=True)
class GpuSplit(Record):
    """One way to share the GPUs, with its forecast. `in_flight` are the sequences that its engines take at once."""

    generation_gpus: int | None
    staleness: int
    in_flight: int | None
    step_seconds: Interval
    tokens_per_second_per_gpu: float
    peak_bytes: float
    fits: bool


@dataclass(frozen=True, repr=False)
class PlacementAdvice(Displayed, Record):
    """The ways to share the GPUs of a job, those that fit first, each by its step."""

    view: ClassVar[str] = "placement_advice"
    json_version: ClassVar[int | None] = 1
    json_also: ClassVar[tuple[str, ...]] = ("fits",)

    model: str
    device: str
    gpus: int
    algorithm: str
    prompts_per_step: int
    responses_per_step: int
    memory_bytes: int
    splits: tuple[GpuSplit, ...]
    warnings: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether one of them fits."""
        return self.splits[0].fits


def advise_placement(job: Job, placement: Placement, session: Session) -> PlacementAdvice:
    """All ways to share the GPUs of a place, forecast one by one."""
    if not job.generates:
        raise BadInput(f"{job.algorithm} generates nothing, so there are no GPUs to share out: ask epochcast forecast")
    answers = [(each, forecast_post_training(each, placement, session)) for each in _ways(job, placement)]
    splits = sorted((_split(*pair) for pair in answers), key=lambda split: (not split.fits, split.step_seconds.mid))
    first = answers[0][1]
    return PlacementAdvice(
        model=first.model,
        device=first.device,
        gpus=first.gpus,
        algorithm=first.algorithm,
        prompts_per_step=first.prompts_per_step,
        responses_per_step=first.responses_per_step,
        memory_bytes=first.memory_bytes,
        splits=tuple(splits),
        warnings=tuple(_notes(splits)),
    )


def _ways(job: Job, placement: Placement) -> Iterator[Job]:
    """Colocated, and splits by quarters of the GPUs, in turn and asynchronous; nodes stay whole."""
    yield replace(job, generation_gpus=None, staleness=0)
    counts = {placement.gpus * quarter // 4 // placement.nodes * placement.nodes for quarter in QUARTERS}
    for count in sorted(each for each in counts if 0 < each < placement.gpus):
        for staleness in (0, 1):
            yield replace(job, generation_gpus=count, staleness=staleness, engine_memory_fraction=None)


def _split(job: Job, answer: PostTraining) -> GpuSplit:
    return GpuSplit(
        job.generation_gpus,
        job.staleness,
        answer.in_flight,
        answer.step_seconds,
        answer.tokens_per_second_per_gpu,
        answer.peak_bytes.mid,
        answer.fits,
    )


def _notes(splits: list[GpuSplit]) -> Iterator[Note]:
    fitting = [split for split in splits if split.fits]
    if not fitting:
        yield Note("No way to share these GPUs fits: use more of them, LoRA, or reference_offload.")
        return
    shared = next((split for split in fitting if split.generation_gpus is None), None)
    apart = next((split for split in fitting if split.generation_gpus is not None), None)
    if shared is None or apart is None:
        return
    times = f"{show_seconds(shared.step_seconds.mid)} colocated, {show_seconds(apart.step_seconds.mid)} split"
    if shared.step_seconds.mid <= apart.step_seconds.mid:
        yield Note(f"Colocation pays: {times}.")
    else:
        run = f"generation_gpus {apart.generation_gpus}" + (" and staleness 1" if apart.staleness else "")
        yield Note(f"A split pays: {times}. Use {run}.")
