"""nnU-Net's plans (nnUNetPlans.json): a U-Net for each configuration, its patch and batch.

An epoch is 250 iterations, a training 1,000 epochs of SGD with Nesterov momentum in mixed precision
(`nnUNetTrainer.py`), whatever the data set's size.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.config.key_table import MODEL, Trainer, passed_over
from epochcast.describe.capture.config.setting import Reader
from epochcast.describe.capture.model_reference import NNUNET as NNUNET_PLAN

ITERATIONS, EPOCHS = 250, 1000
_PREFERRED = ("3d_fullres", "3d_lowres", "2d")


def _finish(reader: Reader) -> None:
    prefix = "configurations."
    names = dict.fromkeys(key.split(".")[1] for key in reader.document if key.startswith(prefix))
    whole = [each for each in names if f"{prefix}{each}.patch_size" in reader.document]
    chosen = next((each for each in (*_PREFERRED, *whole) if each in whole), "")
    reader.read_keys |= {key for key in reader.document if key.startswith(prefix)}
    if not chosen:
        return
    if len(whole) > 1:
        reader.notes.append(f"{chosen} is taken of {', '.join(whole)}")
    patch = reader.document[f"{prefix}{chosen}.patch_size"]
    batch = reader.integer(f"{prefix}{chosen}.batch_size") or 2
    reader.set("batch", batch, f"{chosen}.batch_size")
    if isinstance(patch, list) and all(isinstance(side, int) for side in patch):
        reader.set("input_shape", (_channels(reader.document), *patch), f"{chosen}.patch_size")
    reader.set("steps_per_epoch", ITERATIONS, "250 iterations an epoch", is_default=True)
    reader.set(MODEL, f"{NNUNET_PLAN}:{reader.name}@{chosen}", chosen)


def _channels(document: Mapping[str, Any]) -> int:
    """Kinds of images (CT: one), as far as the plans say: each has intensities of its own."""
    prefix = "foreground_intensity_properties_per_channel."
    return len({key.split(".")[1] for key in document if key.startswith(prefix)}) or 1


NNUNET = Trainer(
    "nnU-Net",
    marks=(frozenset({"plans_name", "dataset_name"}), frozenset({"plans_name", "experiment_planner_used"})),
    keys={"dataset_name": passed_over, "plans_name": passed_over},
    harmless=("*",),
    defaults={"epochs": EPOCHS, "optimizer": "nesterov", "precision": "amp_fp16", "compile": "inductor"},
    finish=_finish,
)
