"""A real training on the CPU, as a job of the prototype: a network of two layers in numpy, on one thread.

    python train.py WIDTH STEPS

It goes on from its checkpoint and saves itself on SIGTERM. On a K80 of this study a step does half as much work again:
the type of node that is slower. After a step it rests for seven times as long as it computed, so that two trainings on
two processors leave seven eighths of them to others.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402  (after the number of threads)

# Passes over a batch in a step, by device.
PASSES = {"K80": 12, "M60": 8}
BATCH, FEATURES = 128, 64
REST = 7


def main(width: int, steps: int) -> int:
    """Train; 0 when all steps are done, 143 where it was stopped."""
    folder = Path(os.environ["EPOCHCAST_CHECKPOINT_FOLDER"])
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError, AttributeError):  # before ordinary programs, as on a machine of its own
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    asked: list[bool] = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    random = np.random.default_rng(0)
    inputs = random.normal(size=(BATCH, FEATURES))
    targets = np.sin(inputs[:, :1])
    step, first, second = 0, random.normal(size=(FEATURES, width)) / 8, random.normal(size=(width, 1)) / width**0.5
    kept = folder / "last.npz"
    if kept.exists():
        with np.load(kept) as found:
            step, first, second = int(found["step"]), found["first"], found["second"]
    loss, rested = 0.0, time.process_time()
    while step < steps:
        step += 1
        for _ in range(PASSES[os.environ["EPOCHCAST_DEVICE"]]):
            hidden = np.tanh(inputs @ first)
            error = hidden @ second - targets
            loss = float((error**2).mean())
            back = (error @ second.T) * (1 - hidden**2)
            second -= 1e-3 * hidden.T @ error / BATCH
            first -= 1e-3 * inputs.T @ back / BATCH
        time.sleep(REST * (time.process_time() - rested))
        rested = time.process_time()
        if step % 5 == 0 or step == steps:
            print(f"step {step}/{steps} loss {loss:.4f}", flush=True)
        if asked or step == steps:
            np.savez(folder / "new.npz", step=step, first=first, second=second)
            (folder / "new.npz").replace(kept)
            if step < steps:
                return 143
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
