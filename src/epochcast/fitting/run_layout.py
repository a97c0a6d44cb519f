"""How a measured run was laid out over its GPUs, read from a note such as "FSDP=0; TP=4; PP=8; CP=1; VP=4; EP=n/a".

    data parallel ranks = gpus / (TP · PP · CP)
    micro-batches of a step = global batch / (micro-batch · data parallel ranks)

The table's batch per GPU is then the micro-batch. Megatron's distributed optimizer is `zero1`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.errors import BadInput

_DEGREE = re.compile(r"\b(FSDP|TP|PP|CP|VP|EP)=(\d+)")
# Rows without nodes have the note "8 GPU per node DGX; NVL72 for GB"; of a rack of 72 GPUs 64 are used.
_NODES_NOTE = "NVL72 for GB"
_RACK_GPUS, _NODE_GPUS = 64, 8


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The strategy by our name, micro-batches of a step, and nodes (None: those of the row)."""

    strategy: str
    accumulate: int
    nodes: int | None


def run_layout(row: Mapping[str, Any]) -> RunLayout | None:
    """The layout in a row's note; None where there is none."""
    note, gpus = str(row.get("note") or ""), int(row.get("gpus") or 1)
    degrees = {name: int(degree) for name, degree in _DEGREE.findall(note)}
    if not degrees:
        return None
    tensor, pipeline, context = (max(1, degrees.get(name, 1)) for name in ("TP", "PP", "CP"))
    if gpus % (tensor * pipeline * context):
        split = f"TP={tensor} times PP={pipeline} times CP={context}"
        raise BadInput(f"{row.get('model')}: {split} does not divide {gpus} GPUs")
    data = gpus // (tensor * pipeline * context)
    return RunLayout(
        _strategy(degrees, data),
        _micro_batches(row, data),
        _nodes(gpus, str(row.get("device") or "")) if _NODES_NOTE in note else None,
    )


def _strategy(degrees: Mapping[str, int], data: int) -> str:
    split = {name: degrees[name] for name in ("TP", "PP", "CP", "EP") if degrees.get(name, 1) > 1}
    if degrees.get("FSDP", 0) > 1 and not split:
        return "fsdp"
    parts = [f"dp{data}", *(f"{name.casefold()}{degree}" for name, degree in split.items())]
    if "PP" in split and degrees.get("VP", 1) > 1:
        parts.append(f"vp{degrees['VP']}")
    return ",".join([*parts, "zero1"])


def _micro_batches(row: Mapping[str, Any], data: int) -> int:
    """Global batch / samples of one round of micro-batches; without a global batch, the row's `grad_accum`."""
    global_batch, micro_batch = row.get("global_batch"), row.get("batch_per_gpu")
    if not global_batch or not micro_batch:
        return int(row.get("grad_accum") or 1)
    count = float(global_batch) / (float(micro_batch) * data)
    if count < 1 or count != int(count):
        raise BadInput(
            f"{row.get('model')}: a global batch of {global_batch:g} is not a whole number of "
            f"micro-batches of {micro_batch:g} on {data} replicas"
        )
    return int(count)


def _nodes(gpus: int, device: str) -> int:
    gpus_per_node = _RACK_GPUS if device.startswith("GB") else _NODE_GPUS
    return max(1, gpus // gpus_per_node)
