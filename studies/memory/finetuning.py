"""LitGPT's published fine-tuning runs: PyTorch's own peak of allocated memory against ours, from nothing.

Two tables of that project are in `runs`: one GPU of 24 GB with texts cut at 512 tokens (`config_hub/finetune`), and one
A100 of 40 GB with the whole of Alpaca (`tutorials/resource-tables.md`). What the rows leave out is in those files:

    rank and layers of LoRA     `config_hub/finetune/NAME/{lora,qlora}.yaml`, and `trainable=` of the A100 rows
    tokens of the longest text  `resource-tables.md`, by tokenizer: the peak is the longest text's
    output layer                never tied to the embeddings, whatever the published model does (`litgpt/model.py`)
    Phi's gelu and projections  as those of its other models (`litgpt/model.py`)

Not in our graph, though LitGPT does it: padding of the updates of packed projections, the output layer in pieces of 128
tokens. Texts of the first table are taken to reach their 512 tokens.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo import ZOO
from epochcast.describe.graph.lora import linear_names
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, EpochcastError
from epochcast.predict.memory.peak import PeakMemory, peak_memory

CUT = 512
WAYS: Mapping[str, str] = {"qlora": "QLoRA", "lora": "LoRA", "full": "all parameters"}
ATTENTION = ("q_proj", "v_proj")
EVERY = (
    *("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"),
    *("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h", "embed_out"),
)
"""All linear layers; packed projections are adapted whole, though LitGPT may leave the keys out."""

MODELS: Mapping[str, str] = {
    "falcon-7b": "falcon_7b",
    "gemma-2b": "gemma_2b",
    "gemma-7b": "gemma_7b",
    "gemma2-2b": "gemma2_2b",
    "gemma2b": "gemma2_2b",
    "gemma2-9b": "gemma2_9b",
    "llama-2-7b": "llama2_7b",
    "llama-3-8b": "llama3_8b",
    "llama-3.1-8b": "llama3_1_8b",
    "llama-3.2-1b": "llama3_2_1b",
    "llama-3.2-3b": "llama3_2_3b",
    "mistral-7b": "mistral_7b",
    "mistral-7b-v0.2": "mistral_7b",
    "phi-2": "phi_2",
    "phi-3": "phi3_mini",
    "stablelm-base-alpha-3b": "stablelm_base_alpha_3b",
    "tiny-llama": "tinyllama_1_1b",
    "phi-1.5 1.3 B": "phi_1_5",
    "StableLM Alpha 3 B": "stablelm_base_alpha_3b",
    "Llama 2 7 B": "llama2_7b",
    "Llama 2 13 B": "llama2_13b",
}
"""By the folder of the configuration, or by the model's name in the second table."""

LONGEST: Mapping[str, int] = {"phi_1_5": 1044, "stablelm_base_alpha_3b": 1034, "llama2_7b": 1304, "llama2_13b": 1304}
"""Tokens of Alpaca's longest text by tokenizer (`resource-tables.md`)."""

# Folders whose LoRA stands beside every layer: its rank, and that of QLoRA. All others have rank 32 beside queries and
# values.
EVERYWHERE: Mapping[str, tuple[int, int]] = {
    "gemma-2b": (8, 16),
    "gemma-7b": (16, 16),
    "gemma2-2b": (8, 16),
    "gemma2b": (8, 16),
    "gemma2-9b": (16, 16),
    "phi-2": (8, 8),
    "phi-3": (8, 8),
    "tiny-llama": (32, 32),
}


_OTHERWISE = ("tied", "is_phi", "packed")
"""Options of the zoo's networks that LitGPT's do not have."""


@dataclass(frozen=True)
class Tuned:
    """One row: the model and method, PyTorch's peak, and our forecast."""

    name: str
    way: str
    batch: int
    tokens: int
    measured_bytes: float
    forecast_bytes: float
    standing_bytes: float
    peak: PeakMemory | None = None

    @property
    def ratio(self) -> float:
        """Forecast over measured."""
        return self.forecast_bytes / self.measured_bytes

    @property
    def is_possible(self) -> bool:
        """Whether what stands between steps (parameters, gradients, state) fits in what was measured."""
        return self.standing_bytes <= self.measured_bytes


