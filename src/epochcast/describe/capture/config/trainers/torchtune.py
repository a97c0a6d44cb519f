"""torchtune's recipes (YAML in which `_component_` names what is built; docs.pytorch.org/torchtune).

Everything is stored in `dtype`, adapters too. Names of its layers are those of Hugging Face's models, but for
`output_proj`. A loss in chunks (`CEWithChunkedOutputLoss`, `LinearCrossEntropyLoss`) has eight of them.
"""

import re
from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    is_set,
    length,
    not_modelled,
    number,
    parallel,
    passed_over,
    positive,
    says,
    set_optimizer,
    states,
    when,
    words,
)
from epochcast.describe.capture.config.setting import PACKING, Reader
from epochcast.describe.capture.config.trainers.shared_rows import SEQUENCES_WHOLE, set_dataset, set_mesh

CHUNKS = 8
"""`num_output_chunks` of torchtune's chunked losses."""
DEFAULT_RANK = 8
_ADAPTED = re.compile(r"^(lora|qlora|dora|qdora)_")
_LAYERS: Mapping[str, str] = {"output_proj": "o_proj"}
_FEED_FORWARD = ("gate_proj", "up_proj", "down_proj")
# What torchtune's model builders are on the Hub (torchtune/models/*/_model_builders.py).
MODELS: Mapping[str, str] = {
    "llama2_7b": "meta-llama/Llama-2-7b-hf",
    "llama2_13b": "meta-llama/Llama-2-13b-hf",
    "llama2_70b": "meta-llama/Llama-2-70b-hf",
    "code_llama2_7b": "codellama/CodeLlama-7b-hf",
    "code_llama2_13b": "codellama/CodeLlama-13b-hf",
    "code_llama2_70b": "codellama/CodeLlama-70b-hf",
    "llama3_8b": "meta-llama/Meta-Llama-3-8B",
    "llama3_70b": "meta-llama/Meta-Llama-3-70B",
    "llama3_1_8b": "meta-llama/Llama-3.1-8B",
    "llama3_1_70b": "meta-llama/Llama-3.1-70B",
    "llama3_1_405b": "meta-llama/Llama-3.1-405B",
    "llama3_2_1b": "meta-llama/Llama-3.2-1B",
    "llama3_2_3b": "meta-llama/Llama-3.2-3B",
    "llama3_3_70b": "meta-llama/Llama-3.1-70B",
    "mistral_7b": "mistralai/Mistral-7B-v0.1",
    "gemma_2b": "google/gemma-2b",
    "gemma_7b": "google/gemma-7b",
    "gemma2_2b": "google/gemma-2-2b",
    "gemma2_9b": "google/gemma-2-9b",
    "gemma2_27b": "google/gemma-2-27b",
    "phi3_mini": "microsoft/Phi-3-mini-4k-instruct",
    "phi4_14b": "microsoft/phi-4",
    "qwen2_0_5b": "Qwen/Qwen2-0.5B",
    "qwen2_1_5b": "Qwen/Qwen2-1.5B",
    "qwen2_7b": "Qwen/Qwen2-7B",
    **{f"qwen2_5_{key}_base": f"Qwen/Qwen2.5-{size}" for key, size in (("0_5b", "0.5B"), ("1_5b", "1.5B"))},
    **{
        f"qwen2_5_{size}b_{kind}": f"Qwen/Qwen2.5-{size}B"
        for size in (3, 7, 14, 32, 72)
        for kind in ("base", "instruct")
    },
    **{f"qwen2_5_{key}_instruct": f"Qwen/Qwen2.5-{size}" for key, size in (("0_5b", "0.5B"), ("1_5b", "1.5B"))},
    "qwen2_5_3b": "Qwen/Qwen2.5-3B",
    "qwen2_5_0_5b": "Qwen/Qwen2.5-0.5B",
    "llama3_2_vision_11b": "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "llama3_2_vision_90b": "meta-llama/Llama-3.2-90B-Vision-Instruct",
    **{f"qwen3_{key}": f"Qwen/Qwen3-{size}" for key, size in (("0_6b", "0.6B"), ("1_7b", "1.7B"), ("4b", "4B"))},
    **{f"qwen3_{size}b": f"Qwen/Qwen3-{size}B" for size in (8, 14, 32)},
}

_MESH = ("data_parallel_replicate_dim", "data_parallel_shard_dim", "tensor_parallel_dim", "context_parallel_dim")


