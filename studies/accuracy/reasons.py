"""Why a row is far off: read from what is known of it, not guessed. A reason names the property; it proves nothing.

For a step these are the shares of its forecast by class of op, its launches against its kernels, windows, channels,
layout (and how the same network ran in the other layout), precision and age of the stack; for a single op or layer
what its shape says and how it stands to the data sheet.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.trace import CLASSES
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.launch import launch_seconds
from studies.accuracy.figures import Array
from training.examples import Example

# Shares of a forecast from which on a class of ops is worth naming.
MUCH = 0.25
THIN_CHANNELS, WIDE_WINDOW = 32, 49
OLD_STACKS = {
    "jcjohnson": "Torch7",
    "soumith": "frameworks of 2015-2016",
    "tf_benchmarks_2017": "TensorFlow 1 of 2017",
    "gavel": "PyTorch 1.x of 2019-2020",
}
# Cards known to run below their sheet in these tables (README of the measurements).
THROTTLED = {"P4": "a throttled card: the same rows differ four times between its two series"}
MOST_FACTS = 2

_GROUPED = (OpClass.CONV_GROUPED, OpClass.CONV_DEPTHWISE)


def layout_ratios(steps: Sequence[Example]) -> dict[int, float]:
    """For every step in channels-last, how many times longer a sample took than in NCHW, where both were timed."""
    plain = {_twin(s): s.seconds / s.recipe.batch for s in steps if not s.setting.channels_last}
    return {
        place: s.seconds / s.recipe.batch / plain[_twin(s)]
        for place, s in enumerate(steps)
        if s.setting.channels_last and _twin(s) in plain
    }


def _twin(step: Example) -> tuple[object, ...]:
    flops = float(f"{step.columns.flops.sum() / step.recipe.batch:.2g}")  # of the same input size
    return (step.source, step.device.name, step.model, step.recipe.mode, step.setting.framework_age, flops)


def step_reason(step: Example, layout_ratio: float | None = None) -> str:
    """The most telling facts of a step."""
    seconds = find_cost_model().costs(step.columns, step.device, step.setting).mid
    busy, host = float(seconds.sum()), float(step.columns.launches.sum() * launch_seconds(step.device))
    shares = {c: float(seconds[step.columns.op_class == i].sum()) / busy for i, c in enumerate(CLASSES)}
    facts = [*_layout(step, shares, layout_ratio), *_shapes(step, seconds / busy, shares)]
    if host > busy:
        facts.insert(0, f"launch-bound: {step.columns.launches.sum():.0f} launches take longer than their kernels")
    if step.recipe.precision == "fp64":
        facts.insert(0, "fp64, which few rows teach")
    if step.device.name in THROTTLED:
        facts.insert(0, THROTTLED[step.device.name])
    facts = facts[:MOST_FACTS] or [_largest(shares)]
    return "; ".join([*facts, *([OLD_STACKS[step.source]] if step.source in OLD_STACKS else [])])


def _layout(step: Example, shares: Mapping[OpClass, float], ratio: float | None) -> list[str]:
    grouped = sum(shares[c] for c in _GROUPED)
    facts = []
    if step.setting.channels_last and ratio is not None and (ratio > 1.5 or ratio < 1 / 1.5):
        facts.append(f"measured {ratio:.2g} times its own time in NCHW")
    if grouped >= MUCH:
        where = " in channels-last" if step.setting.channels_last else ""
        facts.append(f"grouped convolutions{where}: {grouped:.0%} of the forecast")
    return facts


def _shapes(step: Example, share: Array, shares: Mapping[OpClass, float]) -> list[str]:
    columns = step.columns
    depthwise = columns.op_class == CLASSES.index(OpClass.CONV_DEPTHWISE)
    wide = depthwise & (columns.kernel >= WIDE_WINDOW)
    facts = []
    if share[wide].sum() >= MUCH / 2:
        edge = np.sqrt(columns.kernel[wide].max())
        facts.append(f"depthwise windows up to {edge:.0f}x{edge:.0f}: {share[wide].sum():.0%} of the forecast")
    thin = columns.is_matrix & (columns.channels_out > 0) & (columns.channels_out < THIN_CHANNELS) & ~depthwise
    if share[thin].sum() >= MUCH:
        facts.append(f"products with under {THIN_CHANNELS} channels: {share[thin].sum():.0%} of the forecast")
    if shares[OpClass.BATCHED_MATMUL] + shares[OpClass.SOFTMAX] >= MUCH:
        facts.append(f"attention in pieces: {shares[OpClass.BATCHED_MATMUL] + shares[OpClass.SOFTMAX]:.0%}")
    if shares[OpClass.UPDATE] >= MUCH:
        facts.append(f"the optimizer's update: {shares[OpClass.UPDATE]:.0%} of the forecast")
    return facts


def _largest(shares: Mapping[OpClass, float]) -> str:
    first = sorted(shares.items(), key=lambda item: -item[1])[:2]
    return ", ".join(f"{c.value.replace('_', ' ')} {share:.0%}" for c, share in first) + " of the forecast"


def run_reason(row: Mapping[str, object]) -> list[str]:
    """What a row of `runs` itself says that a forecast of kernels does not see."""
    facts = []
    gpus, nodes = int(str(row.get("gpus") or 1)), int(str(row.get("nodes") or 1))
    if row.get("source") == "mlperf_training":
        facts.append("derived from the time to train, evaluation included")
    if gpus > 1:
        facts.append(f"{gpus} GPUs" + (f" on {nodes} nodes" if nodes > 1 else ""))
    if "real" in str(row.get("data") or ""):
        facts.append("real data: the host feeds it")
    return facts


def op_reason(row: Mapping[str, object], bound_ratio: float, launch_ratio: float) -> str:
    """`bound_ratio` is the data sheet's bound over measured, `launch_ratio` one launch over measured."""
    facts = []
    if "suspect" in str(row.get("note")):
        facts.append(f"the table says: {row['note']}")
    if bound_ratio > 1:
        facts.append(f"measured {bound_ratio:.2g} times faster than the data sheet allows: operands stayed in cache")
    elif launch_ratio > 0.5:
        facts.append("about as long as one launch")
    elif bound_ratio < 0.05:
        facts.append(f"reached {bound_ratio:.1%} of its bound")
    sizes = [float(str(row[name])) for name in ("m", "n", "k") if row.get(name) is not None]
    if row.get("family") == "matmul" and sizes and min(sizes) < THIN_CHANNELS:
        facts.append(f"a thin product, least side {min(sizes):.0f}")
    if row.get("family") == "conv" and float(str(row.get("in_channels") or THIN_CHANNELS)) < THIN_CHANNELS:
        facts.append(f"{row['in_channels']} channels in")
    return "; ".join(facts[:MOST_FACTS]) or f"reached {bound_ratio:.0%} of its bound, neither thin nor small"


def layer_reason(seconds: float, kernel: float, stride: float, channels: float, batch: float) -> str:
    """What the shape of a single layer says; `channels` are those that come in."""
    facts = []
    if seconds < 1e-3:
        facts.append("under a millisecond: the host's share decides")
    if kernel >= 5 and stride == 1:
        facts.append(f"window {kernel:.0f}x{kernel:.0f} at stride 1: cuDNN chooses between FFT and direct kernels")
    elif kernel > 1 and stride > 1 and kernel <= stride:
        facts.append("windows that do not overlap")
    if channels < 8:
        facts.append(f"{channels:.0f} channels in")
    if batch == 1:
        facts.append("batch 1")
    return "; ".join(facts[:MOST_FACTS]) or f"window {kernel:.0f}, stride {stride:.0f}: no property stands out"
