"""Causes in the device: another GPU than said, one that is shared or throttled, and memory that spills to the host."""

from collections.abc import Iterator
from dataclasses import replace
from math import sqrt

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import devices, find_device, find_link
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.observe.check.observation import GpuReading
from epochcast.observe.check.suspects import COMMON, RARE, USUAL, SpeedQuestion, Suspect
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.memory.verdict import SURE
from epochcast.units import show_bytes

# MIG slices of GA100, GH100 and GB100: sevenths of the compute units, eighths of the memory (NVIDIA's MIG user guide).
MIG_SLICES = {"1g": (1 / 7, 1 / 8), "2g": (2 / 7, 2 / 8), "3g": (3 / 7, 4 / 8), "4g": (4 / 7, 4 / 8)}
# A power cap or heat seldom costs less or more; two jobs on one GPU get half of it or less. Set by hand.
THROTTLED, SHARED = (1.1, 2.0), (1.3, 3.0)
# Every spilled byte crosses the bus twice a step at least. The driver moves pages again and again where more is in use
# than fits: users of kohya's trainer saw 200 s/it instead of 1.2 on an RTX 3090.
SPILLED = (1.0, 300.0)
# A clock below this share of the top one, a limit below this share of the usual one, memory as full as
# this; a GPU that works for less of the time is idle.
LOW_CLOCK, LOW_LIMIT, FULL, BUSY = 0.9, 0.95, 0.98, 0.5
DEVICE_TEST = "nvidia-smi -L"
THROTTLE_TEST = "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER: look for active clock event reasons"
SHARE_TEST = "nvidia-smi: look for other processes; nvidia-smi dmon shows who computes"
SPILL_TEST = 'set "CUDA - Sysmem Fallback Policy" to "Prefer No Sysmem Fallback": it then stops with an error instead'


def other_device_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """The GPU that the source names; else boards whose names continue the one given, and MIG slices of it."""
    device, signs = question.placement.device, question.signs
    if device.kind != "gpu":
        return
    named = signs.device or (None if signs.gpu is None else signs.gpu.name)
    if named is not None:
        other = _find(named)
        if other is not None and other.chip != device.chip:
            yield from _on(question, other, COMMON, f"it runs on {other.name}: forecast for {device.name}", True)
        return
    candidates = [other for other in devices() if other != device and _continues(other, device)]
    for other in candidates:
        yield from _on(question, other, USUAL / len(candidates), f"{other.name} instead of {device.name}", False)
    if _has_slices(device):
        for name, (compute_fraction, memory_fraction) in MIG_SLICES.items():
            evidence = f"a MIG slice {name} of {device.name}"
            yield from _on(
                question,
                _slice(device, name, compute_fraction, memory_fraction),
                RARE / len(MIG_SLICES),
                evidence,
                False,
            )


def _find(name: str) -> Device | None:
    try:
        return find_device(name)
    except EpochcastError:
        return None


def _continues(other: Device, device: Device) -> bool:
    """Whether one may be taken for the other: its name goes on behind that of the one given, like "RTX 4090 Laptop"."""
    return other.vendor == device.vendor and other.name.startswith(f"{device.name} ")


def _has_slices(device: Device) -> bool:
    """MIG came with the chips that multiply fp64 on tensor cores."""
    peaks = device.peak_flops_per_second
    return device.vendor == "NVIDIA" and peaks.get("fp64_vector", peaks.get("fp64", 0.0)) < peaks.get("fp64", 0.0)


def _slice(device: Device, name: str, compute_fraction: float, memory_fraction: float) -> Device:
    peaks = {math: peak * compute_fraction for math, peak in device.peak_flops_per_second.items()}
    return replace(
        device,
        name=f"{device.name} MIG {name}",
        aliases=(),
        compute_units=max(1, int(device.compute_units * compute_fraction)),
        peak_flops_per_second=peaks,
        memory_bytes=int(device.memory_bytes * memory_fraction),
        memory_bytes_per_second=device.memory_bytes_per_second * memory_fraction,
        l2_bytes=None if device.l2_bytes is None else int(device.l2_bytes * memory_fraction),
    )


