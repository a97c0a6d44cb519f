"""Laws of time and memory over jobs of the zoo, each checked on one job and told in words where it is broken.

peak        no product, and no step, runs above the peak of the format it really runs in, but where Winograd's
            method explains it (`predict.cost.laws`)
formats     tf32 is never slower than fp32; nor is mixed precision (`predict.forecast.mixed_precision`), nor half,
where the device
            has tensor cores for the format
siblings    a device of the same vendor and generation with at least the rates of another is never slower
            (`hardware.siblings`, `predict.cost.slower_siblings`)
batch       a larger batch never takes less time per step
memory      a larger batch never needs less memory but for a segment of the allocator; checkpointing and freezing
            never need more; of ZeRO no stage needs more than the one before
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from epochcast.base.caching import remembered
from epochcast.describe.capture.zoo import ZOO
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.hardware.siblings import is_sibling
from epochcast.predict.cost.laws import least_seconds
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PRECISIONS = ("fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16")
# What rounding may do, of a forecast and of the order of siblings.
ROUNDING = 1e-6
# What an allocator may lose: its largest segment but for single large tensors.
SEGMENT_BYTES = 20 * 2**20
# Half precisions, and the format they multiply in.
HALVES = {"amp_fp16": "fp16", "amp_bf16": "bf16", "fp16": "fp16", "bf16": "bf16"}


@dataclass(frozen=True)
class Case:
    """A network of the zoo on a GPU at a batch."""

    model: str
    device: Device
    batch: int
    precision: str

    @property
    def key(self) -> Hashable:
        """What tells its step from others."""
        return self.model, self.device.name, self.batch, self.precision

    def __str__(self) -> str:
        return f"{self.model} on {self.device.name}, batch {self.batch}, {self.precision}"


@remembered(1)
def gpus() -> tuple[Device, ...]:
    """Of the catalogue."""
    return tuple(device for device in devices() if device.kind == "gpu")


def random_cases(seed: int, count: int, models: Sequence[str] = tuple(ZOO)) -> Iterator[Case]:
    """So many, always the same for a seed."""
    chance, boards = Random(seed), gpus()
    for _ in range(count):
        yield Case(chance.choice(models), chance.choice(boards), chance.choice(BATCHES), chance.choice(PRECISIONS))


def every_pair(precision: str = "amp_fp16", batch: int = 16) -> Iterator[Case]:
    """Every network on every GPU."""
    for model in ZOO:
        for device in gpus():
            yield Case(model, device, batch, precision)


class Asking:
    """Forecasts of a session, the seconds of each worked out once: laws compare the same ones again and again."""

    def __init__(self) -> None:
        self.session = Session(with_own_profiles=False)
        self._seconds: dict[Hashable, float] = {}
        self._placements = {device.name: place(device) for device in gpus()}

    def forecast(self, case: Case, **changed: Any) -> Forecast:
        """The step of a case, or of it with something changed."""
        case = replace(case, **changed)
        job = Job(case.model, batch=case.batch, precision=case.precision, optimizer="sgd")
        answer = forecast_job(job, self._placements[case.device.name], self.session, step_only=True)
        self._seconds[case.key] = answer.step_seconds.mid
        return answer

    def seconds(self, case: Case, **changed: Any) -> float:
        """How long that step takes."""
        key = replace(case, **changed).key
        if key not in self._seconds:
            self.forecast(case, **changed)
        return self._seconds[key]


def peak_law(case: Case, asking: Asking) -> Iterator[str]:
    """No op and no step above the peak."""
    answer = asking.forecast(case)
    details = answer.details
    least = least_seconds(details.trace.columns, case.device)
    if (details.step.costs.mid < least * (1 - ROUNDING)).any() or answer.step_seconds.mid < least.sum() * (
        1 - ROUNDING
    ):
        yield f"{case}: {least.sum() / answer.step_seconds.mid:.0%} of the peak"


def format_law(case: Case, asking: Asking) -> Iterator[str]:
    """tf32, mixed precision and half against fp32."""
    single, device = asking.seconds(case, precision="fp32"), case.device
    own = [name for name, math in HALVES.items() if device.tensor_cores and math in device.peak_flops_per_second]
    for precision in ("tf32", *own):
        ratio = asking.seconds(case, precision=precision) / single
        if ratio > 1 + ROUNDING:
            yield f"{case}: {precision} takes {ratio:.3f} times as long as fp32"


def sibling_law(case: Case, asking: Asking) -> Iterator[str]:
    """Against all siblings that are faster by their data sheets."""
    for device in gpus():
        if device == case.device or not is_sibling(case.device, device):
            continue
        ratio = asking.seconds(case, device=device) / asking.seconds(case)
        if ratio > 1 + ROUNDING:
            yield f"{case}: {device.name} takes {ratio:.3f} times as long"


def batch_law(case: Case, asking: Asking) -> Iterator[str]:
    """Against one more sample, and against twice as many."""
    for batch in (case.batch + 1, 2 * case.batch):
        if asking.seconds(case) > asking.seconds(case, batch=batch) * (1 + ROUNDING):
            yield f"{case}: a batch of {batch} takes less time"


def memory_law(case: Case, asking: Asking) -> Iterator[str]:
    """Against one more sample and twice as many, checkpointing, frozen parameters, and the stages of ZeRO."""
    session = asking.session
    own = _peak_bytes(case, session)
    for batch in (case.batch + 1, 2 * case.batch):
        if _peak_bytes(case, session, batch=batch) < own - SEGMENT_BYTES:
            yield f"{case}: a batch of {batch} needs less memory"
    for changed in (
        {"checkpointing": True},
        {"checkpointing": "selective"},
        {"freeze": ("*",)},
        {"freeze": ("*weight",)},
    ):
        try:
            peak = _peak_bytes(case, session, **changed)
        except BadInput:  # checkpointing finds neither repeated blocks nor attention
            continue
        if peak > own:
            yield f"{case}: {(peak - own) / 2**20:.0f} MiB more memory with {changed}"
    stages = [_peak_bytes(case, session, strategy=name) for name in ("ddp", "zero1", "zero2", "zero3")]
    for before, after, stage in zip(stages, stages[1:], (1, 2, 3), strict=False):
        if after > before:
            yield f"{case}: zero{stage} needs {after / before:.2f} times the memory of the stage before"


def _peak_bytes(case: Case, session: Session, *, strategy: str | None = None, **changed: object) -> float:
    options: dict[str, object] = {"batch": case.batch, "precision": case.precision, "optimizer": "sgd", **changed}
    where = place(case.device) if strategy is None else place(case.device, gpus=8, strategy=strategy)
    peak = forecast_job(Job(case.model, **options), where, session).peak_bytes  # type: ignore[arg-type]
    assert peak is not None
    return peak.mid


LAWS: Mapping[str, Callable[[Case, Asking], Iterator[str]]] = {
    "peak": peak_law,
    "formats": format_law,
    "siblings": sibling_law,
    "batch": batch_law,
    "memory": memory_law,
}


def broken(cases: Iterable[Case], laws: Sequence[str] = tuple(LAWS)) -> dict[str, list[str]]:
    """By law, what breaks it. Cases of one network should follow each other: a session keeps the last few."""
    asking = Asking()
    found: dict[str, list[str]] = {law: [] for law in laws}
    for case in sorted(cases, key=lambda case: case.model):
        for law in laws:
            found[law] += LAWS[law](case, asking)
    return found
