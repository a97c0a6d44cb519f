"""Scratch memory of convolutions; on GPUs that of cuDNN.

Non-fused Winograd F(4x4, 3x3) (Lavin & Gray 2016) keeps 6x6 tiles of input, output and weights for every 4x4 outputs:

    workspace = 36/16 · (input + output) + 36/9 · weights

cuDNN's heuristics take it for dense 3x3 convolutions of stride 1 and at least 64 channels in float32. The measurements
(memory_schedtune, VGG and ResNet) show it on Kepler and Turing; on Volta and Ampere implicit products need almost
nothing. Windows of 5x5 and more, of stride 1, are transformed in tiles (Mathieu et al. 2014) on every generation; the
factor 36/16 for them is based on one network, AlexNet's largest batch in the thesis.

Every call allocates and frees its workspace; if there is no room, cuDNN uses an algorithm without one. So a workspace
raises the peak and leaves gaps that later requests may not fit into, but does not make a step fail.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import Conv
from epochcast.describe.graph.ops.conv_op import ConvShape, conv_shape
from epochcast.describe.graph.precision import PRECISIONS, SINGLE_STRICT, Precision
from epochcast.describe.graph.rebatch import resized
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import LARGE_BATCH, SMALL_BATCH, Trace
from epochcast.hardware.device import Device
from epochcast.predict.memory.lifetimes import Lifetimes, Role
from epochcast.predict.memory.reorders import reorder_bytes

WINOGRAD_GENERATIONS = frozenset({"kepler", "maxwell", "pascal", "turing"})
"""Kepler and Turing were measured; Maxwell and Pascal are between them and are assumed to do the same."""
MOST_BYTES: Mapping[str, int] = {"turing": 2**31}
"""Larger workspaces are not requested. VGG-13, 16 and 19 show it at batch 64 on Turing (three of the measurements: the
3.7 GB of their widest layers are missing, where at batch 32 the 1.9 GB are there), which fits a workspace addressed in
32 bits. Kepler's older library has no such limit."""
LEAST_CHANNELS = 64
LARGE_WINDOW = 5


def workspace_bytes(op: Op, generation: str, precision: Precision = PRECISIONS[SINGLE_STRICT]) -> int:
    """The workspace of one call; 0 if no transform applies. In fp32 cuDNN may choose a transform as well as tensor
    cores, so room for it is kept; where everything is on tensor cores (tf32) it is not.
    """
    if precision.on_tensor_cores:
        return 0
    if not isinstance(op.kind, Conv) or op.kind.groups > 1 or op.kind.transposed or op.dtype is not DType.FLOAT32:
        return 0
    shape = conv_shape(op)
    if len(shape.kernel) != 2 or set(op.kind.dilation) != {1} or set(op.kind.stride) != {1}:
        return 0
    if not (min(shape.kernel) >= LARGE_WINDOW or (generation in WINOGRAD_GENERATIONS and _is_winograd(shape))):
        return 0
    operands = (*op.inputs, *op.outputs, *op.weights)
    weight_bytes = prod(shape.kernel) * shape.channels_in * shape.channels_out * op.dtype.bytes
    data_bytes = sum(t.bytes for t in operands if len(t.shape) == 4) - weight_bytes
    return 9 * data_bytes // 4 + 4 * weight_bytes


def _is_winograd(shape: ConvShape) -> bool:
    return shape.kernel == (3, 3) and min(shape.channels_in, shape.channels_out) >= LEAST_CHANNELS


def most_workspace_bytes(device: Device) -> int | None:
    """The largest workspace that is requested; None if there is no limit."""
    return MOST_BYTES.get(device.generation) if device.kind == "gpu" else None


def with_workspaces(lives: Lifetimes, trace: Trace, device: Device | None) -> Lifetimes:
    """The lifetimes with storages for the scratch of the device's convolutions: cuDNN's workspaces by the generation of
    a GPU, oneDNN's copies on a processor (`reorders`).
    """
    if device is None or device.kind not in ("gpu", "cpu"):
        return lives

    def scratch_bytes(op: Op) -> tuple[int, ...]:
        if device.kind == "cpu":
            return reorder_bytes(op, channels_last=trace.recipe.channels_last)
        workspace = workspace_bytes(op, device.generation, trace.recipe.precision_rules)
        return (workspace,) if workspace else ()

    samples, sample_of = trace.template.distinct
    small_parts = [scratch_bytes(op) for op, _ in samples]
    if not any(small_parts):
        return lives
    large_parts = [
        scratch_bytes(resized(*sample, LARGE_BATCH)) if parts else ()
        for sample, parts in zip(samples, small_parts, strict=True)
    ]
    with_scratch = [(place, number) for place, number in enumerate(sample_of.tolist()) if small_parts[number]]
    places = np.array([place for place, number in with_scratch for _ in small_parts[number]], dtype=np.int64)
    small, large = (
        np.array([part for _, number in with_scratch for part in parts[number]], dtype=np.int64)
        for parts in (small_parts, large_parts)
    )
    slope = (large - small) // (LARGE_BATCH - SMALL_BATCH)
    return lives.joined(
        tuple(f"{trace.template.names[place]}#workspace" for place in places),
        np.full(len(places), Role.WORKSPACE),
        small - SMALL_BATCH * slope,
        slope,
        places,
        places,
    )
