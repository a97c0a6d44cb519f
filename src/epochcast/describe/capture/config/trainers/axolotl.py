"""axolotl's YAML (docs.axolotl.ai, config reference; axolotl/utils/schemas): one table of keys for model, data, adapter
and training.

It loads the weights in the half format that it trains in, also where all of them are trained, and brings norms and
embeddings of a quantised base back to it (`weights`). Only DeepSpeed adds a copy in float32.
"""

from epochcast.describe.capture.config.adapter_config import RANK as PEFT_RANK
from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    epochs,
    is_set,
    length,
    name,
    names,
    not_modelled,
    number,
    optimizer,
    parallel,
    passed_over,
    positive,
    says,
    stated,
    states,
    tables,
    uses_deepspeed,
    when,
    words,
)
from epochcast.describe.capture.config.preference_settings import DPO, GRPO, set_preferences
from epochcast.describe.capture.config.setting import FILLING, GLOBAL_BATCH, PACKING, STEPS, Reader
from epochcast.describe.capture.config.trainers.shared_rows import (
    AS_THE_MODEL,
    DORA,
    FROZEN,
    LIGER,
    SEQUENCES_WHOLE,
    UNSLOTH,
    read_fsdp,
    set_dataset,
    set_halves,
    set_mesh,
)
from epochcast.describe.capture.config.trl_config import ATTENTIONS
from epochcast.describe.graph.adapters import ALL_LINEAR

DEFAULT_LENGTH = 512
"""`sequence_len` where the file says nothing."""
_ADAPTERS = ("lora", "qlora")


def _finish(reader: Reader) -> None:
    _read_adapter(reader)
    _read_precision(reader)
    read_fsdp(reader)
    set_mesh(reader, ("dp_replicate_size", "dp_shard_size", "tensor_parallel_size", "context_parallel_size"))
    key = "gradient_checkpointing"
    if is_set(reader, key):
        reader.set("checkpointing", True, key)
        if reader.text(key) in _OFFLOADED:
            reader.leave(key, f"{reader.text(key)}: checkpoints are forecast on the GPU")
    for table in tables(reader, "datasets"):
        set_dataset(reader, str(table.get("path", "")), "datasets")
    reader.read_keys.add("rl")
    if reader.text("rl") in (DPO, GRPO):
        _read_preferences(reader, reader.text("rl"))
    elif is_set(reader, "rl"):
        reader.leave("rl", f"{reader.text('rl')}: forecast as one pass over one text per sample")


def _read_preferences(reader: Reader, algorithm: str) -> None:
    """The table `trl` has what TRL's configs have, and `sequence_len` is the longest text."""
    if not states(reader, "input_shape"):
        reader.set("input_shape", (DEFAULT_LENGTH,), "default", is_default=True)
    table = {key.removeprefix("trl."): value for key, value in reader.document.items() if key.startswith("trl.")}
    reader.read_keys |= {f"trl.{key}" for key in table}
    if reader.text("trl.vllm.gpu_memory_utilization"):
        table["vllm_gpu_memory_utilization"] = reader.document["trl.vllm.gpu_memory_utilization"]
    reader.document = {**reader.document, **table}
    set_preferences(reader, algorithm)


def _read_precision(reader: Reader) -> None:
    """bf16 is `auto` where nothing is said: on where the GPU has it. `bfloat16` is for training without autocast."""
    if is_set(reader, "fp8"):
        reader.leave("fp8", "products are forecast in bf16")
    keys = {"bfloat16": "bf16", "float16": "fp16", "fp16": "fp16", "bf16": "bf16", "tf32": "", "float32": ""}
    key = next((key for key in keys if is_set(reader, key)), "")
    is_automatic = reader.document.get("bf16", "auto") == "auto"
    if key in ("", "tf32") and is_automatic:
        set_halves(reader, "bf16", "bf16", is_loaded=not uses_deepspeed(reader))
    elif keys.get(key):
        is_pure = key in ("bfloat16", "float16")
        set_halves(reader, keys[key], key, is_loaded=not uses_deepspeed(reader), is_pure=is_pure)
    elif key == "tf32":
        reader.set("precision", "tf32", key)
    else:
        reader.set("precision", "fp32", "bf16")


