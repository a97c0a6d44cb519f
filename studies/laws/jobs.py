"""Laws of time and memory over jobs of the zoo, each checked on one job and told in words where it is broken.

    peak        no product, and no step, runs above the peak of the format it really runs in, but where Winograd's
                method explains it (`cost.laws`)
    formats     tf32 is never slower than fp32; mixed precision is not, but for its casts, where tensor cores work:
                where the products of the fp32 step, at the peak of fp32, would take a third of it
    siblings    a device of the same vendor and generation with at least the rates and the cache of another is never
                slower, but for waves: tiles that fill one more wave over fewer or slower multiprocessors
    batch       a larger batch never takes less time per step
    memory      a larger batch never needs less memory but for a segment of the allocator; checkpointing and freezing
                never need more; of ZeRO no stage needs more than the one before

A small step of many casts is slower in mixed precision for real: it waits for launches.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from epochcast.capture.zoo import ZOO
from epochcast.cost.laws import least_seconds
from epochcast.cost.learned import load_learned
from epochcast.cost.waves import is_tiled, log_padding, log_paddings
from epochcast.errors import BadInput
from epochcast.forecasting.forecast import Forecast
from epochcast.forecasting.forecaster import forecast_job
from epochcast.forecasting.job import Job
from epochcast.forecasting.placement import place
from epochcast.forecasting.session import Session
from epochcast.graph.trace import CLASSES
from epochcast.graph.work import OpClass
from epochcast.hardware.catalogue import devices
from epochcast.hardware.device import Device
from epochcast.hardware.siblings import is_sibling

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PRECISIONS = ("fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16")
# What rounding may do, of a forecast and of the order of siblings.
ROUNDING = 1e-6
# What an allocator may lose: its largest segment but for single large tensors.
SEGMENT_BYTES = 20 * 2**20
# From this part of a step on, at the peak of fp32, products are what tensor cores work on.
ARITHMETIC = 1 / 3


@dataclass(frozen=True)
class Case:
    """A network of the zoo on a GPU at a batch."""

    model: str
    device: Device
    batch: int
    precision: str

    def __str__(self) -> str:
        return f"{self.model} on {self.device.name}, batch {self.batch}, {self.precision}"


def gpus() -> list[Device]:
    """Of the catalogue."""
    return [device for device in devices() if device.kind == "gpu"]


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


def asked(case: Case, session: Session, **changed: object) -> Forecast:
    """The forecast of a case, or of it with something changed."""
    options: dict[str, object] = {"device": case.device, "batch": case.batch, "precision": case.precision, **changed}
    device = options.pop("device")
    assert isinstance(device, Device)
    job = Job(case.model, **options)  # type: ignore[arg-type]
    return forecast_job(job, place(device), session, step_only=True)


def _slower(one: Forecast, other: Forecast, tolerance: float = ROUNDING) -> bool:
    return one.step_seconds.mid > other.step_seconds.mid * (1 + tolerance)


def peak_law(case: Case, session: Session) -> Iterator[str]:
    """No op and no step above the peak."""
    answer = asked(case, session)
    details = answer.details
    least = least_seconds(details.trace.columns, case.device)
    if (details.step.costs.mid < least * (1 - ROUNDING)).any() or answer.step_seconds.mid < least.sum() * (
        1 - ROUNDING
    ):
        yield f"{case}: {least.sum() / answer.step_seconds.mid:.0%} of the peak"


def format_law(case: Case, session: Session) -> Iterator[str]:
    """tf32 and mixed precision against fp32."""
    single = asked(case, session, precision="fp32")
    if _slower(asked(case, session, precision="tf32"), single):
        yield f"{case}: tf32 is slower than fp32"
    trace, peaks = single.details.trace, case.device.peak_flops_per_second
    least = float(np.sum(trace.columns.flops[trace.columns.is_matrix])) / case.device.peak("fp32")
    if not case.device.tensor_cores or least < ARITHMETIC * single.step_seconds.mid:
        return
    for precision, math in (("amp_fp16", "fp16"), ("amp_bf16", "bf16"), ("fp16", "fp16"), ("bf16", "bf16")):
        if math not in peaks:
            continue
        half = asked(case, session, precision=precision)
        if half.step_seconds.mid - _casting(half) + _casting(single) > single.step_seconds.mid * (1 + ROUNDING):
            yield f"{case}: {precision} is slower than fp32"


def _casting(answer: Forecast) -> float:
    """Seconds of copies, casts among them, and of waiting for the host to start all kernels."""
    is_copy = answer.details.trace.columns.op_class == CLASSES.index(OpClass.COPY)
    return float(answer.details.step.costs.mid[is_copy].sum()) + answer.details.step.parts.host


def sibling_law(case: Case, session: Session, most: int = 3) -> Iterator[str]:
    """Against some of the siblings that are faster by their data sheets."""
    faster = [
        device
        for device in gpus()
        if device != case.device
        and is_sibling(case.device, device)
        and (device.l2_bytes or 0) >= (case.device.l2_bytes or 0)
    ]
    own = asked(case, session)
    for device in Random(case.model).sample(faster, min(most, len(faster))):
        other = asked(case, session, device=device)
        if _slower(other, own, ROUNDING + _waves(own, case.device, device)):
            ratio = other.step_seconds.mid / own.step_seconds.mid
            yield f"{case}: {device.name} is {ratio:.3f} times as slow"


def _waves(answer: Forecast, own: Device, other: Device) -> float:
    """The part of a step that more padding of tiles and waves on the other device may add."""
    columns, tile_costs = answer.details.trace.columns, load_learned().laws.tile_costs
    mine, others = (
        log_padding(log_paddings(columns, device), is_tiled(columns), tile_costs) for device in (own, other)
    )
    added = answer.details.step.costs.mid * np.expm1(np.maximum(others - mine, 0.0))
    return float(added.sum()) / answer.step_seconds.mid


def memory_law(case: Case, session: Session) -> Iterator[str]:
    """Against one more sample and twice as many, checkpointing, a frozen network, and the stages of ZeRO."""
    own = _peak_bytes(case, session)
    for batch in (case.batch + 1, 2 * case.batch):
        if _peak_bytes(case, session, batch=batch) < own - SEGMENT_BYTES:
            yield f"{case}: a batch of {batch} needs less memory"
    for changed in ({"checkpointing": True}, {"freeze": ("*",)}):
        if "checkpointing" in changed and not _has_blocks(case, session):
            continue
        if _peak_bytes(case, session, **changed) > own + SEGMENT_BYTES:
            yield f"{case}: more memory with {changed}"
    stages = [_peak_bytes(case, session, strategy=name) for name in ("ddp", "zero1", "zero2", "zero3")]
    for before, after, stage in zip(stages, stages[1:], (1, 2, 3), strict=False):
        if after > before + SEGMENT_BYTES:
            yield f"{case}: zero{stage} needs {after / before:.2f} times the memory of the stage before"


def _has_blocks(case: Case, session: Session) -> bool:
    """Whether checkpointing has repeated blocks to work on."""
    try:
        asked(case, session, checkpointing=True)
    except BadInput:
        return False
    return True


def _peak_bytes(case: Case, session: Session, *, strategy: str | None = None, **changed: object) -> float:
    options: dict[str, object] = {"batch": case.batch, "precision": case.precision, **changed}
    where = place(case.device) if strategy is None else place(case.device, gpus=8, strategy=strategy)
    peak = forecast_job(Job(case.model, **options), where, session).peak_bytes  # type: ignore[arg-type]
    assert peak is not None
    return peak.mid


def batch_law(case: Case, session: Session) -> Iterator[str]:
    """Against one more sample, and against twice as many."""
    own = asked(case, session)
    for batch in (case.batch + 1, 2 * case.batch):
        if _slower(own, asked(case, session, batch=batch)):
            yield f"{case}: a batch of {batch} takes less time"


LAWS: Mapping[str, Callable[[Case, Session], Iterator[str]]] = {
    "peak": peak_law,
    "formats": format_law,
    "siblings": sibling_law,
    "batch": batch_law,
    "memory": memory_law,
}


def broken(cases: Sequence[Case], laws: Sequence[str] = tuple(LAWS)) -> dict[str, list[str]]:
    """By law, what breaks it."""
    session = Session(with_own_profiles=False)
    ordered = sorted(cases, key=lambda case: case.model)  # a session keeps the last few networks
    found: dict[str, list[str]] = {law: [] for law in laws}
    for case in ordered:
        for law in laws:
            found[law] += LAWS[law](case, session)
    return found
