"""Which kernels attention runs by, where a job does not say: by framework, its version, precision and device.

fused softmax       Megatron-LM and its like before PyTorch 2.0: one kernel scales, masks and takes the softmax of the
                    scores, which two batched products write and read (megatron/fused_kernels)
eager               PyTorch before 2.0 has no fused kernel; TensorFlow multiplies by einsum; nor is there one in
                    double precision, for capped scores (Gemma 2), or for AMD's GPUs before CDNA 2 and RDNA 3 (AOTriton)
flash               PyTorch's scaled_dot_product_attention in halves on NVIDIA's Ampere and later, AMD's as above
memory-efficient    the same function elsewhere and where a bias is added to the scores (T5); also one kernel without
                    the matrix of scores, so that a graph does not tell the two apart
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from epochcast.describe.capture.model_reference import SIZES, ModelReference
from epochcast.describe.graph.op import Op, Phase
from epochcast.describe.graph.op_kinds import Attention, Softmax
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.ops.attention_op import OPERANDS
from epochcast.describe.graph.precision import find_precision
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import CLASSES, Trace
from epochcast.hardware.device import Device
from epochcast.predict.forecast.job import AUTO, Job

# The first PyTorch with scaled_dot_product_attention.
_FUSED_VERSION = 2
_NVIDIA_BEFORE_FLASH = frozenset({"fermi", "kepler", "maxwell", "pascal", "volta", "turing"})
_AMD_WITHOUT = frozenset({"gcn5", "cdna", "rdna", "rdna2"})
_HALVES = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT8, DType.FLOAT4})


def chosen_attention(job: Job, device: Device | None = None) -> str:
    """flash, fused_softmax or eager as the job says, else as its framework does on the device: sdpa (PyTorch's fused
    kernels), without them fused_softmax for a model as large trainers run it (`decoder:`), or eager.
    """
    if job.attention != AUTO:
        return job.attention
    version = job.framework_numbers
    is_old = version is not None and version[0] < _FUSED_VERSION
    is_double = job.precision != AUTO and find_precision(job.precision).products is DType.FLOAT64
    is_without = device is not None and device.generation in _AMD_WITHOUT
    if job.framework != "pytorch" or is_double or is_without:
        return "eager"
    if not is_old:
        return "sdpa"
    of_large_trainers = isinstance(job.model, str) and ModelReference.of(job.model).prefix == SIZES
    return "fused_softmax" if of_large_trainers else "eager"


def attention_kernels(trace: Trace, device: Device) -> str | None:
    """What the attention of a step runs by, in a word; None where it has none."""
    ops = trace.template.base
    fused = [op for op in ops if isinstance(op.kind, Attention)]
    if fused:
        is_half = trace.recipe.precision_rules.products in _HALVES
        has_bias = any(len(op.inputs) > OPERANDS for op in fused if not op.is_gradient)
        is_flash = is_half and not has_bias and device.generation not in _NVIDIA_BEFORE_FLASH
        return "flash" if is_flash else "memory-efficient"
    products = trace.columns.op_class == CLASSES.index(OpClass.BATCHED_MATMUL)
    if not products.any() or not any(isinstance(op.kind, Softmax) and not op.kind.log for op in ops):
        return None
    return "fused softmax" if trace.recipe.attention == "fused_softmax" else "eager"


class Window(NamedTuple):
    """So many tokens that a layer looks at; the others a mask hides, or its kernel skips them."""

    tokens: int
    is_mask: bool


def seen_windows(trace: Trace) -> Mapping[Window | None, int]:
    """How many layers with fused attention have which window; None: they look at all tokens."""
    fused = [op for op in trace.template.base if isinstance(op.kind, Attention) and op.phase is Phase.FORWARD]
    return Counter(map(_window_of, fused))


def attention_windows(trace: Trace) -> str:
    """The same in words; empty where all look at all tokens."""
    windows = seen_windows(trace)
    layers = sum(windows.values())
    return ", ".join(
        f"window {window.tokens:,}{' by a mask' if window.is_mask else ''} in {count} of {layers} layers"
        for window, count in windows.items()
        if window is not None
    )


def _window_of(op: Op) -> Window | None:
    assert isinstance(op.kind, Attention)
    is_seen_whole = not 0 < op.kind.window < op.inputs[1].shape[-2]
    return None if is_seen_whole else Window(op.kind.window, len(op.inputs) > OPERANDS)
