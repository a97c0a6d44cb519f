"""Copies that convolutions on a CPU make of their operands.

oneDNN computes a float32 convolution on blocks of eight channels. PyTorch's tensors are not blocked, so every call
copies its operands into blocks, makes a blocked result, drops the copies of the operands, and copies the result back
(aten/src/ATen/native/mkldnn/Conv.cpp). In addition to operands and result it holds

    max(copies of the operands + copy of the result − result, copy of the result)
    = copy of the result + max(0, copies of the operands − result)

Channels are padded to whole blocks. Images (at most three channels) are not copied. In channels-last only the
weights are copied.

Measured with torch's profiler, exact to the byte, on a CPU with AVX2; AVX-512 has blocks of 16. Limit: strided
gradients and groups that do not fill blocks need a little more or less than this. Matrix products are computed without
copies.
"""

from epochcast.describe.graph.op import Gradient, Op
from epochcast.describe.graph.op_kinds import Conv
from epochcast.describe.graph.tensor import DType, Tensor

BLOCK_CHANNELS = 8
PICTURE_CHANNELS = 3


def reorder_bytes(op: Op, *, channels_last: bool = False) -> tuple[int, ...]:
    """The two terms of one call, each affine in the batch: the second counts if it is above 0. Empty if oneDNN does not
    compute the op.
    """
    if not isinstance(op.kind, Conv) or op.dtype is not DType.FLOAT32:
        return ()
    result, is_weight_gradient = op.outputs[0], op.gradient is Gradient.WEIGHTS
    weight = _weight_bytes(result if is_weight_gradient else op.weights[0])
    if channels_last:
        return (weight,)
    if is_weight_gradient:
        return weight, _data_bytes(op.inputs[0]) + _data_bytes(op.inputs[1]) - result.bytes
    return _data_bytes(result), _data_bytes(op.inputs[0]) + weight - result.bytes


def _data_bytes(data: Tensor) -> int:
    channels = data.shape[1]
    return 0 if channels <= PICTURE_CHANNELS else data.bytes // channels * _padded(channels)


def _weight_bytes(weight: Tensor) -> int:
    out, into = weight.shape[:2]
    return weight.bytes // (out * into) * _padded(out) * _padded(into)


def _padded(channels: int) -> int:
    if channels <= PICTURE_CHANNELS:
        return channels
    return -(-channels // BLOCK_CHANNELS) * BLOCK_CHANNELS
