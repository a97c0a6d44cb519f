"""Krizhevsky's hours of AlexNet on K20s by epochcast's own `hybrid` strategy, his step on one GPU taken as known.

Kernels are PALEO's shares of peak, all scaled by one number so that one GPU takes the hours that were measured: only
what more GPUs add is judged. Four GPUs hang on each PCIe switch; between the switches there is half the bandwidth, for
all of them together, and every two GPUs exchange by copies, as the paper describes.
"""

import numpy as np

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.cost.software_setting import TODAY
from epochcast.predict.forecast.step_parts import Kernels
from epochcast.predict.forecast.strategies.hybrid import DIRECT, Wires, wired_parts
from epochcast.predict.forecast.strategies.tensor_parallel import rank_of
from studies.paleo.estimates import ALEXNET_EPOCHS, IMAGENET_IMAGES, K20, ONE_WEIRD_TRICK, pcie

BATCH = 128
MEASURED_HOURS = {1: 98.95, 2: 50.24, 4: 26.20, 8: 16.68}
"""As PALEO's paper prints them."""


def hours(step_seconds: float, gpus: int) -> float:
    """Of 90 epochs."""
    return step_seconds * ALEXNET_EPOCHS * IMAGENET_IMAGES / BATCH / gpus / 3600


def trick_hours(gpus: int) -> float:
    """Our forecast from the measured hours of one GPU."""
    whole = zoo_model("alexnet").trace(Recipe(BATCH, optimizer="momentum"))
    alone = float(ONE_WEIRD_TRICK.costs(whole.columns, K20, TODAY).mid.sum())
    scale = MEASURED_HOURS[1] / hours(alone, 1)
    if gpus == 1:
        return MEASURED_HOURS[1]
    rank = rank_of(whole, gpus).trace
    seconds = scale * ONE_WEIRD_TRICK.costs(rank.columns, K20, TODAY).mid
    kernels = Kernels(rank, seconds, np.zeros(len(seconds)))
    step = wired_parts(kernels, Wires(pcie(gpus), DIRECT), whole)
    return hours(step.total_seconds, gpus)
