"""Rows of `decode_runs` as questions that a forecast of generation can answer, with what was measured.

Left out, by their reason: other networks than ours, multi-token prediction, images, pipelines, pipelined
`device_map` of Transformers, formats that engines emulate, engines before CUDA graphs, and rows whose total and
per-GPU figures were read from tables that changed their unit.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochcast.measure.tables.table_files import read_table

TRTLLM, VLLM, SGLANG, HF = "TensorRT-LLM", "vLLM", "SGLang", "HF generate"
ENGINES: Mapping[str, str] = {
    "TensorRT-LLM": TRTLLM,
    "vLLM": VLLM,
    "vLLM-ROCm": VLLM,
    "SGLang": SGLANG,
    "transformers": HF,
}
# (weights, cache) by how the sources write a precision.
PRECISIONS: Mapping[str, tuple[str, str]] = {
    "BF16": ("bf16", "bf16"),
    "FP16": ("fp16", "fp16"),
    "FP8": ("fp8", "fp8"),
    "FP4": ("fp4", "fp8"),
    "GPTQ-Int4": ("int4", "fp16"),
    "GPTQ-INT4": ("int4", "fp16"),
    "AWQ": ("int4", "fp16"),
    "AWQ-INT4": ("int4", "fp16"),
    "GPTQ-Int8": ("int8", "fp16"),
}
_FOUR_BITS = ("GPTQ-Int4", "GPTQ-INT4", "AWQ", "AWQ-INT4")
_FALCON = "decoder:layers=80,hidden=14848,heads=232,kv_heads=8,ffn=59392,vocab=65024,gated=0"
_GPTJ = "decoder:layers=28,hidden=4096,heads=16,ffn=16384,vocab=50400,gated=0"
MODELS: Mapping[str, str] = {
    "mixtral 8x7b": "mixtral_8x7b",
    "mixtral 8x22b": "mistralai/Mixtral-8x22B-v0.1",
    "mistral 7b": "mistralai/Mistral-7B-v0.3",
    "falcon 180b": _FALCON,
    "gptj 6b": _GPTJ,
    "gpt-j 6b": _GPTJ,
    "llama 7b": "llama2_7b",
    "llama 70b": "llama2_70b",
    "llama v2 7b": "llama2_7b",
    "llama v2 70b": "llama2_70b",
    **{f"llama {v}3{minor} 8b": "llama3_8b" for v in ("", "v") for minor in ("", ".1")},
    **{f"llama {v}3{minor} 70b": "llama3_70b" for v in ("", "v") for minor in ("", ".1", ".3")},
    **{f"llama {v}3.1 405b": "llama3_1_405b" for v in ("", "v")},
    "qwen3-30b-a3b": "qwen3_30b_a3b",
    "qwen3 30b a3b": "qwen3_30b_a3b",
    "qwen3-235b-a22b": "qwen3_235b_a22b",
    "qwen3 235b a22b": "qwen3_235b_a22b",
    "qwen/qwen3-235b-a22b-instruct-2507": "qwen3_235b_a22b",
    "gpt-oss 20b": "gpt_oss_20b",
    "gpt-oss 120b": "gpt_oss_120b",
    **{f"qwen3-{size}b": f"Qwen/Qwen3-{size}B" for size in ("0.6", "1.7", "4", "8", "14", "32")},
    **{f"qwen2.5-{size}b-instruct": f"Qwen/Qwen2.5-{size}B" for size in ("0.5", "1.5", "3", "7", "14", "32", "72")},
    "qwen2-7b-instruct": "Qwen/Qwen2.5-7B",
    "qwen2-72b-instruct": "Qwen/Qwen2.5-72B",
    "qwen2-0.5b-instruct": "Qwen/Qwen2.5-0.5B",
}
# vLLM ran steps from Python before 0.6 (September 2024); its steps of small models took three times as long.
OLDEST: Mapping[str, tuple[int, int]] = {VLLM: (0, 6), TRTLLM: (0, 7)}


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """One measured throughput. `sequences` is None where the engine ran as many as its memory held."""

    source: str
    engine: str
    model: str
    reference: str
    device: str
    gpus: int
    weights: str
    cache: str
    sequences: int | None
    prompt: int
    response: int
    tokens_per_second: float
    memory_bytes: float | None
    is_stream: bool = False
    """Whether requests kept coming, as in a serving benchmark; else all began at once."""


def decode_rows(folder: Path, left_out: Counter[str] | None = None) -> Iterator[DecodeRow]:
    """The rows that can be asked; reasons of the others are counted in `left_out`."""
    for row in read_table(folder / "decode_runs.parquet").to_dicts():
        reason = _refused(row)
        if reason:
            if left_out is not None:
                left_out[reason] += 1
            continue
        weights, cache = PRECISIONS[row["precision"]]
        engine = ENGINES[row["engine"]]
        is_full = row["batch"] is None and row["max_concurrency"] is None
        yield DecodeRow(
            row["source"],
            engine,
            row["model"],
            MODELS[row["model"].casefold()],
            row["device"],
            int(row["gpus"]),
            weights,
            # SGLang and Transformers keep the cache in 16 bits unless told otherwise.
            cache if engine in (TRTLLM, VLLM) else "bf16",
            None if is_full else round(row["batch"] or row["max_concurrency"]),
            round(row["input_len"]),
            round(row["output_len"]),
            row["output_tps_total"],
            None if row["memory_gb"] is None else row["memory_gb"] * 2**30,
            is_full or "serving" in row["batch_kind"],
        )


def _refused(row: Mapping[str, Any]) -> str:
    """Why a row is no question for us; empty where it is."""
    engine = ENGINES[row["engine"]]
    numbers = re.match(r"(\d+)\.(\d+)", row["engine_version"] or "")
    version = (int(numbers[1]), int(numbers[2])) if numbers else (99, 0)  # vLLM's builds for ROCm are dated
    checks = (
        (row["speculative"] or row["multimodal"], "speculative decoding or images"),
        (row["model"].casefold() not in MODELS, "a network that is not modelled"),
        (row["precision"] not in PRECISIONS, "no precision said, or a mixed one"),
        (row["device"] is None or row["gpus"] is None, "no device said"),
        (row["pp"] > 1, "a pipeline"),
        (engine == HF and (row["gpus"] or 1) > 1, "layers in turn on several GPUs"),
        (engine == HF and row["precision"] != "BF16", "Transformers with emulated formats"),
        (version < OLDEST.get(engine, (0, 0)), "an engine before its present scheduler"),
        (row["confidence"] == "low", "low confidence"),
        ("typos" in (row["notes"] or ""), "a table with typos"),
        (
            row["precision"] in _FOUR_BITS and row["active_params_b"] != row["params_b"],
            "4-bit experts, in slow kernels",
        ),
        (engine == HF and row["active_params_b"] != row["params_b"], "Transformers with experts one by one"),
    )
    return next((reason for is_refused, reason in checks if is_refused), "")
