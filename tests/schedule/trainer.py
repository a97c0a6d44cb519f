"""A small real training with checkpoints, for the engines: numpy, no epochcast.

    python trainer.py STEPS [SECONDS_PER_STEP]

It goes on from its checkpoint, and saves itself on SIGTERM and every ten steps. Every start leaves a line in `starts`.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np


def load(file: Path) -> tuple[int, np.ndarray]:
    """From the last checkpoint, if there is one."""
    if not file.exists():
        return 0, np.zeros(32)
    with np.load(file) as kept:
        return int(kept["step"]), kept["weights"]


def save(file: Path, step: int, weights: np.ndarray) -> None:
    """Whole or not at all."""
    new = file.with_name("new.npz")
    np.savez(new, step=step, weights=weights)
    new.replace(file)


def main(steps: int, pause: float) -> int:
    """Train; 0 when all steps are done, 143 where it was stopped."""
    folder = Path(os.environ["EPOCHCAST_CHECKPOINT_FOLDER"])
    folder.mkdir(parents=True, exist_ok=True)
    asked: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    random = np.random.default_rng(0)
    features, truth = random.normal(size=(256, 32)), random.normal(size=32)
    file = folder / "checkpoint.npz"
    begin, weights = load(file)
    about = {name: os.environ.get(f"EPOCHCAST_{name}") for name in ("ATTEMPT", "GPUS", "NODE_TYPE", "START")}
    about["VISIBLE"] = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    with (folder / "starts").open("a") as starts:
        starts.write(json.dumps({**about, "begin": begin, "at": time.time()}) + "\n")
    for step in range(begin + 1, steps + 1):
        error = features @ (weights - truth)
        weights -= 0.01 * features.T @ error / len(error)
        time.sleep(pause)
        if step % 5 == 0 or step == steps:
            print(f"step {step}/{steps} loss {float(error @ error) / len(error):.4f}", flush=True)
        if step % 10 == 0 or asked or step == steps:
            save(file, step, weights)
        if asked and step < steps:
            return 143
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
