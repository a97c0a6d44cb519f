"""Megatron's own estimate of a layout, which Megatron-Bridge reports at the start of a run, beside ours.

github.com/NVIDIA/Megatron-LM, megatron/training/theoretical_memory_usage.py (Megatron-Bridge:
src/megatron/bridge/training/utils/theoretical_memory_utils.py). With s tokens, micro-batches of b, L layers of width h
and feed-forward width f, vocabulary v, t tensor, p pipeline and d data parallel ranks:

    weights and optimizer = N · 18 bytes, or N · (6 + 12/d) with a distributed optimizer
    N                     = (layers/p + a table) / t; without pipeline and untied, a second table
    activations           = [s·b·h·(18 + 4f/h)·L + p·(8·s·b + s·b·h)] / t              sequence parallel
                          = 1.05 · [s·b·h·(10 + 24/t)·L + p·(8·s·b + s·b·h)]           else
    and of the output     4·s·b·h·(1 + v/h) / t, or 1.05 · 2·(s·b·v/t + s·b·h); without a pipeline alone

The activations are those of Korthikanti et al. 2022 with attention recomputed (table 2), of a GPT with dropout. It has
no formula for blocks that are recomputed as a whole, none for context, and what it names is allocated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epochcast.describe.capture.model_reference import SIZES, ModelReference
from epochcast.measure.tables.run_table import MeasuredRun

PLAIN_BYTES, KEPT_BYTES, SHARED_BYTES = 18, 6, 12
"""Of a parameter: in all; what every data parallel rank keeps of it, and what they share."""


@dataclass(frozen=True)
class MegatronLayout:
    """What the estimate knows of a run."""

    layers: int
    hidden: int
    heads: int
    vocab: int
    kv_heads: int
    ffn: int
    is_gated: bool
    has_layer_norms: bool
    is_tied: bool
    length: int
    micro_batch: int
    micro_batches: int
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    is_distributed: bool = False
    is_sequence_parallel: bool = False

    @property
    def parameters(self) -> float:
        """Of the fullest rank."""
        norm = 2 if self.has_layer_norms else 1
        attention = 2 * self.hidden**2 * (1 + self.kv_heads / self.heads)
        layer = 2 * self.hidden * (self.ffn * (1.5 if self.is_gated else 1) + norm) + attention
        table = self.hidden * self.vocab
        tables = 1 if self.is_tied or self.pipeline > 1 else 2
        return ((self.layers * layer + norm * self.hidden) / self.pipeline + tables * table) / self.tensor

    @property
    def state_bytes(self) -> float:
        """Weights, gradients and optimizer state."""
        return self.parameters * (KEPT_BYTES + SHARED_BYTES / self.data if self.is_distributed else PLAIN_BYTES)

    @property
    def activation_bytes(self) -> float:
        """Of the first stage of the pipeline."""
        tokens = self.length * self.micro_batch
        values = tokens * self.hidden
        embedded = self.pipeline * (8 * tokens + values)
        in_flight = min(1.0, self.micro_batches / self.pipeline)
        is_last = self.pipeline == 1
        if self.is_sequence_parallel:
            layers = values * (18 + 4 * self.ffn / self.hidden) * self.layers
            output = 4 * values * (1 + self.vocab / self.hidden) if is_last else 0
            return ((layers + embedded) * in_flight + output) / self.tensor
        layers = values * (10 + 24 / self.tensor) * self.layers
        output = 2 * (tokens * self.vocab / self.tensor + values) if is_last else 0
        return 1.05 * ((layers + embedded) * in_flight + output)


def megatron_bytes(run: MeasuredRun, row: Mapping[str, Any]) -> float:
    """The estimate for a row; NaN where it has none: for other models than decoders, blocks that are recomputed as a
    whole, and experts.
    """
    model = ModelReference.of(run.reference)
    is_split = row.get("tp") is not None and row.get("pp") is not None
    if model.prefix != SIZES or not is_split or run.job.checkpointing is True or row.get("vp"):
        return float("nan")
    sizes = dict(part.split("=") for part in model.name.split(","))
    if "experts" in sizes:
        return float("nan")
    style, hidden, heads = sizes.get("style", "llama"), int(sizes["hidden"]), int(sizes["heads"])
    is_gpt = style in ("gpt", "bloom")
    layout = MegatronLayout(
        layers=int(sizes["layers"]),
        hidden=hidden,
        heads=heads,
        vocab=int(sizes["vocab"]),
        kv_heads=int(sizes.get("kv_heads", heads)),
        ffn=int(sizes.get("ffn", 4 * hidden)),
        is_gated=style == "llama",
        has_layer_norms=style != "llama",
        is_tied=bool(int(sizes.get("tied", is_gpt))),
        length=_length(run.largest_job.input_shape),
        micro_batch=run.job.batch or 1,
        micro_batches=run.job.accumulate,
        tensor=int(row["tp"]),
        pipeline=int(row["pp"]),
        data=int(row.get("dp") or 1),
        is_distributed="zero1" in (run.strategy or "").split(","),
        is_sequence_parallel=run.job.sequence_parallel,
    )
    return layout.state_bytes + layout.activation_bytes


def _length(shape: Sequence[int] | None) -> int:
    assert shape is not None
    return shape[0]
