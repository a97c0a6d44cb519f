"""Megatron-LM's arguments (megatron/training/arguments.py), from a command line, a shell script or YAML; those of
Megatron-SWIFT and Megatron-DeepSpeed are named alike.

The model is a decoder of the sizes they give. One update takes global_batch_size samples: data parallel ranks ×
micro_batch_size × passes. Weights are in half beside main parameters and gradients in float32.
"""

import re
from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    is_set,
    length,
    name,
    not_modelled,
    optimizer,
    passed_over,
    positive,
    says,
    stated,
    states,
    when,
    words,
)
from epochcast.describe.capture.config.setting import GLOBAL_BATCH, STEPS, Reader
from epochcast.describe.capture.config.trainers.shared_rows import NOT_TIMED

VOCABULARIES: Mapping[str, int] = {
    "gpt2bpetokenizer": 50257,
    "llama2tokenizer": 32000,
    "llamatokenizer": 32000,
    "bertwordpiecelowercase": 30522,
    "bertwordpiececase": 28996,
}
"""Of the tokenizers whose vocabulary is always the same."""
DIVISIBLE = 128
"""`make_vocab_size_divisible_by`: times the tensor parallel ranks, what the vocabulary is padded to."""
ASSUMED_VOCABULARY = 50257
_SIZES: Mapping[str, str] = {
    "layers": "num_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "ffn": "ffn_hidden_size",
}
DEGREES: Mapping[str, str] = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
}


def read_decoder(reader: Reader, prefix: str = "") -> None:
    """The decoder that the sizes describe."""

    def key(plain: str) -> str:
        return f"{prefix}{plain}"

    sizes = {name: positive(reader, key(written)) for name, written in _SIZES.items()}
    if any(sizes[name] is None for name in ("layers", "hidden", "heads")):
        return
    groups = positive(reader, key("num_query_groups"))
    if groups and groups != sizes["heads"] and (prefix or is_set(reader, key("group_query_attention"))):
        sizes["kv_heads"] = groups
    sizes["vocab"] = _vocabulary(reader, prefix)
    back = _tokens_back(reader, key("window_size"))
    if back is not None:  # and the token itself
        sizes |= {"window": back + 1, "global_every": positive(reader, key("window_attn_skip_freq"))}
    experts = positive(reader, key("num_experts")) or positive(reader, key("num_moe_experts"))
    if experts and experts > 1:
        sizes |= {"experts": experts, "chosen": positive(reader, key("moe_router_topk")) or 2}
        sizes["ffn"] = positive(reader, key("moe_ffn_hidden_size")) or sizes["ffn"]
    is_gated = is_set(reader, key("swiglu")) or "glu" in reader.text(key("activation"))
    is_squared = is_set(reader, key("squared_relu")) or reader.text(key("activation")) == "squared-relu"
    style = "llama" if is_gated else "nemotron" if is_squared else "gpt"
    is_untied = is_set(reader, key("untie_embeddings_and_output_weights"))
    is_untied |= reader.document.get(key("share_embeddings_and_output_weights"), True) is False
    text = ",".join(f"{name}={value}" for name, value in sizes.items() if value is not None)
    style_text = f",style={style}" if style != "llama" else ""
    reader.set(MODEL, f"decoder:{text}{style_text},tied={int(not is_untied)}", key("num_layers"))
    channels = positive(reader, key("kv_channels"))
    if channels and channels * (sizes["heads"] or 1) != sizes["hidden"]:
        reader.leave(key("kv_channels"), f"heads are forecast {(sizes['hidden'] or 0) // (sizes['heads'] or 1)} wide")
    for unread in ("normalization", "position_embedding_type", "disable_bias_linear", "bias"):
        reader.read_keys.add(key(unread))


def _tokens_back(reader: Reader, key: str) -> int | None:
    """How many tokens before its own a query sees: the first of two numbers; none where all are seen."""
    first = re.match(r"\D*?(-?\d+)", str(reader.take(key)))
    return int(first[1]) if first and int(first[1]) >= 0 else None


