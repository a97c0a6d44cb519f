"""How much of a network a measured run trains: all of it, or adapters beside a frozen base.

Adapters are named by `task`, `method` or `model` ("lora_finetuning", "qlora", "peft_finetuning LOKR"). Their rank and
layers are in the columns `lora_rank` and `lora_targets`, else in `note` ("peft lora r=16.0 target q_proj v_proj",
"lora_rank=64", "r=16 all linear", "r=8 c_attn", "dim 32"). Where the row says neither, the usual ones are assumed, with
a note: rank 16 at every linear layer of a quantised base (Dettmers et al. 2023), else at queries and values (the
defaults of peft).
Other adapters than LoRA are answered as LoRA, with a note.

Layers have other names in a network that fuses them: q_proj is a part of qkv. Those that it has not are left out, as
peft does.

Without such words, the rates that Megatron Bridge prints in the note of its rows tell:

    flops per parameter and token = model flop/s / (tokens/s · parameters)        6 trains all of it, 4 trains LoRA

A frozen weight has no gradient of its own: 2 forward and 2 for the data are left of 2 + 2 + 2.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from epochcast.base.caching import remembered
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.adapters import ALL_LINEAR, DEFAULT_TARGETS
from epochcast.describe.graph.lora import linear_names
from epochcast.describe.graph.quantised_base import EIGHT, FOUR, NOT_QUANTISED
from epochcast.measure.tables.cells import Row, count, text
from epochcast.measure.tables.precision_words import Quantisation
from epochcast.measure.tables.row_names import row_names
from epochcast.measure.tables.run_network import NamedNetwork

RANK, TARGETS = 16, ("q_proj", "k_proj", "v_proj")
# The limit between four (LoRA) and six (all parameters).
FULL_TUNING_FLOPS = 5.0

_FLOPS = re.compile(r"Model TFLOP / sec / GPU=(\d+(?:\.\d+)?)")
_TOKENS = re.compile(r"tokens/s/GPU=(\d+(?:\.\d+)?)")
_ADAPTER = re.compile(r"\bq?lora|(?<![a-z])(?:lora|lokr|loha|dora)(?![a-z])|peft_finetuning|with adapter|qlora")
_OTHER_ADAPTER = re.compile(r"peft_finetuning (\w+)|with (adapter)\b|\b(lokr|loha|dora)\b", re.IGNORECASE)
_RANK = re.compile(r"\b(?:lora_rank|lora_r|rank|r|dim)\s*[= ]\s*(\d+)(?:\.0)?\b", re.IGNORECASE)
_TARGETS = re.compile(r"\btarget(?:s|_modules)?[ =]\s*(\[[^\]]*\]|[^;,]+)")
_BEHIND_RANK = re.compile(r"\br ?= ?\d+ ([a-zA-Z]+_[a-z]+(?:, ?[a-z]+_[a-z]+)*|[Wq]\w*qkv)\b")
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_ATTENTION = ("qkv", "qkv_proj", "query_key_value", "c_attn")
_SAME_LAYERS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("q_proj", "k_proj", "v_proj", "query_key_value", "c_attn", "Wqkv"), _ATTENTION),
    **dict.fromkeys(("o_proj", "out_proj", "dense"), ("out", "dense", "0")),
    **dict.fromkeys(("gate_proj", "up_proj"), ("gate_up", "gate_up_proj", "up", "dense_h_to_4h")),
    "down_proj": ("down", "dense_4h_to_h"),
}
"""Names of a layer in networks of other families, or of the fused layer that it is a part of."""
_UNKNOWN = {"nf4": "4 bits of bitsandbytes", "int8": "8 bits of bitsandbytes"}
_FROZEN: Mapping[str, tuple[str, ...]] = {
    "projector only": ("*vision_tower*", "*language_model*", "*lm_head*"),
    "vision tower frozen": ("*vision_tower*",),
}
"""Parameters of vision-language models that are not trained, by the words of a method."""
_DIFFUSION_TARGETS = ("to_q", "to_k", "to_v", "0")


@dataclass(frozen=True, slots=True)
class RunTuning:
    """The options of a job that say what is trained, and what was assumed."""

    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def run_tuning(row: Row, network: NamedNetwork, quantisation: Quantisation | None = None) -> RunTuning:
    """What a row trains; without options where that is everything."""
    words = " ".join(text(row, column) for column in ("task", "method", "model")).casefold()
    frozen = next((patterns for said, patterns in _FROZEN.items() if said in words), None)
    if frozen is not None:
        return RunTuning({"freeze": frozen})
    if _ADAPTER.search(words) is None:
        options = _by_rates(row, network)
        if quantisation is None:
            return RunTuning(options)
        return RunTuning(
            options, (f"a base quantised as {quantisation.words} without LoRA is answered as not quantised",)
        )
    if quantisation is None and "qlora" in words:
        quantisation = Quantisation(FOUR, "qlora")
    if quantisation is None and "fp8 base" in words:
        quantisation = Quantisation(EIGHT, "fp8-torchao")
    notes = [*_adapter_note(row), *_base_note(quantisation)]
    linear = _linear(network.reference)
    rank, targets = _stated_rank(row), _present(_stated_targets(row), linear)
    usual: Mapping[str, Any] = row_names()["source_lora"].get(text(row, "source"), {})
    if rank is None:
        rank = int(usual.get("rank", RANK))
        notes.append(f"the rank of LoRA is not given: {rank} is assumed")
    if not targets and "targets" in usual:
        targets = _present(usual["targets"], linear)
    if not targets:
        is_packed = quantisation is not None and quantisation.bits == FOUR and not usual
        targets = (ALL_LINEAR,) if is_packed else _usual_targets(linear)
        notes.append(f"the layers of LoRA are not given: {'all linear ones' if is_packed else 'attention'} is assumed")
    base = _nearest_base(quantisation)
    return RunTuning({"lora": rank, "lora_targets": targets, "quantize": base}, tuple(notes))


def _adapter_note(row: Row) -> list[str]:
    match = _OTHER_ADAPTER.search(f"{text(row, 'task')} {text(row, 'method')}")
    return [f"the adapter {next(filter(None, match.groups()))} is answered as LoRA"] if match else []


def _base_note(quantisation: Quantisation | None) -> list[str]:
    if quantisation is None or quantisation.base is not None:
        return []
    nearest = _nearest_base(quantisation)
    return [f"a base quantised as {quantisation.words} is answered as {_UNKNOWN.get(nearest, 'not quantised')}"]


def _nearest_base(quantisation: Quantisation | None) -> str:
    """The format as a job takes it: bits without a library, or of an unknown one, are those of bitsandbytes."""
    if quantisation is None:
        return NOT_QUANTISED
    usual = {FOUR: "nf4", EIGHT: "int8"}
    return quantisation.base or usual.get(quantisation.bits or 0, NOT_QUANTISED)


def _stated_rank(row: Row) -> int | None:
    rank = count(row, "lora_rank")
    match = _RANK.search(text(row, "note"))
    return rank or (int(match[1]) if match and int(match[1]) else None)


def _stated_targets(row: Row) -> tuple[str, ...]:
    note = text(row, "note")
    match = _TARGETS.search(note) or _BEHIND_RANK.search(note)
    names = text(row, "lora_targets") or (match[1] if match else "")
    lower = f"{names} {note}".casefold()
    if any(words in lower for words in ("all linear", "all-linear", "all attention and feed-forward")):
        return (ALL_LINEAR,)
    if not names and re.search(r"\bq,\s?v\b", lower):
        return ("q_proj", "v_proj")
    return tuple(name for name in _NAME.findall(names) if name != "None")


def _present(targets: Sequence[str], linear: Sequence[str]) -> tuple[str, ...]:
    """The targets by the network's own names, each once; those that it has not are left out."""
    names: dict[str, None] = {}
    for target in targets:
        last = target.rpartition(".")[2]
        choices = [target, last, *_SAME_LAYERS.get(last, ())]
        match = ALL_LINEAR if target == ALL_LINEAR else next((name for name in choices if name in linear), None)
        if match is not None:
            names[match] = None
    return tuple(names)


def _usual_targets(linear: Sequence[str]) -> tuple[str, ...]:
    """Queries and values, or what holds them; of diffusion models all projections of attention."""
    named = tuple(name for name in DEFAULT_TARGETS if name in linear) or _present(("q_proj",), linear)
    return named or tuple(name for name in _DIFFUSION_TARGETS if name in linear) or (ALL_LINEAR,)


def _by_rates(row: Row, network: NamedNetwork) -> dict[str, Any]:
    note = text(row, "note")
    flops, tokens = _FLOPS.search(note), _TOKENS.search(note)
    if row.get("task") != "finetuning" or not flops or not tokens:
        return {}
    graph = find_model(network.reference).graph(1)
    flops_per_parameter_and_token = float(flops[1]) * 1e12 / (float(tokens[1]) * graph.parameter_count)
    if flops_per_parameter_and_token >= FULL_TUNING_FLOPS:
        return {}
    linear = linear_names(graph)
    return {"lora": RANK, "lora_targets": tuple(name for name in TARGETS if name in linear) or TARGETS}


@remembered(64)
def _linear(reference: str) -> tuple[str, ...]:
    return tuple(linear_names(find_model(reference).graph(1)))
