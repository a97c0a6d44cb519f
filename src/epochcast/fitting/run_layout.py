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
# "8 GPU per node DGX; NVL72 for GB" is said where a row does not give its nodes; racks of 72 are used by 64.
_NODES_DEPEND = "NVL72 for GB"
_RACK, _BOX = 64, 8


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The strategy by its name here, micro-batches of a step, and boxes (None: as the row says)."""

    strategy: str
    accumulate: int
    nodes: int | None


def run_layout(row: Mapping[str, Any]) -> RunLayout | None:
    """The layout a row's note describes; None where it describes none."""
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
        _nodes(gpus, str(row.get("device") or "")) if _NODES_DEPEND in note else None,
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
    """Global batch over what one round of micro-batches takes; what the row says where it gives no global batch."""
    whole, micro = row.get("global_batch"), row.get("batch_per_gpu")
    if not whole or not micro:
        return int(row.get("grad_accum") or 1)
    count = float(whole) / (float(micro) * data)
    if count < 1 or count != int(count):
        raise BadInput(
            f"{row.get('model')}: a global batch of {whole:g} is no whole number of micro-batches of {micro:g} on "
            f"{data} replicas"
        )
    return int(count)


def _nodes(gpus: int, device: str) -> int:
    each = _RACK if device.startswith("GB") else _BOX
    return max(1, gpus // each)
