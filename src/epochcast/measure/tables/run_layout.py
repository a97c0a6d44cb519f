"""How a measured run was laid out over its GPUs, read from the columns `dp`, `tp`, `pp`, `cp`, `ep`, `vp`, `zero` and
`micro_batch`, else from a note such as "FSDP=0; TP=4; PP=8; CP=1; VP=4; EP=n/a".

    data parallel ranks = gpus / (TP · PP · CP)
    micro-batches of a step = global batch / (micro-batch · data parallel ranks)

The table's batch per GPU is then the micro-batch. Megatron's distributed optimizer is `zero1`, in a note always.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochcast.errors import InvalidLayout
from epochcast.measure.tables.cells import count, number, text
from epochcast.measure.tables.row_names import framework_strategy, is_trainer

_COLUMNS = ("dp", "tp", "pp", "cp", "ep", "vp")
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
    """The layout in a row's columns or in its note; None where there is none."""
    gpus, note = count(row, "gpus") or 1, text(row, "note")
    degrees = {name.upper(): count(row, name) for name in _COLUMNS}
    if any(degrees.values()):
        column_degrees = {name: degree for name, degree in degrees.items() if degree}
        data = _data_ranks(row, column_degrees, gpus)
        rounds = _micro_batches(row, data)
        return RunLayout(_column_strategy(row, column_degrees, data, rounds), rounds, None)
    degrees_in_note = {name: int(degree) for name, degree in _DEGREE.findall(note)}
    if not degrees_in_note:
        _check_split(row, gpus)
        return None
    data = _data_ranks(row, degrees_in_note, gpus)
    return RunLayout(
        _strategy(degrees_in_note, data),
        _micro_batches(row, data),
        _nodes(gpus, text(row, "device")) if _NODES_NOTE in note else None,
    )


def _data_ranks(row: Mapping[str, Any], degrees: Mapping[str, int], gpus: int) -> int:
    tensor, pipeline, context = (max(1, degrees.get(name, 1)) for name in ("TP", "PP", "CP"))
    split = f"TP={tensor} times PP={pipeline} times CP={context}"
    if gpus % (tensor * pipeline * context):
        raise InvalidLayout(f"{row.get('model')}: {split} does not divide {gpus} GPUs")
    data = gpus // (tensor * pipeline * context)
    if degrees.get("DP", data) != data:
        raise InvalidLayout(f"{row.get('model')}: DP={degrees['DP']} times {split} is not {gpus} GPUs")
    return data


def _check_split(row: Mapping[str, Any], gpus: int) -> None:
    """A trainer of large models whose row has sizes but no degrees split its model in a way that nobody knows."""
    words = text(row, "framework")
    is_split = gpus > 1 and count(row, "layers") is not None and is_trainer("fused_update", words)
    if is_split and not text(row, "strategy") and framework_strategy(words) is None:
        raise InvalidLayout(f"{row.get('model')}: the row does not say how its model was split (dp, tp, pp)")


def _column_strategy(row: Mapping[str, Any], degrees: Mapping[str, int], data: int, rounds: int) -> str:
    """The product by our name; ZeRO's stages 2 and 3 go with data parallel ranks alone."""
    stage = int(number(row, "zero") or 0)
    split = {name: degrees[name] for name in ("TP", "PP", "CP", "EP") if degrees.get(name, 1) > 1}
    if stage > 1 and split:
        raise InvalidLayout(f"ZeRO {stage} beside {', '.join(split)} is not modelled")
    if stage > 1:
        return f"zero{stage}"
    parts = [f"dp{data}", *(f"{name.casefold()}{degree}" for name, degree in split.items())]
    if "PP" in split:
        parts += _stages(row, degrees, rounds)
    return ",".join([*parts, *(["zero1"] if stage else [])])


def _stages(row: Mapping[str, Any], degrees: Mapping[str, int], rounds: int) -> list[str]:
    """How a pipeline's stages are cut. NeMo interleaves: where the row has no chunks, every layer of a stage is one.
    Megatron and its children give every stage as many layers, nanotron as much work.
    """
    words, stages = text(row, "framework"), degrees["PP"]
    chunks = degrees.get("VP", 1)
    if "VP" not in degrees and is_trainer("interleaved", words):
        each, rest = divmod(count(row, "layers") or 0, stages)
        chunks = 1 if rest or rounds % stages else max(1, each)
    parts = [f"vp{chunks}"] if chunks > 1 else []
    return [*parts, *(["even"] if is_trainer("even_stages", words) else [])]


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
    global_batch, micro_batch = number(row, "global_batch"), number(row, "batch_per_gpu")
    if not global_batch or not micro_batch:
        return count(row, "grad_accum") or 1
    rounds = global_batch / (micro_batch * data)
    if rounds < 1 or rounds != int(rounds):
        raise InvalidLayout(
            f"{row.get('model')}: a global batch of {global_batch:g} is not a whole number of "
            f"micro-batches of {micro_batch:g} on {data} replicas"
        )
    return int(rounds)


def _nodes(gpus: int, device: str) -> int:
    gpus_per_node = _RACK_GPUS if device.startswith("GB") else _NODE_GPUS
    return max(1, gpus // gpus_per_node)