def _vocabulary(reader: Reader, prefix: str) -> int:
    size = positive(reader, f"{prefix}padded_vocab_size")
    if size:
        return size
    tokenizer = reader.text(f"{prefix}tokenizer_type") or reader.text(f"{prefix}tokenizer.type")
    size = positive(reader, f"{prefix}vocab_size") or VOCABULARIES.get(tokenizer)
    if size is None:
        reader.notes.append(f"the vocabulary is not in it: {ASSUMED_VOCABULARY:,} tokens are assumed")
        size = ASSUMED_VOCABULARY
    step = DIVISIBLE * (positive(reader, f"{prefix}{DEGREES['tp']}") or 1)
    return -(-size // step) * step


def read_layout(reader: Reader, prefix: str = "", *, is_sharded: str = "use_distributed_optimizer") -> None:
    """The product of parallel degrees; where no launcher says how many GPUs, as few as it needs."""
    degrees = {short: positive(reader, f"{prefix}{written}") or 1 for short, written in DEGREES.items()}
    parts = [f"{short}{degree}" for short, degree in degrees.items() if degree > 1]
    stages = positive(reader, f"{prefix}num_virtual_stages_per_pipeline_rank")
    layers = positive(reader, f"{prefix}num_layers_per_virtual_pipeline_stage")
    if layers and degrees["pp"] > 1:
        stages = (positive(reader, f"{prefix}num_layers") or layers) // degrees["pp"] // layers
    if stages and stages > 1:
        parts.append(f"vp{stages}")
    split = degrees["tp"] * degrees["pp"] * degrees["cp"]
    gpus = stated(reader, "gpus")
    if gpus is None and split > 1:
        reader.set("gpus", split, f"{prefix}{DEGREES['tp']}", is_default=True)
        reader.notes.append(f"how many GPUs is not in it: {split} are taken, as few as it needs; give `gpus`")
    zero = is_set(reader, f"{prefix}{is_sharded}")
    if split == 1 and degrees["ep"] == 1:
        if (gpus or 1) > 1:
            reader.set("strategy", "zero1" if zero else "ddp", is_sharded)
        return
    if gpus and gpus % split == 0:
        parts.insert(0, f"dp{gpus // split}")
    if zero:
        parts.append("zero1")
    reader.set("strategy", ",".join(parts), f"{prefix}{DEGREES['tp']}")


def read_recomputing(reader: Reader, granularity: str, method: str) -> None:
    """Full recomputes each layer, selective the attention; a part of the layers is taken as all."""
    word = reader.text(granularity)
    reader.read_keys |= {method, f"{granularity.rpartition('_')[0]}_num_layers"}
    if word == "full":
        reader.set("checkpointing", True, granularity)
        if reader.text(method) == "block":
            reader.leave(method, "all layers are forecast as recomputed")
    elif word == "selective" or is_set(reader, "recompute_activations"):
        reader.set("checkpointing", "selective", granularity)


def _finish(reader: Reader) -> None:
    if not states(reader, MODEL):
        read_decoder(reader)
    read_layout(reader)
    read_recomputing(reader, "recompute_granularity", "recompute_method")
    reader.read_keys |= {"recompute_num_layers", "recompute_activations", "transformer_impl"}
    if reader.text("fp8_format") or reader.text("fp8"):
        is_block = reader.text("fp8_recipe") == "mxfp8"
        reader.set("precision", "mxfp8" if is_block else "fp8", "fp8_format")
        if reader.text("fp8_recipe") == "blockwise":
            reader.leave("fp8_recipe", "blockwise: forecast as fp8 with a scale per tensor")
    elif is_set(reader, "fp4_format"):
        reader.set("precision", "nvfp4", "fp4_format")
    else:
        half = next((each for each in ("bf16", "fp16") if is_set(reader, each)), "")
        reader.set("precision", f"{half}_master" if half else "fp32", half or "default", is_default=not half)
    reader.read_keys |= {"bf16", "fp16", "fp8_format", "fp8", "fp8_recipe", "fp4_format"}


MEGATRON = Trainer(
    "Megatron-LM",
    marks=(
        frozenset({"num_layers", "hidden_size", "num_attention_heads"}),
        frozenset({"micro_batch_size", "global_batch_size", "tensor_model_parallel_size"}),
    ),
    keys={
        "model": says(MODEL, name),
        "micro_batch_size": says("batch", positive),
        "global_batch_size": says(GLOBAL_BATCH, positive),
        "seq_length": says("input_shape", length),
        "max_length": says("input_shape", length),
        "encoder_seq_length": says("input_shape", length),
        "max_position_embeddings": says("input_shape", length),
        "train_iters": says(STEPS, positive),
        "train_samples": says("samples", positive),
        "max_epochs": says("epochs", positive),
        "optimizer": optimizer,
        "sequence_parallel": when("sequence_parallel", True),
        "use_flash_attn": when("attention", "flash"),
        "attention_backend": words(
            "attention",
            {"flash": "flash", "fused": "flash", "auto": None, "unfused": "fused_softmax", "local": "fused_softmax"},
        ),
        "num_workers": says("workers"),
        "dataloader_num_workers": says("workers"),
        "rampup_batch_size": not_modelled("the full batch is forecast from the first step"),
        "grad_reduce_in_bf16": not_modelled("gradients are forecast as summed in float32"),
        "use_torch_fsdp2": not_modelled("give `strategy` fsdp"),
        "use_megatron_fsdp": not_modelled("give `strategy` fsdp"),
        "optimizer_cpu_offload": when("offload", "optimizer"),
        "use_precision_aware_optimizer": not_modelled("the state is forecast in float32"),
        "moe_grouped_gemm": passed_over,
        "moe_shared_expert_intermediate_size": not_modelled("without the shared expert"),
        "multi_latent_attention": not_modelled("attention is forecast with heads of one width"),
        "mtp_num_layers": not_modelled("without the layers that predict more tokens"),
        "cpu_offloading": not_modelled("activations are forecast on the GPU"),
        "enable_cuda_graph": not_modelled("launches are forecast one by one"),
        "tp_comm_overlap": not_modelled("exchanges of tensor parallelism are forecast as waited for"),
        "freeze_vit": passed_over,
        "lora_rank": lambda reader, key: reader.leave(key, "forecast as a full fine-tune; give `lora`"),
        "eval_interval": not_modelled(NOT_TIMED),
        "untie_embeddings_and_output_weights": passed_over,
        "group_query_attention": passed_over,
        "swiglu": passed_over,
    },
    harmless=(
        *(
            "lr*",
            "min_lr",
            "weight_decay*",
            "clip_grad",
            "adam_*",
            "init_method*",
            "attention_dropout",
            "hidden_dropout",
        ),
        *("use_mcore_models", "save*", "load*", "data_*", "vocab_file", "merge_file", "split", "log_*", "tensorboard*"),
        *(
            "eval_iters",
            "rotary_*",
            "use_rotary*",
            "seed",
            "distributed_*",
            "no_*",
            "overlap_*",
            "manual_gc*",
            "exit_*",
        ),
        *("tokenizer_*", "make_vocab*", "mock_data", "profile*", "wandb*", "ckpt_*", "use_checkpoint*", "calculate_*"),
        *("cross_entropy*", "apply_layernorm*", "norm_epsilon", "layernorm_*", "fp8_*", "decoupled*", "start_weight*"),
        *(
            "end_weight*",
            "untie_*",
            "use_dist*",
            "empty_unused*",
            "accumulate_allreduce*",
            "initial_loss*",
            "hysteresis",
        ),
        *("tiktoken*", "timing_*", "moe_*", "kv_channels", "attention_softmax*", "apply_query*", "bias_*", "finetune"),
        *(
            "master_*",
            "node_rank",
            "local_rank",
            "timeout*",
            "train_data_path",
            "valid_data_path",
            "test_data_path",
            "dataloader_type",
        ),
    ),
    defaults={"batch": 1, "optimizer": "adamw", "host_class": "large_trainer"},
    finish=_finish,
    programs=("pretrain_gpt.py", "pretrain_llama.py", "pretrain_mamba.py", "megatron"),
)
