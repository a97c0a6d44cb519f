"""What a measurement depends on besides its configuration: the machine, its software, and how busy it is.

The ID of a machine is a digest of the facts that make its measurements comparable: processor, device, driver,
libraries, threads. Clocks and memory are stored, too, but do not change the ID.
"""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from epochcast.base.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.host_device import detect_host
from epochcast.measure.bench.measurements import MeasuredMachine
from epochcast.measure.bench.torch_device import device_type

LIBRARIES = ("torch", "tensorflow", "tensorflow-cpu", "keras", "numpy", "torchvision", "timm", "transformers")
_NOT_IN_ID = frozenset({"clock_hertz", "memory_bytes", "host"})
# Where the size of the last cache is unknown: that of a few cores of a server processor.
DEFAULT_CACHE_BYTES = 32 * 2**20


@remembered(16)
def machine(device: str = "cpu", threads: int | None = None) -> MeasuredMachine:
    """This machine, for measurements on `device` with so many threads of torch."""
    facts = host_facts() | {"device": device, "threads": threads, **library_versions()}
    if device_type(device) == "cuda":
        facts |= _cuda_facts(device)
    identity = {key: value for key, value in facts.items() if key not in _NOT_IN_ID}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return MeasuredMachine(digest[:12], facts)


def torch_threads() -> int | None:
    """Threads that torch uses on the processor; None where torch is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    return torch.get_num_threads()


def host_facts() -> dict[str, Any]:
    """Processor, cores, clock, memory and system, as far as the system knows them."""
    facts: dict[str, Any] = {"system": f"{platform.system()} {platform.machine()}", "python": platform.python_version()}
    try:
        host = detect_host()
    except BadInput:
        return facts | {"cpu": platform.processor() or "unknown", "cores": os.cpu_count()}
    return facts | {
        "cpu": host.name,
        "cores": host.compute_units,
        "clock_hertz": host.clock_hertz,
        "memory_bytes": host.memory_bytes,
        "last_cache_bytes": last_cache_bytes(),
    }


def library_versions() -> dict[str, str]:
    """Versions of the installed libraries that decide which kernels run."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def last_cache_bytes(folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """The largest cache of the first core."""
    sizes = []
    for file in folder.glob("index*/size"):
        text = file.read_text(encoding="ascii").strip()
        if text.endswith("K") and text[:-1].isdecimal():
            sizes.append(int(text[:-1]) * 1024)
    return max(sizes, default=DEFAULT_CACHE_BYTES)


def _cuda_facts(device: str) -> dict[str, Any]:
    import torch

    gpu = torch.cuda.get_device_properties(device)
    cudnn: Any = torch.backends.cudnn
    smi = _nvidia_smi(int(device.partition(":")[2] or 0))
    return {
        "gpu": gpu.name,
        "gpu_memory_bytes": gpu.total_memory,
        "cuda": torch.version.cuda or torch.version.hip,
        "cudnn": cudnn.version() if cudnn.is_available() else None,
        "driver": smi.get("driver_version"),
        "clock_hertz": float(smi["clocks.max.sm"].split()[0]) * 1e6 if "clocks.max.sm" in smi else None,
    }


def _nvidia_smi(index: int) -> Mapping[str, str]:
    """Driver and highest clock of a card; nothing where there is no nvidia-smi."""
    fields = ("driver_version", "clocks.max.sm")
    command = ["nvidia-smi", f"--id={index}", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    cells = [cell.strip() for cell in output.strip().split(",")]
    return {key: cell for key, cell in zip(fields, cells, strict=False) if cell and not cell.startswith("[")}


def processor_ticks(path: Path = Path("/proc/stat")) -> tuple[int, int]:
    """(stolen by other guests of the hypervisor, all) since the system started; zeros where that is unknown."""
    try:
        first = path.read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return 0, 0
    ticks = [int(cell) for cell in first[1:]]
    return (ticks[7], sum(ticks[:8])) if len(ticks) >= 8 else (0, 0)


def steal_fraction(before: tuple[int, int], after: tuple[int, int]) -> float | None:
    """The part of the processor's time that was stolen between two readings; None where too little time passed."""
    ticks = after[1] - before[1]
    return (after[0] - before[0]) / ticks if ticks > 0 else None
