"""The uncertainty of the model for each kind of op: the 5 % and 95 % quantiles of measured over predicted, op by op.

    log distance below, above = softplus(w·features + b)

fitted with the pinball loss on ops that were timed alone and lasted longer than their launch. A class of op of which
nobody timed any alone is taken to be as unsure as the least sure that was.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.trace import CLASSES
from epochcast.predict.cost.learned import Quantiles
from training.network import EfficiencyNet, OpRows
from training.spreads import OUTSIDE

Array = NDArray[np.float64]

_STEPS, _ROWS, _RATE = 1500, 4096, 0.02
# A row that lasted this many launches at least was the kernel's.
_FLOORS = 2.0
# Where the classes begin among the features, counted from the end: classes, maths, passes, phases.
_CLASSES_FROM_END = len(CLASSES) + len(OP_MATHS) + 4 + 3


def fit_quantiles(models: Sequence[EfficiencyNet], ops: OpRows, *, seed: int = 0) -> Quantiles:
    """Both lines."""
    low, high = OUTSIDE
    wanted = torch.tensor([1 - low, high])  # of the distances: below is how far under the middle
    inputs, errors = _residuals(models, ops)
    both = torch.stack([-errors, errors], dim=1)
    generator = torch.Generator().manual_seed(seed)
    weight = torch.zeros(inputs.shape[1], 2, requires_grad=True)
    bias = torch.full((2,), -1.0, requires_grad=True)
    optimizer = torch.optim.AdamW([weight, bias], lr=_RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=_STEPS)
    for _ in range(_STEPS):
        pick = torch.randint(len(errors), (_ROWS,), generator=generator)
        missed = both[pick] - torch.nn.functional.softplus(inputs[pick] @ weight + bias)
        loss = torch.maximum(wanted * missed, (wanted - 1) * missed).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    lines: Array = weight.detach().numpy().astype(np.float64)
    _spread_to_unmeasured(lines, inputs)
    ends: Array = bias.detach().numpy().astype(np.float64)
    return Quantiles(lines.round(4), ends.round(4))


def _residuals(models: Sequence[EfficiencyNet], ops: OpRows) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and log(measured/predicted) of the rows that were longer than their launch."""
    logs = torch.zeros(len(ops.log_seconds))
    with torch.no_grad():
        for model in models:
            for pick in torch.split(torch.arange(len(logs)), 65536):
                logs[pick] += model.log_row(ops, pick) / len(models)
        floor = torch.stack([m.floor for m in models]).mean(dim=0)[ops.timing]
    is_kept = ops.log_seconds > floor + float(np.log(_FLOORS))
    return ops.kernels.inputs[is_kept], (ops.log_seconds - logs)[is_kept]


def _spread_to_unmeasured(lines: Array, inputs: torch.Tensor) -> None:
    """Give classes without a row the largest weight that a measured class has."""
    start = inputs.shape[1] - _CLASSES_FROM_END
    places = np.arange(start, start + len(CLASSES))
    is_measured = (inputs[:, start : start + len(CLASSES)].sum(dim=0) > 0).numpy()
    lines[places[~is_measured]] = lines[places[is_measured]].max(axis=0)
