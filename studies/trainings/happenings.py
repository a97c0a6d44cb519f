"""What happens on the way, the same for every framework."""

import subprocess
import sys
import time
from pathlib import Path

from studies.trainings.cases import Training
from studies.trainings.models import PAUSE_SECONDS, SLOW_SECONDS

# A process that fell over; the campaign starts it again.
FELL_OVER = 9
RIVALS = 3
_BUSY = "import time\nend = time.time() + 300\nwhile time.time() < end: sum(range(10000))"


class Happenings:
    """Called after every step; ends the process where the training falls over, once."""

    def __init__(self, training: Training, total: int, folder: Path) -> None:
        self.training, self.total, self.folder = training, total, folder
        self.rivals: list[subprocess.Popen[bytes]] = []
        self.has_paused = False

    def after(self, step: int) -> bool:
        """Whether the training goes on."""
        training = self.training
        if training.slow_every and step % training.slow_every == 0:
            time.sleep(SLOW_SECONDS)
        if training.pause_at and not self.has_paused and step >= training.pause_at * self.total:
            self.has_paused = True
            time.sleep(PAUSE_SECONDS)
        if training.compete_at and not self.rivals and step >= training.compete_at * self.total:
            self.rivals = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(RIVALS)]
        fallen = self.folder / "fallen"
        if training.restart_at and step >= training.restart_at * self.total and not fallen.exists():
            fallen.touch()
            time.sleep(1.5)  # what is recorded is written once a second
            sys.stdout.flush()
            import os

            os._exit(FELL_OVER)
        return not (training.stop_at and step >= training.stop_at * self.total)

    def over(self) -> None:
        for rival in self.rivals:
            rival.kill()
            rival.wait()
