"""A faster sibling is not slower, as a term of the loss.

`hardware.sustained` puts what was fitted into the order of data sheets. Rates that were trained without that law move
afterwards, and the forecasts with them. Here the order is part of the training, with the same definitions:

    rate(d)  = log(fraction · peak^(1-u))             of every math, of vector arithmetic, and of bandwidth
    gap      = least rate(fast) - rate(slow)          over the rates that may bound a group of ops
    left     = gap - most factor(fast) - factor(slow)  over the groups
    loss     = Σ_pairs max(0, rate(slow) - rate(fast))² + Σ_groups max(0, factor(fast) - factor(slow) - gap)²
             + Σ_frameworks max(0, factor(fast) - factor(slow) - left)²
"""

import numpy as np
import torch

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.power_law import sustained_peak
from epochcast.hardware.siblings import sibling_pairs
from epochcast.hardware.sustained import MOST_BANDWIDTH_LOSS, MOST_PEAK_LOSS
from epochcast.predict.cost.op_bounds import GROUPS

# A violation of ten per cent weighs as much as an error of about ten per cent in every row of a batch.
ORDER_WEIGHT = 20.0


class SiblingOrder:
    """Pairs of siblings among the trained devices, and the order of their data sheets.

    Columns of what a device sustains are those of `network.SUSTAINED`: maths, vector, bandwidth, groups, generations.
    """

    def __init__(self, names: list[str]) -> None:
        devices = [find_device(name) for name in names]
        places = {device.name: place for place, device in enumerate(devices)}
        pairs = [(places[slow], places[fast]) for slow, fast in sibling_pairs(devices)]
        self.slow, self.fast = (torch.tensor([pair[side] for pair in pairs], dtype=torch.int64) for side in (0, 1))
        self.sheet = torch.tensor(np.array([_sheet(device) for device in devices]), dtype=torch.float32)
        self.first_group = len(OP_MATHS) + 2

    def loss(self, sustained: torch.Tensor) -> torch.Tensor:
        """Of what the devices sustain, as logarithms."""
        if not len(self.slow):
            return torch.zeros(())
        rates = sustained[:, : self.first_group] + self.sheet
        ahead = rates[self.fast] - rates[self.slow]  # NaN where one lacks the format
        ahead = torch.where(torch.isnan(ahead), torch.tensor(torch.inf), ahead)
        groups = sustained[:, self.first_group : self.first_group + len(GROUPS)]
        gap = ahead.amin(dim=1, keepdim=True).clamp(min=0.0)
        longer = groups[self.fast] - groups[self.slow]
        stacks = sustained[:, self.first_group + len(GROUPS) :]
        left = (gap - longer.amax(dim=1, keepdim=True)).clamp(min=0.0)
        missed = (-ahead, longer - gap, stacks[self.fast] - stacks[self.slow] - left)
        return sum((ORDER_WEIGHT * (each.clamp(min=0.0) ** 2).mean() for each in missed), torch.zeros(()))


def _sheet(device: Device) -> list[float]:
    """Logarithms of what a data sheet is worth at least, by column; NaN for formats that the device lacks."""
    peaks = [sustained_peak(device, math) if device.has(math) else np.nan for math in OP_MATHS]
    logs = (1 - MOST_PEAK_LOSS) * np.log([*peaks, device.peak("fp32_vector")])
    return [*logs.tolist(), (1 - MOST_BANDWIDTH_LOSS) * float(np.log(device.memory_bytes_per_second))]
