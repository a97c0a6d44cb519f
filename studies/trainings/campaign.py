"""Every training once: its log as it came out of the process, with when bytes came, beside the callback's file."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studies.trainings.cases import TRAININGS, Training
from studies.trainings.happenings import FELL_OVER

# Between a training that fell over and its next attempt.
AWAY_SECONDS = 4.0
MOST_SECONDS = 400.0


def scratch() -> Path:
    """Where logs are kept: EPOCHCAST_TRAININGS, or a temporary folder."""
    return Path(os.environ.get("EPOCHCAST_TRAININGS") or Path(tempfile.gettempdir()) / "epochcast-trainings")


def run_all(folder: Path) -> list[str]:
    """Run what is not there yet, one after the other; gives the names of those that failed."""
    failed = []
    for number, training in enumerate(TRAININGS):
        place = folder / training.name
        if (place / "whole.json").exists():
            continue
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        begin = time.time()
        code = _run(training, place)
        print(f"{number + 1:3d}/{len(TRAININGS)} {training.name:40} {time.time() - begin:6.1f} s", flush=True)
        if code:
            failed.append(training.name)
            print((place / "log").read_text(errors="replace")[-2000:], flush=True)
            continue
        (place / "whole.json").write_text(json.dumps({"load": os.getloadavg()}), encoding="utf-8")
        for big in ("checkpoints", "checkpoint.pt"):
            shutil.rmtree(place / big, ignore_errors=True)
            (place / big).unlink(missing_ok=True)
    return failed


def _run(training: Training, place: Path) -> int:
    with (place / "log").open("ab", buffering=0) as log, (place / "arrivals").open("a", encoding="utf-8") as arrivals:
        while True:
            code = _attempt(training, place, log.fileno(), arrivals)
            if code != FELL_OVER:
                return code
            time.sleep(AWAY_SECONDS)


def _attempt(training: Training, place: Path, log: int, arrivals: object) -> int:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "120",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "studies.trainings.train", training.name, str(place)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    assert process.stdout is not None
    deadline = time.time() + MOST_SECONDS
    while part := os.read(process.stdout.fileno(), 1 << 16):
        os.write(log, part)
        print(time.time(), os.fstat(log).st_size, file=arrivals)  # type: ignore[call-overload]
        if time.time() > deadline:
            process.kill()
    arrivals.flush()  # type: ignore[attr-defined]
    return process.wait()