def _read_adapter(reader: Reader) -> None:
    adapter = reader.text("adapter")
    if adapter not in _ADAPTERS:
        reader.entries[:] = [each for each in reader.entries if each.option not in _OF_LORA]
        if adapter:
            reader.leave("adapter", f"{adapter}: {AS_THE_MODEL}")
        return
    if is_set(reader, "lora_target_linear"):
        targets = stated(reader, "lora_targets") or ()
        reader.entries[:] = [each for each in reader.entries if each.option != "lora_targets"]
        reader.set("lora_targets", tuple(dict.fromkeys((*targets, ALL_LINEAR))), "lora_target_linear")
    for option, value in (("lora", PEFT_RANK), ("lora_dropout", 0.0)):
        if not states(reader, option):
            reader.set(option, value, "default", is_default=True)
    if is_set(reader, "load_in_4bit"):
        is_double = reader.document.get("bnb_config_kwargs.bnb_4bit_use_double_quant", True)
        reader.set("quantize", "nf4-dq" if is_double else "nf4", "load_in_4bit")
    elif is_set(reader, "load_in_8bit"):
        reader.set("quantize", "int8", "load_in_8bit")
    elif is_set(reader, "gptq"):
        reader.set("quantize", "gptq", "gptq")


_OFFLOADED = ("offload", "unsloth", "offload_disk")
_OF_LORA = ("lora", "lora_targets", "lora_dropout")