def _finish(reader: Reader) -> None:
    builder = str(reader.take("model._component_") or "")
    last = builder.rpartition(".")[2]
    adapted = _ADAPTED.match(last)
    base = _ADAPTED.sub("", last)
    hub_id = MODELS.get(base) or MODELS.get(re.sub(r"_(base|instruct)$", "", base))
    reader.set(MODEL, hub_id or base, "model._component_")
    if adapted or states(reader, "lora"):
        _read_adapter(reader, adapted.group(1) if adapted else "lora")
    _read_parts(reader)
    recipe_is_distributed = is_set(reader, "fsdp_cpu_offload") or "tensor_parallel_dim" in reader.document
    if recipe_is_distributed and not states(reader, "strategy"):
        reader.set("strategy", "fsdp", "fsdp_cpu_offload")
    if is_set(reader, "fsdp_cpu_offload"):
        reader.set("offload", "parameters", "fsdp_cpu_offload")
    set_mesh(reader, _MESH)


def _read_adapter(reader: Reader, kind: str) -> None:
    key = "model.lora_attn_modules"
    layers = [_LAYERS.get(str(each), str(each)) for each in reader.take(key) or ("q_proj", "v_proj")]
    if is_set(reader, "model.apply_lora_to_mlp"):
        layers += _FEED_FORWARD
    if is_set(reader, "model.apply_lora_to_output"):
        layers.append("lm_head")
    reader.set("lora_targets", tuple(dict.fromkeys(layers)), key)
    for option, value in (("lora", DEFAULT_RANK), ("lora_dropout", 0.0)):
        if not states(reader, option):
            reader.set(option, value, "default", is_default=True)
    if kind.startswith("q") or is_set(reader, "model.quantize_base"):
        reader.set("quantize", "nf4-dq", "model._component_")
    if kind.endswith("dora") or is_set(reader, "model.use_dora"):
        reader.set("adapter", "dora", "model.use_dora")


def _read_parts(reader: Reader) -> None:
    """What other components are: optimizer, data, loss."""
    for key in ("optimizer._component_", "optimizer.optimizer._component_"):
        written = reader.take(key)
        if isinstance(written, str) and not states(reader, "optimizer"):
            set_optimizer(reader, written.rpartition(".")[2], key, is_fused=reader.take("optimizer.fused"))
    set_dataset(reader, str(reader.take("dataset.source") or reader.take("dataset._component_") or ""), "dataset")
    loss = str(reader.take("loss._component_") or "")
    chunks = reader.integer("loss.num_output_chunks")
    if chunks or "Chunked" in loss or loss.endswith("LinearCrossEntropyLoss"):
        reader.set("loss_chunks", chunks or CHUNKS, "loss._component_")


TORCHTUNE = Trainer(
    "torchtune",
    marks=(frozenset({"model._component_"}),),
    keys={
        "model.lora_rank": says("lora", positive),
        "model.lora_dropout": says("lora_dropout", number),
        "tokenizer.max_seq_len": says("input_shape", length),
        "dataset.packed": when(PACKING, True),
        "batch_size": says("batch", positive),
        "gradient_accumulation_steps": says("accumulate", positive),
        "epochs": says("epochs", positive),
        "max_steps_per_epoch": not_modelled("give `samples`"),
        "dtype": words("precision", {"bf16": "bf16", "fp32": "fp32", "fp16": "fp16"}),
        "enable_activation_checkpointing": when("checkpointing", True),
        "enable_activation_offloading": when("offload_activations", True),
        "optimizer_in_bwd": when("update_in_backward", True),
        "compile": when("compile", "inductor"),
        "data_parallel_shard_dim": passed_over,
        "data_parallel_replicate_dim": parallel("copies between nodes; taken as sharded over all GPUs"),
        "tensor_parallel_dim": parallel("tensor parallelism: give `strategy`"),
        "context_parallel_dim": parallel(SEQUENCES_WHOLE),
        "ac_mode": not_modelled("every block is forecast as recomputed"),
        "ac_option": passed_over,
        "enable_fp8_training": not_modelled("products are forecast in half"),
    },
    harmless=(
        *("tokenizer.*", "checkpointer.*", "resume_*", "seed", "shuffle", "lr_scheduler*", "optimizer.*", "model.*"),
        *("metric_logger*", "output_dir", "log_*", "device", "profiler*", "dataset.*", "loss.*", "clip_grad_norm"),
        *("save_*", "custom_sharded*", "prompt", "instruct_template", "cudnn_*", "num_warmup*", "run_val*", "cfg*"),
        *(
            "base_model_path",
            "*_dir",
            "kv_*",
            "fsdp_*",
            "epochs_*",
            "max_new_tokens",
            "keep_last*",
            "tensor_parallel_*",
        ),
    ),
    defaults={"batch": 1, "epochs": 1, "optimizer": "adamw", "precision": "bf16"},
    finish=_finish,
    programs=("tune",),
)
