"""A running process: its command line, the log it writes, and NVML's readings through an object like `pynvml`."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.observe.check.nvml_readings import read_gpu
from epochcast.observe.check.observed_process import RunningProcess, command_settings
from epochcast.observe.check.observed_rate import read_rate

LOG = "".join(f"Epoch: [0][{n}/40]\tTime 0.500 (0.500)\tLoss 0.4 (0.4)\n" for n in range(40))
TRAINS = f"import sys, time; sys.stdout.write({LOG!r}); sys.stdout.flush(); time.sleep(600)"

linux = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")


@linux
def test_the_log_of_a_real_process_is_its_speed(tmp_path: Path) -> None:
    log = tmp_path / "out.log"
    with log.open("w") as out, subprocess.Popen([sys.executable, "-c", TRAINS], stdout=out) as process:
        try:
            while log.stat().st_size < len(LOG):
                time.sleep(0.05)
            running = RunningProcess.of(process.pid)
            assert running.command[0] == sys.executable
            assert log.resolve() in running.outputs
            observation = running.observation()
            assert observation.seconds.mid == pytest.approx(0.5)
            assert str(process.pid) in observation.text
        finally:
            process.kill()


def process_of(folder: Path, pid: int) -> Path:
    (folder / str(pid) / "fd").mkdir(parents=True)
    (folder / str(pid) / "cmdline").write_bytes(b"python\0train.py\0")
    return folder


def test_a_process_without_a_log_needs_its_speed(tmp_path: Path) -> None:
    running = RunningProcess.of(7, proc=process_of(tmp_path, 7))
    with pytest.raises(BadInput, match=r"process 7 \(python train.py\) writes no log that can be read"):
        running.observation()
    assert running.observation(read_rate("2it/s")).seconds.mid == 0.5


@linux
def test_the_command_line_of_a_trainer_says_the_job(tmp_path: Path) -> None:
    script = tmp_path / "run_clm.py"
    script.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    options = ["--model_name_or_path", "gpt2", "--per_device_train_batch_size", "4", "--bf16", "--output_dir", "out"]
    with subprocess.Popen([sys.executable, str(script), *options]) as process:
        try:
            answer = ec.check(observed="1it/s", pid=process.pid, device="RTX 3090")
            forecast = answer.forecast
            assert (forecast.model, forecast.batch_per_gpu, forecast.precision) == ("gpt2", 4, "amp_bf16")
            assert any(f"read from process {process.pid}" in note for note in forecast.warnings)
            assert ec.check("gpt2", "1it/s", pid=process.pid, device="RTX 3090", batch=2).forecast.batch_per_gpu == 2
        finally:
            process.kill()


def test_a_command_line_without_a_job_needs_the_model(tmp_path: Path) -> None:
    folder = process_of(tmp_path, 7)
    assert command_settings(7, is_alone=False, proc=folder) == ()
    with pytest.raises(BadInput, match="the command line of process 7 does not say what it trains: give MODEL"):
        command_settings(7, is_alone=True, proc=folder)


@linux
def test_a_process_that_has_ended_is_refused() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(BadInput, match=f"no process {process.pid} runs here"):
        RunningProcess.of(process.pid)


class NvmlFault(Exception):
    """What a board does not support."""


class Board:
    """The functions of `pynvml` over one GPU, on which process 42 and another compute."""

    NVMLError: type[Exception] = NvmlFault
    opened = 0

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Any) -> list[Any]:
        return [SimpleNamespace(pid=42), SimpleNamespace(pid=43)]

    def nvmlDeviceGetName(self, handle: Any) -> bytes:
        return b"NVIDIA GeForce RTX 3090"

    def nvmlDeviceGetMemoryInfo(self, handle: Any) -> Any:
        return SimpleNamespace(total=24 << 30, used=20 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        return SimpleNamespace(gpu=40, memory=10)

    def nvmlDeviceGetClockInfo(self, handle: Any, kind: int) -> int:
        return 900

    def nvmlDeviceGetMaxClockInfo(self, handle: Any, kind: int) -> int:
        return 2100

    def nvmlDeviceGetPowerManagementLimit(self, handle: Any) -> int:
        return 250_000

    def nvmlDeviceGetPowerManagementDefaultLimit(self, handle: Any) -> int:
        return 350_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any) -> int:
        return 0x04 | 0x20

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: Any) -> int:
        raise NvmlFault

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: Any) -> int:
        return 16


def test_readings_are_in_base_units_and_what_is_not_supported_is_none() -> None:
    board = Board()
    reading = read_gpu(board, 42)
    assert reading is not None
    assert (reading.clock_hertz, reading.top_clock_hertz) == (9e8, 2.1e9)
    assert (reading.limit_watts, reading.default_limit_watts) == (250, 350)
    assert (reading.lanes, reading.top_lanes, reading.other_processes) == (None, 16, 1)
    assert reading.throttled_by == ("the software power cap", "software thermal slowdown")
    assert (reading.utilisation_fraction, board.opened) == (0.4, 0)


def test_a_process_on_no_gpu_has_no_reading() -> None:
    assert read_gpu(Board(), os.getpid()) is None


def test_the_reading_is_a_sign_of_the_observation(tmp_path: Path) -> None:
    running = RunningProcess.of(42, Board(), process_of(tmp_path, 42))
    gpu = running.observation(read_rate("2it/s")).signs.gpu
    assert gpu is not None and gpu.name == "NVIDIA GeForce RTX 3090"
