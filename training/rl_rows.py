"""Rows of `rl_runs` as post-training jobs, with what was measured of their step and its parts.

Left out, by their reason: rows without a device or model that we know, without lengths, of agents whose environments
set the time, of trainers alone, and weight syncs. Where a row gives tokens per second and GPU, the mean length follows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.measure.tables.table_files import read_table
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement, place

_OPT = "decoder:style=gpt,vocab=50272,tied=1,"
MODELS: Mapping[str, str] = {
    **{f"Qwen2.5-{size}B-Instruct": f"Qwen/Qwen2.5-{size}B" for size in ("0.5", "1.5", "3", "7", "14", "32", "72")},
    "Qwen2.5-7B": "Qwen/Qwen2.5-7B",
    "Qwen2-7B-Instruct": "Qwen/Qwen2.5-7B",
    "deepseek-llm-7b-chat": "deepseek-ai/deepseek-llm-7b-base",
    "gemma-2-2b-it": "gemma2_2b",
    "Qwen3-8B": "Qwen/Qwen3-8B",
    "Qwen3-30B-A3B": "qwen3_30b_a3b",
    "Qwen3-235B-A22B": "qwen3_235b_a22b",
    "Llama-3.1-8B": "llama3_1_8b",
    "Llama-2-7B": "llama2_7b",
    "Llama-2-13B": "llama2_13b",
    "Llama-2-70B": "llama2_70b",
    "CodeLlama-34B": "codellama/CodeLlama-34b-hf",
    "OPT-1.3B": "opt_1_3b",
    "OPT-6.7B": f"{_OPT}layers=32,hidden=4096,heads=32",
    "OPT-13B": f"{_OPT}layers=40,hidden=5120,heads=40",
    "OPT-30B": f"{_OPT}layers=48,hidden=7168,heads=56",
    "OPT-66B": f"{_OPT}layers=64,hidden=9216,heads=72",
    "OPT-175B": f"{_OPT}layers=96,hidden=12288,heads=96",
    "OPT-350M": f"{_OPT}layers=24,hidden=1024,heads=16",
}
# The tables name a family of boards; these are the ones that were rented then.
DEVICES: Mapping[str, str] = {
    "H100/H800 class": "H100-SXM5-80GB",
    "H100/H800 class (implied)": "H100-SXM5-80GB",
    "A100/A800-80GB": "A100-SXM4-80GB",
    "V100-SXM-32GB": "V100-SXM2-32GB",
    "L20-48GB": "L20",
    "RTX-A6000-48GB": "RTX A6000",
}
ALGORITHMS: Mapping[str, str] = {"PPO": "ppo", "GRPO": "grpo", "GPG": "grpo", "DAPO": "dapo", "GRPO/DAPO": "dapo"}
PARTS: Mapping[str, str] = {
    "generation": "s_generation",
    "reward": "s_reward",
    "old_logprobs": "s_logprob_old",
    "reference": "s_logprob_ref",
    "values": "s_values",
    "update_critic": "s_update_critic",
    "update": "s_update",
    "weight_sync": "s_weight_sync",
}
PER_BOX = 8


@dataclass(frozen=True)
class RlRow:
    """One measured step."""

    name: str
    source: str
    framework: str
    job: Job
    placement: Placement
    step_seconds: float
    parts: Mapping[str, float]
    response_tokens: float


def rl_rows(folder: Path, left_out: Counter[str] | None = None) -> Iterator[RlRow]:
    """The rows that can be asked; reasons of the others are counted in `left_out`."""
    for row in read_table(folder / "rl_runs.parquet").to_dicts():
        try:
            reason, asked = _refused(row), None
            if not reason:
                asked = _asked(row)
                reason = "" if asked else "no lengths"
        except EpochcastError:
            reason, asked = "a layout or device that we do not take", None
        if asked is not None:
            yield asked
        elif left_out is not None:
            left_out[reason] += 1


def _refused(row: Mapping[str, Any]) -> str:
    checks = (
        (row["s_total"] is None, "no seconds of a whole step"),
        (row["algorithm"] not in ALGORITHMS, "agents, tools, DPO or other algorithms"),
        (row["policy_model"] not in MODELS, "a network that is not modelled"),
        (row["confidence"] == "low", "low confidence"),
        (row["gpus"] is None, "no GPUs said"),
        (row["responses_per_step"] is None and row["prompts_per_step"] is None, "no batch said"),
    )
    return next((reason for is_refused, reason in checks if is_refused), "")


def _asked(row: Mapping[str, Any]) -> RlRow | None:
    device = find_device(DEVICES.get(row["device"], row["device"]))
    algorithm = ALGORITHMS[row["algorithm"]]
    gpus, each = int(row["gpus"]), int(row["samples_per_prompt"] or 1)
    count = int(row["responses_per_step"] or row["prompts_per_step"] * each)
    prompt, mean = _lengths(row, count, gpus)
    if mean is None:
        return None
    longest = row["max_response_len"] or (row["max_seq_len"] and row["max_seq_len"] - prompt) or 4 * mean
    longest = max(int(longest), round(mean))
    response = str(round(mean)) if longest <= 1.05 * mean else f"lognormal:mean={mean:.0f},max={longest}"
    lora = row["finetuning"] or ""
    is_split, is_chat = (row["placement"] or "").startswith("split"), row["framework"].startswith("DeepSpeed-Chat")
    job = Job(
        MODELS[row["policy_model"]],
        algorithm=algorithm,
        prompts_per_step=max(1, count // each),
        generations=each,
        prompt=max(1, round(prompt)),
        response=response,
        lora=int(lora.rpartition("=")[2]) if lora.startswith("LoRA") else 0,
        engine="sglang" if row["gen_engine"] == "SGLang" else "hf" if is_chat else "vllm",
        reference_model="none" if row["s_logprob_ref"] is None and row["s_generation"] is not None else None,
        old_logprobs=row["s_logprob_old"] is not None or row["s_generation"] is None,
        critic=MODELS["OPT-350M"] if is_chat and algorithm == "ppo" else None,
        generation_gpus=int(row["gen_gpus"] or gpus // 2) if is_split else None,
        staleness=1 if is_split and "async" in row["placement"] else 0,
        engine_tp=_engine_tp(row, gpus),
        engine_eager=row["framework"] == "verl",  # rollout.enforce_eager was verl's default until 2025-09
    )
    nodes = max(1, gpus // PER_BOX)
    placement = place(device, gpus=gpus, nodes=nodes if gpus > PER_BOX else 1, strategy="fsdp" if gpus > 1 else None)
    parts = {name: row[column] for name, column in PARTS.items() if row[column] is not None}
    return RlRow(row["id"], row["source"], row["framework"], job, placement, row["s_total"], parts, mean)


def _engine_tp(row: Mapping[str, Any], gpus: int) -> int | None:
    degree = int(row["gen_tp"] or 0)
    return degree if degree and gpus % degree == 0 and degree <= PER_BOX else None


def _lengths(row: Mapping[str, Any], count: int, gpus: int) -> tuple[float, float | None]:
    """(prompt, mean response); the latter from tokens per second where nothing says it."""
    prompt = row["mean_prompt_len"] or min(256.0, row["max_prompt_len"] or 256.0)
    if row["mean_response_len"] is not None:
        return prompt, row["mean_response_len"]
    if row["mean_seq_len"] is not None:
        return prompt, max(1.0, row["mean_seq_len"] - prompt)
    if row["tokens_per_s_per_gpu"] is not None:
        return prompt, max(1.0, row["tokens_per_s_per_gpu"] * gpus * row["s_total"] / count - prompt)
    return prompt, None
