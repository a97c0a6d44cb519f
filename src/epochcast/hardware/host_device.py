"""This machine's processors as a Device, from what the operating system reports (no extra package needed).

    peak fp32 = cores × clock × 2 FMA units × SIMD lanes × 2 flops

Assumptions, each an upper bound that a calibration replaces: every core has two multiply-add units (true of server and
desktop cores since Haswell and Zen 2, not of low-power cores), runs at the clock the system reports as highest, and all
cores are alike. Memory bandwidth is not reported by any system: 10 GB/s per core, at least 20 and at most 200 GB/s,
which brackets two to eight channels of DDR4. Cores are those this process may use, counted physically.
"""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from epochcast.base.caching import remembered
from epochcast.errors import BadInput
from epochcast.hardware.device import Device

HOST_NAMES = ("cpu", "host", "local")
HOST_PREFIX = "host CPU"

FMA_UNITS = 2
BANDWIDTH_PER_CORE_BYTES_PER_SECOND = 10e9
LEAST_BANDWIDTH_BYTES_PER_SECOND = 20e9
MOST_BANDWIDTH_BYTES_PER_SECOND = 200e9
# Apple's chips and most ARM Linux systems do not report their clock; their fast cores run at 3.2 GHz or a little above.
DEFAULT_CLOCK_HERTZ = 3.2e9

# fp32 lanes of the widest unit a flag promises, widest first (x86 flags, then ARM features).
SIMD_LANES: Mapping[str, int] = {"avx512f": 16, "avx2": 8, "avx": 8, "sse2": 4, "asimd": 4, "neon": 4}


@remembered(1)
def detect_host() -> Device:
    """This machine's CPU; detected once."""
    match platform.system():
        case "Linux":
            return from_linux(
                _read("/proc/cpuinfo"),
                _read("/proc/meminfo"),
                len(os.sched_getaffinity(0)),
                _highest_clock_hertz(Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")),
            )
        case "Darwin":
            return from_sysctl(_sysctl())
        case other:
            raise BadInput(
                f"cannot describe this machine's CPU on {other or 'an unknown system'}; name a device instead"
            )


def is_host(device: Device) -> bool:
    """Whether a device is the detected CPU of this or another machine."""
    return device.vendor == "host"


def from_linux(cpuinfo: str, meminfo: str, usable_cpus: int, clock_hertz: float | None = None) -> Device:
    """The host that /proc/cpuinfo and /proc/meminfo describe, seen by a process that may use `usable_cpus` of it."""
    processors = [_fields(block) for block in re.split(r"\n\s*\n", cpuinfo) if "processor" in block]
    if not processors:
        raise BadInput("cannot describe this machine's CPU: /proc/cpuinfo lists no processor")
    first = processors[0]
    cores = {(p.get("physical id", "0"), p["core id"]) for p in processors if "core id" in p}
    threads_per_core = max(1, len(processors) // len(cores)) if cores else 1
    megahertz = [float(p["cpu MHz"]) for p in processors if "cpu MHz" in p]
    memory = re.search(r"MemTotal:\s*(\d+) kB", meminfo)
    if not memory:
        raise BadInput("cannot describe this machine's memory: /proc/meminfo has no MemTotal")
    return _host(
        model=first.get("model name", platform.machine() or "unknown CPU"),
        cores=max(1, usable_cpus // threads_per_core),
        clock_hertz=clock_hertz or (max(megahertz) * 1e6 if megahertz else DEFAULT_CLOCK_HERTZ),
        features=(first.get("flags") or first.get("Features") or "").split(),
        memory_bytes=int(memory[1]) * 1024,
    )


def from_sysctl(values: Mapping[str, str]) -> Device:
    """The host that macOS' sysctl describes."""
    try:
        cores, memory_bytes = int(values["hw.physicalcpu"]), int(values["hw.memsize"])
    except (KeyError, ValueError):
        raise BadInput("cannot describe this machine: sysctl gives no hw.physicalcpu and hw.memsize") from None
    features = f"{values.get('machdep.cpu.features', '')} {values.get('machdep.cpu.leaf7_features', '')}"
    x86 = features.casefold().replace("avx1.0", "avx").split()
    return _host(
        model=values.get("machdep.cpu.brand_string", "Apple CPU"),
        cores=cores,
        clock_hertz=float(values.get("hw.cpufrequency_max") or DEFAULT_CLOCK_HERTZ),
        features=x86 or ["neon", "fma"],
        memory_bytes=memory_bytes,
    )


def _host(model: str, cores: int, clock_hertz: float, features: list[str], memory_bytes: int) -> Device:
    lanes = next((width for flag, width in SIMD_LANES.items() if flag in features), 1)
    fused = "fma" in features or "asimd" in features or "neon" in features or "avx512f" in features
    fp32 = cores * clock_hertz * FMA_UNITS * lanes * (2 if fused else 1)
    bandwidth = min(
        max(cores * BANDWIDTH_PER_CORE_BYTES_PER_SECOND, LEAST_BANDWIDTH_BYTES_PER_SECOND),
        MOST_BANDWIDTH_BYTES_PER_SECOND,
    )
    return Device(
        name=f"{HOST_PREFIX} ({model}, {cores} cores)",
        vendor="host",
        kind="cpu",
        generation="host",
        year=2020,
        compute_units=cores,
        clock_hertz=clock_hertz,
        peak_flops_per_second={"fp32": fp32, "fp64": fp32 / 2},
        memory_bytes=memory_bytes,
        memory_bytes_per_second=bandwidth,
        l2_bytes=None,
        launch_seconds=None,
        interconnect="shared_memory",
        host_link="shared_memory",
        tensor_cores=False,
        source="this machine's operating system; two FMA units per core and the memory bandwidth are assumed",
        verified=False,
        aliases=HOST_NAMES,
        note="the year is a placeholder: no system reports it",
    )


def _fields(block: str) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in block.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(f"cannot describe this machine: {path} is not readable ({error.strerror})") from None


def _highest_clock_hertz(path: Path) -> float | None:
    """The highest clock the kernel will set, in hertz; virtual machines do not report it."""
    try:
        return int(path.read_text(encoding="utf-8")) * 1e3
    except (OSError, ValueError):
        return None


def _sysctl() -> dict[str, str]:
    """Every sysctl value of this Mac by name."""
    try:
        output = subprocess.run(["sysctl", "hw", "machdep.cpu"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"cannot describe this machine: sysctl failed ({error})") from None
    return _fields(output.stdout)
