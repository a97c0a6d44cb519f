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

from epochcast.base.caching import remembered
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.quantised_base import BASES
from epochcast.errors import InvalidLayout
from epochcast.hardware.device import Device
from epochcast.measure.tables.cells import count, number, text
from epochcast.measure.tables.row_names import framework_strategy, is_trainer, source_layout

_COLUMNS = ("dp", "tp", "pp", "cp", "ep", "vp")
_DEGREE = re.compile(r"\b(FSDP|TP|PP|CP|VP|EP)=(\d+)")
_DISPATCHED = re.compile(r"\bDeepEP\b")
_DISTRIBUTED = re.compile(r"\(distributed\)|distributed optimizer")
_HALF_BYTES = 2.0
_ZERO_GROUP, _HYBRID = re.compile(r"\bzero1=(\d+)"), re.compile(r"\bHSDP\b")
# Rows without nodes have the note "8 GPU per node DGX; NVL72 for GB"; of a rack of 72 GPUs 64 are used.
_DEVICE_MAP = "layers spread by device_map"
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
    column_degrees = _column_degrees(row)
    if column_degrees:
        _check_experts(row)
        data = _data_ranks(row, column_degrees, gpus)
        rounds = _micro_batches(row, data)
        return RunLayout(_column_strategy(row, column_degrees, data, rounds), rounds, None)
    degrees_in_note = _note_degrees(row)
    if not degrees_in_note:
        _check_split(row, gpus)
        return _without_degrees(row, gpus)
    data = _data_ranks(row, degrees_in_note, gpus)
    return RunLayout(
        _strategy(row, degrees_in_note, data),
        _micro_batches(row, data),
        _nodes(gpus, text(row, "device")) if _NODES_NOTE in note else None,
    )


def tensor_ranks(row: Mapping[str, Any]) -> int:
    """How many ranks share a matrix product, by the columns or the note."""
    return (_column_degrees(row) or _note_degrees(row)).get("TP", 1)


def _column_degrees(row: Mapping[str, Any]) -> dict[str, int]:
    return {name.upper(): degree for name in _COLUMNS if (degree := count(row, name))}


def _note_degrees(row: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(degree) for name, degree in _DEGREE.findall(text(row, "note"))}


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


def check_copies(row: Mapping[str, Any], reference: str, quantize: str, device: Device) -> None:
    """Refuse a row without a layout whose GPUs cannot each hold a copy of the parameters: it was split, and what
    decides its time is how.
    """
    if (
        (count(row, "gpus") or 1) == 1
        or text(row, "strategy")
        or framework_strategy(text(row, "framework")) is not None
    ):
        return
    bytes_of_one = BASES[quantize].bits / 8 if quantize in BASES else _HALF_BYTES
    copy_bytes = bytes_of_one * (number(row, "parameters") or _parameters(reference))
    if copy_bytes > device.memory_bytes:
        raise InvalidLayout(
            f"{row.get('model')}: its parameters take {copy_bytes / 1e9:.0f} GB, a {device.name} has "
            f"{device.memory_bytes / 1e9:.0f} GB, and the row does not say how the model was split (dp, tp, pp, zero)"
        )


@remembered(64)
def _parameters(reference: str) -> int:
    return find_model(reference).graph(1).parameter_count


def _without_degrees(row: Mapping[str, Any], gpus: int) -> RunLayout | None:
    """ZeRO's stage where a row has no degrees: all its GPUs share. Layers that `device_map` spread (transformers) are
    run one after another: GPUs wait for each other.
    """
    stage, accumulate = int(number(row, "zero") or 0), count(row, "grad_accum") or 1
    if gpus == 1 or text(row, "strategy"):
        return None
    if _DEVICE_MAP in text(row, "note"):
        return RunLayout("model", accumulate, None)
    return RunLayout(f"zero{stage}", accumulate, None) if stage else None


def _column_strategy(row: Mapping[str, Any], degrees: Mapping[str, int], data: int, rounds: int) -> str:
    """The product by our name; ZeRO's stages 2 and 3 go with data parallel ranks alone."""
    stage = _zero_stage(row)
    split = {name: degrees[name] for name in ("TP", "PP", "CP", "EP") if degrees.get(name, 1) > 1}
    if stage > 1 and split:
        raise InvalidLayout(f"ZeRO {stage} beside {', '.join(split)} is not modelled")
    neighbours = _neighbours(row, data)
    if stage and not split and (stage > 1 or neighbours):
        return f"zero{stage}{neighbours}"
    parts = [f"dp{data}", *(f"{name.casefold()}{degree}" for name, degree in split.items())]
    if "PP" in split:
        parts += _stages(row, degrees, rounds)
    return ",".join([*parts, *_overlap(row, split), *(["zero1"] if stage else [])])


def _neighbours(row: Mapping[str, Any], data: int) -> str:
    """The ranks that share what ZeRO shards, where the note has fewer than all: "zero1=8" of InternEvo; "HSDP" is
    FSDP inside nodes.
    """
    note, nodes = text(row, "note"), count(row, "nodes") or 1
    stated = _ZERO_GROUP.search(note)
    ranks = int(stated[1]) if stated else data // nodes if _HYBRID.search(note) else data
    return f":{ranks}" if 1 < ranks < data else ""


def _check_experts(row: Mapping[str, Any]) -> None:
    """Tokens that travel to experts (DeepEP) say that experts were spread, not over how many GPUs."""
    if _DISPATCHED.search(text(row, "note")) and count(row, "ep") is None:
        raise InvalidLayout(f"{row.get('model')}: the row does not say over how many GPUs experts were spread (ep)")


def _zero_stage(row: Mapping[str, Any]) -> int:
    """As the column says; Megatron's distributed optimizer shards its state: "adam (distributed)". Else as the source's
    scripts ask for.
    """
    stated = number(row, "zero")
    if stated is not None:
        return int(stated)
    if _DISTRIBUTED.search(text(row, "optimizer").casefold()):
        return 1
    return int(source_layout(text(row, "source"), text(row, "framework")).get("zero", 0))


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


def _overlap(row: Mapping[str, Any], split: Mapping[str, int]) -> list[str]:
    """NeMo's layouts for speed exchange beside products (ub_tp_comm_overlap)."""
    return ["overlap"] if "TP" in split and is_trainer("tensor_overlap", text(row, "framework")) else []


def _strategy(row: Mapping[str, Any], degrees: Mapping[str, int], data: int) -> str:
    split = {name: degrees[name] for name in ("TP", "PP", "CP", "EP") if degrees.get(name, 1) > 1}
    if degrees.get("FSDP", 0) > 1 and not split:
        return "fsdp"
    parts = [f"dp{data}", *(f"{name.casefold()}{degree}" for name, degree in split.items())]
    if "PP" in split and degrees.get("VP", 1) > 1:
        parts.append(f"vp{degrees['VP']}")
    return ",".join([*parts, *_overlap(row, split), "zero1"])


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
