"""Which column of a table plays which part in a formula: batch, GPUs, compute power, samples, epochs.

Tables name them differently (`reading` has renamed the usual ones); a part may be missing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import nan

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.observe.history.job_table import MISSING, Jobs

ROLES: Mapping[str, tuple[str, ...]] = {
    "batch": ("batch_per_gpu", "micro_batch", "global_batch"),
    "gpus": ("gpus", "workers", "num_workers", "machines", "nodes"),
    "threads": ("threads", "loader_workers", "cpus"),
    "power": ("device_flops_per_second", "peak_flops", "power_flops"),
    "samples": ("samples", "dataset_samples", "dataset_size", "training_samples"),
    "epochs": ("epochs", "num_epochs"),
    "steps": ("iterations", "steps", "total_steps", "num_steps"),
    "depth": ("layers", "num_layers", "depth"),
    "model": ("model",),
    "device": ("device",),
}
GROWING = frozenset(name for role in ("samples", "epochs", "steps") for name in ROLES[role])
"""More of these never takes less time."""
DEVICE_COLUMNS = ("device_flops_per_second", "device_bytes_per_second")


def column_of(role: str, columns: Iterable[str]) -> str | None:
    """The column of a table that plays a part, or None."""
    present = set(columns)
    return next((name for name in ROLES[role] if name in present), None)


def with_devices(jobs: Jobs) -> Jobs:
    """Devices of the catalogue by its name ("V100" and "V100-SXM2-16GB" are one), with two more columns: peak flops and
    bytes per second of their data sheet.
    """
    words = jobs.categories.get("device")
    if words is None:
        return jobs
    devices = {name: device_called(name) for name in set(words.tolist())}
    named = np.array([name if devices[name] is None else _name(devices[name]) for name in words.tolist()])
    jobs = replace(jobs, categories={**jobs.categories, "device": named})
    if set(DEVICE_COLUMNS) <= set(jobs.numbers) or not any(devices.values()):
        return jobs
    pairs = list(zip(words.tolist(), jobs.category("precision").tolist(), strict=True))
    sheets = {pair: _sheet(devices[pair[0]], pair[1]) for pair in set(pairs)}
    table = np.array([sheets[pair] for pair in pairs], dtype=np.float64).reshape(len(pairs), 2)
    added = {name: table[:, place] for place, name in enumerate(DEVICE_COLUMNS)}
    return replace(jobs, numbers={**jobs.numbers, **added})


def _name(device: Device | None) -> str:
    assert device is not None
    return device.name


def _sheet(device: Device | None, precision: str) -> tuple[float, float]:
    if device is None:
        return nan, nan
    return peak_of(device, precision), float(device.memory_bytes_per_second)


def device_called(name: str) -> Device | None:
    """The device of the catalogue, or None."""
    if name == MISSING or not name:
        return None
    try:
        return find_device(name)
    except EpochcastError:
        return None


def peak_of(device: Device, precision: str) -> float:
    """The peak of the format that a precision multiplies in, if its name says which; of fp32 otherwise."""
    words = precision.casefold()
    for math in ("fp8", "bf16", "fp16", "tf32"):
        if words.endswith(math) or words.startswith(math):
            flops_per_second = device.peak_flops_per_second.get(math)
            if flops_per_second:
                return float(flops_per_second)
    return float(device.peak_flops_per_second["fp32"])
