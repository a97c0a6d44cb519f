"""ms-swift (swift.readthedocs.io, command line parameters): `swift sft --model … --tuner_type lora`, or the same names
in YAML or in the `args.json` that a run writes. The arguments of transformers' Trainer, and its own.

LoRA of rank 8 on all linear layers, bf16 where the GPU has it and checkpointing are its defaults. `--dataset NAME#500`
takes 500 samples of a data set.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    length,
    name,
    names,
    not_modelled,
    number,
    passed_over,
    says,
    states,
    uses_deepspeed,
    when,
    words,
)
from epochcast.describe.capture.config.preference_settings import DPO, GRPO, PPO, set_preferences
from epochcast.describe.capture.config.setting import PACKING, STEPS, Reader
from epochcast.describe.capture.config.trainers.shared_rows import (
    AS_THE_MODEL,
    DORA,
    FROZEN,
    LIGER,
    SEQUENCES_WHOLE,
    UNSLOTH,
    set_dataset,
    set_halves,
)
from epochcast.describe.capture.config.training_arguments import HARMLESS, read_common
from epochcast.describe.graph.adapters import ALL_LINEAR

DEFAULT_RANK, DEFAULT_DROPOUT = 8, 0.05
_KINDS = ("tuner_type", "train_type", "sft_type")
_HALVES: Mapping[str, str] = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16", "": "bf16"}
_BASES: Mapping[tuple[str, int], str] = {
    ("bnb", 4): "nf4-dq",
    ("bnb", 8): "int8",
    ("gptq", 4): "gptq",
    ("gptq", 8): "w8",
    ("awq", 4): "awq",
}
_PREFERENCES = (DPO, GRPO, PPO)
_TRAININGS: Mapping[str, str] = {
    "kto": "the pass of the reference model",
    "orpo": "pairs of answers: a step sees two texts for each sample",
    "simpo": "pairs of answers: a step sees two texts for each sample",
    "rm": "pairs of answers: a step sees two texts for each sample",
    "gkd": "the passes of the teacher",
}


def _finish(reader: Reader) -> None:
    kind = next((reader.text(key) for key in _KINDS if reader.text(key)), "lora")
    training = reader.text("rlhf_type")
    if training and training not in _PREFERENCES:
        reader.leave("rlhf_type", f"{training}: {_TRAININGS.get(training, 'forecast as fine-tuning')}")
    half = _HALVES.get(reader.text("torch_dtype"), "")
    if not half and reader.text("torch_dtype") in ("float32", "fp32"):
        reader.set("precision", "fp32", "torch_dtype")
    elif half:
        # Weights in half stay so, with their state, but under DeepSpeed.
        set_halves(reader, half, "torch_dtype", is_loaded=not uses_deepspeed(reader))
    _read_adapter(reader, kind)
    if not states(reader, "checkpointing") and "gradient_checkpointing" not in reader.document:
        reader.set("checkpointing", True, "default", is_default=True)
    reader.document = {key: value for key, value in reader.document.items() if key not in ("bf16", "fp16")}
    read_common(reader)
    _read_data(reader)
    if not states(reader, "batch"):
        reader.set("batch", 1, "default", is_default=True)
    if not states(reader, STEPS) and not states(reader, "epochs"):
        reader.set("epochs", 3, "default", is_default=True)
    if training in _PREFERENCES:
        set_preferences(reader, training)


def _read_adapter(reader: Reader, kind: str) -> None:
    if kind == "full":
        return
    if kind != "lora":
        reader.leave(next(key for key in _KINDS if reader.text(key)), f"{kind}: forecast as LoRA of the same rank")
    rank, dropout = reader.integer("lora_rank"), number(reader, "lora_dropout")
    reader.set("lora", rank or DEFAULT_RANK, "lora_rank", is_default=rank is None)
    reader.set(
        "lora_dropout", DEFAULT_DROPOUT if dropout is None else dropout, "lora_dropout", is_default=dropout is None
    )
    targets = names(reader, "target_modules")
    reader.set("lora_targets", targets or (ALL_LINEAR,), "target_modules", is_default=targets is None)
    bits = reader.integer("quant_bits") or reader.integer("quantization_bit")
    if bits:
        method = reader.text("quant_method") or "bnb"
        base = _BASES.get((method, bits))
        if base is None:
            reader.leave("quant_bits", f"{bits} bits by {method}: {AS_THE_MODEL}")
        else:
            reader.set("quantize", base, "quant_bits")


def _read_data(reader: Reader) -> None:
    written = reader.take("dataset")
    each = [str(part) for part in written] if isinstance(written, list) else str(written or "").split()
    counts = [part.rpartition("#")[2] for part in each]
    if each and all("#" in part and count.isdecimal() for part, count in zip(each, counts, strict=True)):
        reader.set("samples", sum(map(int, counts)), "dataset")
        return
    for part in each:
        set_dataset(reader, part.partition("#")[0], "dataset")


MS_SWIFT = Trainer(
    "ms-swift",
    marks=(
        *(frozenset({"model", kind}) for kind in _KINDS),
        frozenset({"model", "target_modules", "lora_rank"}),
        frozenset({"model", "per_device_train_batch_size", "max_length"}),
        frozenset({"model_id_or_path", "sft_type"}),
    ),
    keys={
        "model": says(MODEL, name),
        "model_id_or_path": says(MODEL, name),
        "max_length": says("input_shape", length),
        "packing": when(PACKING, True),
        "padding_free": not_modelled("texts are forecast padded to one length"),
        "attn_impl": words(
            "attention",
            {
                "flash_attn": "flash",
                "flash_attention_2": "flash",
                "flash_attention_3": "flash",
                "sdpa": "auto",
                "eager": "eager",
            },
        ),
        "use_flash_attn": when("attention", "flash"),
        "use_dora": DORA,
        "modules_to_save": not_modelled(FROZEN),
        "use_liger_kernel": LIGER,
        "tuner_backend": lambda reader, key: UNSLOTH(reader, key) if reader.text(key) == "unsloth" else None,
        "use_galore": not_modelled(),
        "lisa_activated_layers": not_modelled(),
        "sequence_parallel_size": lambda reader, key: (
            reader.leave(key, SEQUENCES_WHOLE) if (reader.integer(key) or 1) > 1 else None
        ),
        "freeze_parameters": not_modelled("give `freeze`"),
        "freeze_parameters_ratio": not_modelled("give `freeze`"),
        "freeze_vit": passed_over,
        "streaming": not_modelled("give `samples`"),
        "use_cce": not_modelled("the scores of all tokens are forecast in memory"),
        "max_pixels": not_modelled("give `input_shape`"),
        "split_dataset_ratio": passed_over,
        "val_dataset": passed_over,
    },
    harmless=(
        *sorted(HARMLESS - {"use_mps_device"}),
        *(
            "lora_alpha",
            "lora_bias",
            "use_rslora",
            "init_weights",
            "lorap_*",
            "model_type",
            "model_author",
            "model_name",
        ),
        *(
            "template*",
            "system",
            "output_dir",
            "use_hf",
            "dataset_num_proc",
            "load_*",
            "truncation_strategy",
            "deepspeed*",
        ),
        *(
            "check_model",
            "loss_scale",
            "agent_template",
            "freeze_llm",
            "freeze_aligner",
            "columns",
            "custom_*",
        ),
        *(
            "quant_method",
            "bnb_*",
            "max_new_tokens",
            "temperature",
            "top_*",
            "beta",
            "create_checkpoint*",
            "model_revision",
        ),
        *(
            "shuffle*",
            "eval_*",
            "reward_funcs",
            "reward_weights",
            "rlhf_type",
            "add_version",
            "ddp_*",
            "external_plugins",
            "response_prefix",
            "norm_bbox",
            "model_kwargs",
        ),
        *("train_dataloader*", "logprobs", "stream", "attn_impl", "rope_scaling", "merge_lora", "safe_serialization"),
    ),
    defaults={"optimizer": "adamw"},
    finish=_finish,
    programs=("swift", "sft.py", "swift.cli.sft", "rlhf.py", "pt.py"),
)
