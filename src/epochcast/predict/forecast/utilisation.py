"""Model flops utilisation (MFU, Chowdhery et al. 2022): which part of what the GPUs could compute is the model's work.

    MFU = flops of the model in a step ÷ (seconds of the step · GPUs · peak of one)

Flops are those of matrix products, convolutions and attention in the forward and the backward pass, as publications
count them: a causal mask is not subtracted. What is computed again is left out: the blocks of checkpointing, and the
scores that a fused attention kernel makes anew in its backward pass, one of its five products there. Padding counts.
The peak is the data sheet's, dense, in the format that products really run in; where a device lacks the format of a
precision, that of the format which stands in for it.
"""

from epochcast.describe.graph.math_modes import op_math_index
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES, PHASES, Trace
from epochcast.hardware.device import Device

_ATTENTION = CLASSES.index(OpClass.ATTENTION)
# dV, dP, dQ, dK of the five products that `describe.graph.op_work` counts for attention's backward pass.
ATTENTION_KEPT_FRACTION = 4 / 5


def model_flops(trace: Trace) -> float:
    """Of one pass of a step without checkpointing. What the model itself runs again (a live model that checkpoints) is
    in the backward pass and no gradient.
    """
    columns = trace.columns
    is_backward = columns.phase == PHASES.index(Phase.BACKWARD)
    is_again = is_backward & columns.is_matrix & (columns.gradient == list(Gradient).index(Gradient.NONE))
    again = float(trace.counted_flops[is_again].sum())
    is_attention = (columns.op_class == _ATTENTION) & (columns.phase != 0) & ~is_again
    again += float(trace.counted_flops[is_attention].sum()) * (1 - ATTENTION_KEPT_FRACTION)
    return trace.flops["matrix"] - again


def products_peak(trace: Trace, device: Device) -> float:
    """Flops per second of the step's products at their peaks: Σ F / Σ (F / peak). All have the peak of the precision,
    unless convolutions run in another math (fp32 of PyTorch).
    """
    rules, columns = trace.recipe.precision_rules, trace.columns
    others = device.peak(rules.math)
    is_rounded = columns.is_matrix & (columns.math == op_math_index(rules.convolution_math))
    if rules.convolution_math == rules.math or not is_rounded.any():
        return others
    rounded, flops = float(columns.flops[is_rounded].sum()), float(columns.flops[columns.is_matrix].sum())
    return flops / (rounded / device.peak(rules.convolution_math) + (flops - rounded) / others)


def utilisation(pass_flops: float, passes: int, step_seconds: float, gpus: int, peak_flops_per_second: float) -> float:
    """MFU of a step in which all GPUs together make `passes` passes."""
    return pass_flops * passes / (step_seconds * gpus * peak_flops_per_second)
