"""Rows of `llm_runs` and `llm_failed` as jobs and places: the model from its columns, the layout from dp, tp, pp and
the rest, what a table does not say from what its framework does.

    vtrain_single         Megatron-DeepSpeed on one DGX A100: fp16, every block recomputed, attention as it was in 2022
    ultrascale_playbook   nanotron on p5 boxes: bf16, float32 masters and sums, sequence parallelism, flash attention
    dgxc_benchmarking     NeMo, MaxText and Pax on H100 and GB200
    bigscience_tr11       Megatron-DeepSpeed on Jean Zay, while BLOOM was planned

Megatron and its children give every stage as many layers; nanotron balances them by their flops.
"""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.capture.zoo.sized import decoder_reference
from epochcast.errors import BadInput
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement, place

Row = Mapping[str, Any]

BOXES = {
    "8xA100 node": ("A100-SXM4-80GB", "DGX A100", None),
    "Hugging Face science cluster, 8xH100 nodes": ("H100-SXM5-80GB", "p5.48xlarge", None),
    "NVIDIA DGX Cloud reference H100": ("H100-SXM5-80GB", "DGX H100", None),
    "NVIDIA DGX Cloud reference GB200": ("GB200", "GB200 NVL72", None),
    "Jean Zay, 8xA100-80GB nodes": ("A100-SXM4-80GB", "DGX A100", "infiniband_edr_x4"),
}
GPUS_PER_BOX = 8
PRECISIONS = {"amp_fp16": "fp16_master", "bf16": "bf16_master", "fp8": "fp8"}


def job_of(row: Row) -> Job:
    """What a row trains, and how."""
    if row["task"] == "finetuning lora":
        raise BadInput("fine-tuning by LoRA: rank and targets are not in the table")
    columns = {**row, "style": "bloom"} if row["source"] == "bigscience_tr11" else row
    micro_batch = row["micro_batch"] or row["batch_per_gpu"]
    if not micro_batch:
        raise BadInput("no micro-batch")
    return Job(
        decoder_reference(columns),
        batch=int(micro_batch),
        input_shape=(int(row["sequence_length"]),),
        precision=PRECISIONS[row["precision"]],
        optimizer="adamw" if "adamw" in row["optimizer"] else "adam",
        update_style="fused",
        accumulate=int(row["grad_accum"] or 1),
        checkpointing="full" in row["recompute"],
        attention="eager" if row["source"] in ("vtrain_single", "bigscience_tr11") else "flash",
        sequence_parallel=row["source"] in ("ultrascale_playbook", "dgxc_benchmarking") and (row["tp"] or 1) > 1,
    )


def place_of(row: Row) -> Placement:
    """Where it runs."""
    device, topology, link = BOXES[row["system"]]
    gpus = int(row["gpus"])
    nodes = 1 if device == "GB200" else max(1, gpus // GPUS_PER_BOX)  # a topology fills as many racks as it needs
    return place(device, gpus=gpus, nodes=nodes, strategy=strategy_of(row), topology=topology, link=link)


def strategy_of(row: Row) -> str:
    """dp8,tp4,pp2,zero1. NeMo interleaves: where the table has no chunks, every layer of a stage is one."""
    if row["zero"] == 3:
        return "zero3"
    degrees = {name: int(row[name] or 1) for name in ("dp", "tp", "pp", "cp", "vp", "ep")}
    if row["framework"] == "nemo/megatron" and degrees["pp"] > 1 and row["vp"] is None:
        each, rest = divmod(int(row["layers"]), degrees["pp"])
        degrees["vp"] = 1 if rest or int(row["grad_accum"] or 1) % degrees["pp"] else each
    parts = [f"{name}{degree}" for name, degree in degrees.items() if degree > 1 or name == "dp"]
    if row["zero"] == 1:
        parts.append("zero1")
    if degrees["pp"] > 1 and row["framework"] != "nanotron":
        parts.append("even")
    return ",".join(parts)
