"""A running process: the log that it writes (Linux' /proc), and what NVML says of its GPU.

Its command line says what is trained where it is that of a trainer which `--config` reads. Standard output and error
that go to a file are its log. A process that writes to a terminal or a pipe has none that
others can read: its speed has to be given beside `--pid`.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from epochcast.describe.capture.config.config_file import read_settings
from epochcast.errors import BadInput, EpochcastError
from epochcast.observe.check.nvml_readings import Nvml, installed_nvml, read_gpu
from epochcast.observe.check.observation import PROCESS, GpuReading, Observation
from epochcast.observe.check.observed_log import observed_file

PROC = Path("/proc")
_OUTPUTS = ("1", "2")
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process: its command line, the files that it writes its output to, and its GPU."""

    pid: int
    command: tuple[str, ...]
    outputs: tuple[Path, ...]
    gpu: GpuReading | None = None

    @classmethod
    def of(cls, pid: int, nvml: Nvml | None = None, proc: Path = PROC) -> "RunningProcess":
        """The process as it is now; `nvml` stands for the installed library."""
        if pid < 1:
            raise BadInput(f"a process has a number of at least 1, got {pid}")
        folder = proc / str(pid)
        try:
            command = (folder / "cmdline").read_bytes().rstrip(b"\0").decode("utf-8", "replace").split("\0")
        except FileNotFoundError:
            where = "" if proc.is_dir() else ": this system has no /proc"
            raise BadInput(f"no process {pid} runs here{where}") from None
        library = nvml or installed_nvml()
        gpu = None if library is None else read_gpu(library, pid)
        return cls(pid, tuple(command), tuple(_files(folder)), gpu)

    def observation(self, observed: Observation | None = None) -> Observation:
        """The speed that was observed, else that of its log, with what its GPU shows."""
        if observed is None:
            observed = self._logged()
        return replace(observed, source=PROCESS, signs=replace(observed.signs, gpu=self.gpu))

    def _logged(self) -> Observation:
        for path in self.outputs:
            try:
                return replace(observed_file(path), text=f"{self.name}, in {path}")
            except EpochcastError:
                continue
        raise BadInput(f"{self.name} writes no log that can be read: give its speed, too, like --observed 1.2it/s")

    @property
    def name(self) -> str:
        """process 4242 (python train.py)"""
        words = " ".join(self.command)
        return f"process {self.pid} ({words if len(words) <= _LONGEST_SHOWN else words[:_LONGEST_SHOWN] + '…'})"


def command_settings(pid: int, is_alone: bool, proc: Path = PROC) -> tuple[Path, ...]:
    """The command line of a process as a file of settings; nothing where it is that of no trainer.

    Refused where nothing else says what is trained (`is_alone`).
    """
    path = proc / str(pid) / "cmdline"
    try:
        read_settings(path)
    except EpochcastError:
        if not path.exists() or not is_alone:
            return ()
        raise BadInput(
            f"the command line of process {pid} does not say what it trains: give MODEL and --batch"
        ) from None
    return (path,)


def _files(folder: Path) -> list[Path]:
    """What the process writes its output to, where that is a file."""
    targets: list[Path] = []
    for output in _OUTPUTS:
        try:
            target = (folder / "fd" / output).resolve(strict=True)
        except OSError:  # another user's process, or output that was closed
            continue
        if target.is_file() and target not in targets:
            targets.append(target)
    return targets
