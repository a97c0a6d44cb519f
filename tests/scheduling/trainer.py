"""A small real training with checkpoints, for the engines: numpy, no epochcast.

    python trainer.py STEPS [SECONDS_PER_STEP]

It goes on from its checkpoint, saves itself on SIGTERM and every ten steps, and refuses to run beside itself: its
folder has a mark while it trains. Every start leaves a line in `starts`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

folder = Path(os.environ["EPOCHCAST_CHECKPOINT_FOLDER"])
folder.mkdir(parents=True, exist_ok=True)
steps = int(sys.argv[1])
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
random = np.random.default_rng(0)
features = random.normal(size=(256, 32))
truth = random.normal(size=32)
targets = features @ truth


def stop(_signal: int, _frame: object) -> None:
    """Leave the loop after this step."""
    asked.append(True)


def load() -> tuple[int, np.ndarray]:
    """From the last checkpoint, if there is one."""
    found = folder / "checkpoint.npz"
    if not found.exists():
        return 0, np.zeros(32)
    with np.load(found) as kept:
        return int(kept["step"]), kept["weights"]


def save(step: int, weights: np.ndarray) -> None:
    """Whole or not at all."""
    new = folder / "new.npz"
    np.savez(new, step=step, weights=weights)
    new.replace(folder / "checkpoint.npz")


asked: list[bool] = []
signal.signal(signal.SIGTERM, stop)
begin, weights = load()
about = {name: os.environ.get(f"EPOCHCAST_{name}") for name in ("ATTEMPT", "GPUS", "NODE_TYPE", "START")}
about["VISIBLE"] = os.environ.get("CUDA_VISIBLE_DEVICES", "")
with (folder / "starts").open("a") as starts:
    starts.write(json.dumps({**about, "begin": begin, "at": time.time()}) + "\n")
mark = folder / f"pid.{os.getpid()}"
mark.touch()
for step in range(begin + 1, steps + 1):
    error = features @ weights - targets
    weights -= 0.01 * features.T @ error / len(error)
    time.sleep(pause)
    if step % 5 == 0 or step == steps:
        print(f"step {step}/{steps} loss {float(error @ error) / len(error):.4f}", flush=True)
    if step % 10 == 0 or asked:
        save(step, weights)
    if asked:
        mark.unlink()
        sys.exit(143)
save(steps, weights)
mark.unlink()
print(f"trained {steps} steps, loss {float(error @ error) / len(error):.5f}" if steps > begin else "nothing left")