def _on(question: SpeedQuestion, other: Device, prior: float, evidence: str, is_shown: bool) -> Iterator[Suspect]:
    step = question.instead(placement=question.placement.with_device(other))
    if step is not None:
        yield Suspect("another GPU", step, prior, evidence, DEVICE_TEST, is_shown)


def throttle_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Clocks below their top: by what NVML says, else by what people meet."""
    if question.placement.device.kind != "gpu":
        return
    gpu = question.signs.gpu
    evidence = "" if gpu is None else _throttled(gpu)
    if gpu is not None and gpu.clock_hertz and gpu.top_clock_hertz and evidence:
        slowed = max(1.0, gpu.top_clock_hertz / gpu.clock_hertz)
        step = question.instead(session=question.session.scaled(slowed))
        if step is not None:
            yield Suspect("throttled GPU", step, USUAL, evidence, THROTTLE_TEST, True)
        return
    if gpu is None or evidence:
        evidence = evidence or "a power cap or heat lowers the clocks"
        yield Suspect("throttled GPU", question.between(*THROTTLED), RARE, evidence, THROTTLE_TEST, gpu is not None)


def _throttled(gpu: GpuReading) -> str:
    """What NVML says of lowered clocks; empty where it says nothing."""
    parts = []
    is_busy = gpu.utilisation_fraction is None or gpu.utilisation_fraction > BUSY  # an idle GPU lowers its clock
    if is_busy and gpu.clock_hertz and gpu.top_clock_hertz and gpu.clock_hertz < LOW_CLOCK * gpu.top_clock_hertz:
        parts.append(f"the clock is {gpu.clock_hertz / 1e6:.0f} of {gpu.top_clock_hertz / 1e6:.0f} MHz")
    if gpu.limit_watts and gpu.default_limit_watts and gpu.limit_watts < LOW_LIMIT * gpu.default_limit_watts:
        parts.append(f"power is capped at {gpu.limit_watts:.0f} of {gpu.default_limit_watts:.0f} W")
    if gpu.throttled_by:
        parts.append(f"NVML names {', '.join(gpu.throttled_by)}")
    return "; ".join(parts)


def shared_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Another process on the same GPU."""
    gpu = question.signs.gpu
    if question.placement.device.kind != "gpu" or (gpu is not None and not gpu.other_processes):
        return
    evidence = "another process computes on this GPU" if gpu is None else f"{gpu.other_processes} other processes"
    yield Suspect("shared GPU", question.between(*SHARED), RARE, evidence, SHARE_TEST, gpu is not None)


def spill_causes(question: SpeedQuestion) -> Iterator[Suspect]:
    """Memory beyond the card, which Windows' driver keeps in host memory: over / B twice a step, or worse."""
    forecast, device = question.forecast, question.placement.device
    peak, chance = forecast.peak_bytes, forecast.fits_probability
    if peak is None or chance is None or chance >= SURE or device.kind != "gpu" or device.vendor != "NVIDIA":
        return
    room = usable_bytes(device)
    over = Interval(max(0.0, peak.low - room), max(0.0, peak.mid - room), max(0.0, peak.high - room))
    likely = over.mid or over.high / 2
    if not likely:
        return
    moved = 2 * likely / find_link(device.host_link).sustained_bytes_per_second
    base = question.forecast.step_seconds.mid
    step = question.between(*(1 + factor * moved / base for factor in SPILLED))
    gpu = question.signs.gpu
    is_full = gpu is not None and gpu.memory_used_bytes > FULL * gpu.memory_bytes
    evidence = f"the forecast peak of {show_bytes(peak.mid)} leaves a chance of {chance:.0%} to fit {show_bytes(room)}"
    prior = USUAL * sqrt(max(0.0, 1 - chance))
    yield Suspect("spill to host memory", step, prior, evidence, SPILL_TEST, is_full)