def tuned(folder: Path) -> tuple[list[Tuned], dict[str, int]]:
    """Every row that can be forecast, and how many cannot, by reason."""
    table = pl.read_parquet(folder / "runs.parquet").filter(pl.col("source") == "litgpt")
    tuned_rows, refused = [], dict[str, int]()
    for row in table.iter_rows(named=True):
        try:
            tuned_rows.append(_tuned(row))
        except EpochcastError as error:
            refused[str(error)] = refused.get(str(error), 0) + 1
    return tuned_rows, refused


def _tuned(row: Mapping[str, Any]) -> Tuned:
    name, way, recipe, tokens = _question(row)
    model = _as_litgpt(name, tokens)
    if recipe.lora_targets:  # EVERY has the names of all families
        linear = linear_names(model.graph(1))
        recipe = replace(recipe, lora_targets=tuple(name for name in recipe.lora_targets if name in linear))
    trace = model.trace(recipe)
    peak = peak_memory(trace)
    standing = [t for t in ("parameters", "gradients", "optimizer_state") if t in peak.timeline.live_bytes]
    standing_bytes = sum(int(peak.timeline.live_bytes[role].max()) for role in standing)
    measured_bytes = row["peak_memory_bytes"]
    return Tuned(name, way, recipe.batch, tokens, measured_bytes, peak.allocated_bytes, standing_bytes, peak)


def _question(row: Mapping[str, Any]) -> tuple[str, str, Recipe, int]:
    """The model, the method of fine-tuning, the recipe and the tokens of the longest text."""
    task = str(row["task"])
    if row["peak_memory_bytes"] is None or not row["batch_per_gpu"]:
        raise BadInput("generation or pre-training without a batch")
    if int(row["gpus"]) > 1:
        raise BadInput("on several GPUs: what is sharded and recomputed there is not said")
    recipe = Recipe(int(row["batch_per_gpu"]), optimizer="adamw", precision="bf16", accumulate=2)
    config = re.fullmatch(r"finetune (\S+)/(full|lora|qlora)\.yaml", task)
    if config:
        folder, way = config[1], config[2]
        if way == "full":
            return MODELS[folder], way, recipe, CUT
        ranks = EVERYWHERE.get(folder)
        rank = 32 if ranks is None else ranks[way == "qlora"]
        targets = () if ranks is None else EVERY
        return (
            MODELS[folder],
            way,
            replace(recipe, lora=rank, lora_targets=targets, quantize="nf4-old" if way == "qlora" else "none"),
            CUT,
        )
    if "LoRA" not in task:
        raise BadInput("adapters that are not LoRA have no rule")
    name = MODELS[str(row["model"])]
    is_narrow = "quant=bnb" in str(row["precision"])
    way = "qlora" if is_narrow else "lora"
    return name, way, replace(recipe, lora=8, quantize="nf4-old" if is_narrow else "none"), LONGEST[name]


def _as_litgpt(name: str, tokens: int) -> BuiltModel:
    """A network of the zoo with an output layer of its own, and without what Phi has in Hugging Face's code alone."""
    entry = ZOO[name]
    options = {key: value for key, value in entry.options.items() if key not in _OTHERWISE}
    entry = replace(entry, options=options)
    return BuiltModel(name, partial(entry.build, name, input_shape=(tokens,)))


def section(tuned_rows: Sequence[Tuned], refused: Mapping[str, int]) -> Iterator[str]:
    """The lines of the page."""
    scored = [point for point in tuned_rows if point.is_possible]
    yield from (
        "## LitGPT's fine-tuning, one GPU, allocated",
        "",
        "Ranks, layers and the longest text are read from that project's files. Rules of LoRA and of 4-bit bases were",
        "written after a look at these rows, so this is no blind test.",
        "",
        "| way | rows | mean error | median | bias |",
        "|---|---|---|---|---|",
    )
    for way in WAYS:
        errors = np.array([point.ratio - 1 for point in scored if point.way == way])
        if not len(errors):
            continue
        figures = (abs(errors).mean(), np.median(abs(errors)), errors.mean())
        yield f"| {WAYS[way]} | {len(errors)} | {figures[0]:.1%} | {figures[1]:.1%} | {figures[2]:+.1%} |"
    yield ""
    impossible = [point for point in tuned_rows if not point.is_possible]
    if impossible:
        named = ", ".join(f"{p.name} ({p.measured_bytes / 1e9:.1f} GB)" for p in impossible)
        yield f"Not scored: {named}, which trained everything in less than their parameters, gradients and Adam's two"
        yield "moments take in the precision they name."
        yield ""
    yield "Refused: " + "; ".join(f"{count} rows, {reason}" for reason, count in sorted(refused.items())) + "."
    yield ""
