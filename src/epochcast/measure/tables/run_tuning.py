"""How much of a network a measured run trains, where the row says so.

    flops per parameter and token = model flop/s / (tokens/s · parameters)        6 trains all of it, 4 trains LoRA

A frozen weight has no gradient of its own: 2 forward and 2 for the data are left of 2 + 2 + 2. Megatron Bridge prints
both rates in the note of its rows. The rank and the layers are not in the row and hardly change the time: rank 16 at
queries, keys and values is assumed.
"""

import re
from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.lora import linear_names
from epochcast.measure.tables.row_errors import UnknownLora
from epochcast.measure.tables.run_network import NamedNetwork

RANK, TARGETS = 16, ("q_proj", "k_proj", "v_proj")
# The limit between four (LoRA) and six (all parameters).
FULL_TUNING_FLOPS = 5.0

_FLOPS = re.compile(r"Model TFLOP / sec / GPU=(\d+(?:\.\d+)?)")
_TOKENS = re.compile(r"tokens/s/GPU=(\d+(?:\.\d+)?)")


def run_tuning(row: Mapping[str, Any], network: NamedNetwork) -> dict[str, Any]:
    """The options of a recipe that say what is trained; empty where everything is trained, or the row does not say."""
    note = str(row.get("note") or "")
    if network.is_sized and "lora" in str(row.get("task") or "").casefold():
        raise UnknownLora(f"{row.get('model')}: the row does not say rank and layers of its LoRA")
    flops, tokens = _FLOPS.search(note), _TOKENS.search(note)
    if row.get("task") != "finetuning" or not flops or not tokens:
        return {}
    graph = find_model(network.reference).graph(1)
    flops_per_parameter_and_token = float(flops[1]) * 1e12 / (float(tokens[1]) * graph.parameter_count)
    if flops_per_parameter_and_token >= FULL_TUNING_FLOPS:
        return {}
    linear = linear_names(graph)
    return {"lora": RANK, "lora_targets": tuple(name for name in TARGETS if name in linear) or TARGETS}
