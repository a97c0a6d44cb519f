"""Tables in the columns of the source report (Wattanasirichaigoon & Ranglani 2020): seconds of epochs, as rows of runs.

    step = (seconds − start-up, where the first epoch is among them) / (steps per epoch · epochs)

Keras on TensorFlow 2, fp32. A row whose note says that its sample count is uncertain counted 60,000 images of CIFAR-10,
which has 50,000; its steps are recomputed.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.errors import BadInput
from epochcast.measure.tables.cells import count, needed, number, text
from epochcast.measure.tables.run_table import REFUSED
from epochcast.predict.cost.stacks import find_stack
from epochcast.predict.forecast.keras_stack_step import STACK

CIFAR_IMAGES = 50_000
FRAMEWORK = {"framework": "tensorflow", "framework_version": "2.0", "precision": "fp32", "mode": "training"}


def as_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the report in the columns of `runs`; one that cannot be read says why."""
    try:
        return _as_run(row)
    except BadInput as error:
        return {"model": row.get("model"), "device": row.get("device"), REFUSED: error}


def _as_run(row: Mapping[str, Any]) -> dict[str, Any]:
    batch, steps = needed(row, "batch_size_per_replica"), needed(row, "steps_per_epoch")
    gpus, epochs = count(row, "gpu_count") or 1, count(row, "epochs_in_time") or 1
    epoch, seconds = number(row, "epoch"), needed(row, "seconds")
    if "sample count uncertain" in text(row, "note"):
        steps = -(-CIFAR_IMAGES // (batch * gpus))
    has_start_up = epoch == 1 or (epoch is None and epochs > 1)
    seconds -= find_stack(STACK).start_up_seconds * has_start_up
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
