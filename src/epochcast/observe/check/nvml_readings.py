"""What NVML says of the GPU of a process, through `pynvml` (the package nvidia-ml-py) where it is installed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from epochcast.observe.check.observation import GpuReading

# Reasons for which the driver lowers clocks (nvml.h, nvmlClocksEventReason*); an idle GPU and one that an application
# set are left out.
CLOCK_REASONS: Mapping[int, str] = {
    0x04: "the software power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "the hardware power brake",
}
_MEGAHERTZ, _MILLIWATT = 1e6, 1e-3
_SM_CLOCK = 1  # NVML_CLOCK_SM


class Nvml(Protocol):
    """The functions of `pynvml` that are used; each may raise its `NVMLError`, the library's only class of errors."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None:
        """Load the driver's library."""

    def nvmlShutdown(self) -> None:
        """Let go of it."""

    def nvmlDeviceGetCount(self) -> int:
        """GPUs of this machine."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        """One of them."""

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> Sequence[Any]:
        """Processes with a context on it, each with its `pid`."""


def installed_nvml() -> Nvml | None:
    """The library, where the package and a driver are installed."""
    try:
        library: Nvml = import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    library.nvmlShutdown()
    return library


def read_gpu(library: Nvml, pid: int) -> GpuReading | None:
    """The first GPU on which the process computes; None where it computes on none."""
    with _opened(library):
        for index in range(library.nvmlDeviceGetCount()):
            handle = library.nvmlDeviceGetHandleByIndex(index)
            processes = [int(process.pid) for process in library.nvmlDeviceGetComputeRunningProcesses(handle)]
            if pid in processes:
                return _reading(library, handle, len(set(processes)) - 1)
    return None


@contextmanager
def _opened(library: Nvml) -> Iterator[None]:
    library.nvmlInit()
    try:
        yield
    finally:
        library.nvmlShutdown()


def _reading(library: Any, handle: Any, others: int) -> GpuReading:
    """What boards do not support is None."""

    def asked(function: Callable[..., Any], *arguments: int) -> Any:
        try:
            return function(handle, *arguments)
        except library.NVMLError:
            return None

    name, memory = library.nvmlDeviceGetName(handle), library.nvmlDeviceGetMemoryInfo(handle)
    rates = asked(library.nvmlDeviceGetUtilizationRates)
    reasons = asked(library.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
    return GpuReading(
        name.decode() if isinstance(name, bytes) else str(name),
        int(memory.total),
        int(memory.used),
        utilisation_fraction=None if rates is None else rates.gpu / 100,
        clock_hertz=_scaled(asked(library.nvmlDeviceGetClockInfo, _SM_CLOCK), _MEGAHERTZ),
        top_clock_hertz=_scaled(asked(library.nvmlDeviceGetMaxClockInfo, _SM_CLOCK), _MEGAHERTZ),
        limit_watts=_scaled(asked(library.nvmlDeviceGetPowerManagementLimit), _MILLIWATT),
        default_limit_watts=_scaled(asked(library.nvmlDeviceGetPowerManagementDefaultLimit), _MILLIWATT),
        throttled_by=tuple(reason for bit, reason in CLOCK_REASONS.items() if reasons & bit),
        lanes=asked(library.nvmlDeviceGetCurrPcieLinkWidth),
        top_lanes=asked(library.nvmlDeviceGetMaxPcieLinkWidth),
        other_processes=others,
    )


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value * unit
