"""Peaks that torchtitan publishes of its own layouts, beside ours.

    github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md          tables 1, 2 and 3: H100 of 96 GB
    github.com/pytorch/torchtitan, benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md           H200

Llama 3.1 8B, FSDP2, AdamW; `max_memory_reserved`, the most of all GPUs. Selective checkpointing is that of operators,
as models/llama3/train_configs/llama3_8b.toml asks for it. Until April 2025 (pull request 1033) it compiled the blocks
and left the loss eager, whose scores in float32 are then the peak. Not asked: layouts that shard copies of a split
model (FSDP with tensor, pipeline or context parallel ranks), for which there is no strategy here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import epochcast as ec
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.memory.memory_kinds import RESERVED

GIB = 2**30


@dataclass(frozen=True)
class Layout:
    """One published figure, and the job it is of."""

    device: str
    gpus: int
    batch: int
    length: int
    checkpointing: str
    compiler: str
    precision: str
    published_gib: float
    eager_loss: bool = False


H100, H200 = "H100-SXM5-80GB", "H200"
H100_BYTES = 96 * 10**9
"""Of the boards of tables 1 to 3."""
PER_NODE = 8
BF16, FP8 = "amp_bf16", "fp8"
LAYOUTS = (
    Layout(H100, 8, 2, 8192, "operators", "eager", BF16, 82.4),
    Layout(H100, 8, 2, 8192, "operators", "inductor", BF16, 77.0, eager_loss=True),
    Layout(H100, 8, 2, 8192, "operators", "inductor", FP8, 76.8, eager_loss=True),
    Layout(H100, 8, 1, 32768, "full", "inductor", FP8, 83.9, eager_loss=True),
    Layout(H100, 128, 2, 8192, "operators", "eager", BF16, 67.0),
    Layout(H100, 128, 2, 8192, "operators", "inductor", BF16, 62.0, eager_loss=True),
    Layout(H100, 128, 2, 8192, "operators", "inductor", FP8, 61.8, eager_loss=True),
    Layout(H200, 32, 2, 8192, "operators", "inductor", FP8, 47.96),
    Layout(H200, 64, 2, 8192, "operators", "inductor", FP8, 46.97),
)


def reserved_of(layout: Layout) -> Interval:
    """Our forecast of what PyTorch reserves."""
    answer = ec.forecast(
        "llama3_1_8b",
        device=_device(layout),
        gpus=layout.gpus,
        nodes=-(-layout.gpus // PER_NODE),
        strategy="fsdp",
        batch=layout.batch,
        input_shape=(layout.length,),
        optimizer="adamw",
        precision=layout.precision,
        checkpointing=layout.checkpointing,
        compile=layout.compiler,
        eager_loss=layout.eager_loss,
    )
    assert answer.details.memory is not None
    return answer.details.memory.interval_of(RESERVED)


def _device(layout: Layout) -> Device:
    device = find_device(layout.device)
    return replace(device, memory_bytes=H100_BYTES) if layout.device == H100 else device


def section(layouts: Sequence[Layout] = LAYOUTS) -> Iterator[str]:
    """The lines of the page."""
    forecasts = [reserved_of(layout) for layout in layouts]
    errors = [ours.mid / (GIB * layout.published_gib) - 1 for layout, ours in zip(layouts, forecasts, strict=True)]
    yield "## torchtitan's published layouts, reserved"
    yield ""
    yield "Llama 3.1 8B, FSDP2, peaks of `benchmarks/` in torchtitan's repository. Its layouts that shard copies of a"
    yield "split model are not asked: no strategy here is one."
    yield ""
    yield "| device | GPUs | batch | length | recomputed | compiler | precision | published | ours | error | inside |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for layout, ours, error in zip(layouts, forecasts, errors, strict=True):
        is_inside = ours.holds(GIB * layout.published_gib)
        yield (
            f"| {layout.device} | {layout.gpus} | {layout.batch} | {layout.length} | {layout.checkpointing} | "
            f"{layout.compiler} | {layout.precision} | {layout.published_gib} GiB | {ours.mid / GIB:.1f} GiB | "
            f"{error:+.1%} | {'yes' if is_inside else 'no'} |"
        )
    yield ""
    absolute = np.abs(errors)
    yield f"Mean error {absolute.mean():.1%}, median {np.median(absolute):.1%}, bias {np.mean(errors):+.1%}."
    yield ""