AXOLOTL = Trainer(
    "axolotl",
    marks=(
        frozenset({"base_model", "micro_batch_size"}),
        frozenset({"base_model", "datasets", "sequence_len"}),
        frozenset({"base_model", "adapter"}),
        frozenset({"base_model", "gradient_accumulation_steps"}),
    ),
    keys={
        "base_model": says(MODEL, name),
        "micro_batch_size": says("batch", positive),
        "batch_size": says(GLOBAL_BATCH, positive),
        "gradient_accumulation_steps": says("accumulate", positive),
        "max_steps": says(STEPS, positive),
        "num_epochs": says("epochs", epochs),
        "optimizer": optimizer,
        "sequence_len": says("input_shape", length),
        "sample_packing": when(PACKING, True),
        "pad_to_sequence_len": when(FILLING, True),
        "lora_r": says("lora", positive),
        "lora_target_modules": says("lora_targets", names),
        "lora_dropout": says("lora_dropout", number),
        "flash_attention": when("attention", "flash"),
        "xformers_attention": when("attention", "flash"),
        "sdp_attention": when("attention", "auto"),
        "eager_attention": when("attention", "eager"),
        "attn_implementation": words("attention", ATTENTIONS),
        "torch_compile": when("compile", "inductor"),
        "dp_shard_size": passed_over,
        "dp_replicate_size": passed_over,
        "tensor_parallel_size": parallel("tensor parallelism: give `strategy`"),
        "sequence_parallel_degree": parallel(SEQUENCES_WHOLE),
        "context_parallel_size": parallel(SEQUENCES_WHOLE),
        "tiled_mlp": not_modelled("the MLP is forecast over all tokens at once"),
        "dataloader_num_workers": says("workers"),
        "dataloader_prefetch_factor": says("prefetch", positive),
        "peft_use_dora": DORA,
        "lora_modules_to_save": not_modelled(FROZEN),
        "lora_target_parameters": not_modelled("these parameters are forecast without an adapter"),
        "peft_layers_to_transform": not_modelled("every layer is forecast with an adapter"),
        "peft_layer_replication": not_modelled(),
        "peft_trainable_token_indices": not_modelled(FROZEN),
        "peft.loftq_config.*": not_modelled(),
        "relora": not_modelled("merges of adapters are not timed"),
        "relora_steps": not_modelled("merges of adapters are not timed"),
        "unfrozen_parameters": not_modelled("all parameters are forecast as trained; give `freeze`"),
        "s2_attention": not_modelled("attention is forecast over all tokens"),
        "flex_attention": not_modelled(),
        "lora_mlp_kernel": not_modelled("fused LoRA kernels"),
        "lora_qkv_kernel": not_modelled("fused LoRA kernels"),
        "lora_o_kernel": not_modelled("fused LoRA kernels"),
        **dict.fromkeys(
            ("unsloth_cross_entropy_loss", "unsloth_lora_mlp", "unsloth_lora_qkv", "unsloth_lora_o"), UNSLOTH
        ),
        **dict.fromkeys(
            (
                *("liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_layer_norm", "liger_swiglu"),
                *("liger_fused_linear_cross_entropy", "liger_cross_entropy"),
            ),
            LIGER,
        ),
        "cut_cross_entropy": not_modelled("the scores of all tokens are forecast in memory"),
        "flash_attn_cross_entropy": not_modelled(),
        "flash_attn_rms_norm": not_modelled(),
        "flash_attn_fuse_qkv": not_modelled(),
        "flash_attn_fuse_mlp": not_modelled(),
        "embeddings_skip_upcast": not_modelled(),
        "group_by_length": not_modelled("give `lengths`"),
        "batch_flattening": not_modelled("texts are forecast padded to one length"),
        "neftune_noise_alpha": not_modelled(),
        "auto_find_batch_size": not_modelled("give `batch`"),
        "activation_offloading": when("offload_activations", True),
        "layer_offloading": not_modelled("all layers are forecast on the GPU"),
        "qat": not_modelled(),
        "reward_model": not_modelled("forecast as a language model"),
        "val_set_size": not_modelled("evaluations are not timed"),
        "gc_steps": says("empty_cache_steps", positive),
        "process_reward_model": not_modelled("forecast as a language model"),
    },
    harmless=(
        *(
            "model_type",
            "tokenizer_*",
            "processor_type",
            "base_model_*",
            "is_*",
            "hub_*",
            "strict",
            "trust_remote_code",
        ),
        *("lora_alpha", "lora_fan_in_fan_out", "lora_model_dir", "lora_on_cpu", "peft_use_rslora", "peft_init*"),
        *("loraplus_*", "peft_autocast*", "qlora_sharded*", "wandb*", "mlflow*", "comet*", "use_*board", "output_dir"),
        *("dataset*", "test_datasets*", "shuffle*", "chat_template*", "eot_tokens", "special_tokens*", "tokens"),
        *("train_on_inputs", "learning_rate", "lr_*", "cosine_*", "weight_decay", "adam_*", "max_grad_norm", "warmup*"),
        *("eval_*", "evals_per_epoch", "do_*eval", "save*", "logging_*", "resume*", "auto_resume*", "early_stopping*"),
        *("seed", "local_rank", "ddp*", "debug", "loss_watchdog*", "overrides*", "bnb_config_kwargs.*", "plugins"),
        *(
            "sample_packing_*",
            "gradient_checkpointing_kwargs.*",
            "torch_compile_*",
            "dataloader_pin*",
            "default_system*",
        ),
        *(
            "dataloader_drop*",
            "load_best*",
            "metric*",
            "greater*",
            "include_*",
            "remove_unused*",
            "low_cpu*",
            "model_config*",
        ),
        *("fsdp_final_state*", "resize_token*", "fix_untrained*", "profiler_*", "min_sample_len", "excess_length*"),
        *(
            "streaming*",
            "group_by*",
            "max_memory*",
            "xformers*",
            "push_dataset*",
            "hf_use_auth*",
            "device*",
            "world_size",
        ),
    ),
    defaults={"batch": 1, "epochs": 1, "optimizer": "adamw", "input_shape": (DEFAULT_LENGTH,)},
    finish=_finish,
    programs=("axolotl", "axolotl.cli.train"),
)
