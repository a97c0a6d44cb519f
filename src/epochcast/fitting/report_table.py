"""Tables in the columns of the source report (Wattanasirichaigoon & Ranglani 2020): seconds of epochs, as rows of runs.

    step = (seconds − start-up, where the first epoch is among them) / (steps per epoch · epochs)

Keras on TensorFlow 2, fp32. A row whose note says that its sample count is uncertain counted 60,000 images of CIFAR-10,
which has 50,000; its steps are recomputed.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.cost.stacks import find_stack
from epochcast.forecasting.keras_step import STACK

CIFAR_IMAGES = 50_000
FRAMEWORK = {"framework": "tensorflow", "framework_version": "2.0", "precision": "fp32", "mode": "training"}


def as_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the report in the columns of `runs`."""
    batch, gpus, epochs = row["batch_size_per_replica"], row.get("gpu_count") or 1, row.get("epochs_in_time") or 1
    steps = row["steps_per_epoch"]
    if "sample count uncertain" in (row.get("note") or ""):
        steps = -(-CIFAR_IMAGES // (batch * gpus))
    has_start_up = row.get("epoch") == 1 or (row.get("epoch") is None and epochs > 1)
    seconds = row["seconds"] - find_stack(STACK).start_up_seconds * has_start_up
    return {
        **FRAMEWORK,
        "source": "report",
        "model": row["model"],
        "device": row["device"],
        "gpus": gpus,
        "nodes": 1,
        "strategy": row.get("strategy"),
        "optimizer": row.get("optimizer"),
        "batch_per_gpu": batch,
        "step_seconds": seconds / (steps * epochs),
    }
