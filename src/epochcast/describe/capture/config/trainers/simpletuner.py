"""SimpleTuner (OPTIONS.md): `config.json` (names with or without --), `config.toml`, or the older `config.env`.

It computes the results of text encoders and autoencoder beforehand, loads the frozen base in bf16, and trains all
weights in bf16 with `adamw_bf16`.
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    epochs,
    not_modelled,
    optimizer,
    passed_over,
    positive,
    says,
    stated,
    states,
    when,
)
from epochcast.describe.capture.config.setting import STEPS, Reader
from epochcast.describe.capture.config.trainers.diffusion_models import (
    ATTENTION_ADAPTED,
    diffusion_model,
    set_pictures,
)
from epochcast.describe.capture.config.trainers.shared_rows import AS_THE_MODEL

DEFAULT_RANK, DEFAULT_RESOLUTION = 16, 1024
_ENVIRONMENT: Mapping[str, str] = {
    "model_name": "pretrained_model_name_or_path",
    "max_num_steps": "max_train_steps",
    "num_epochs": "num_train_epochs",
    "use_gradient_checkpointing": "gradient_checkpointing",
    "training_num_processes": "num_processes",
    "training_num_machines": "num_machines",
}
"""Names of config.env, in small letters, and those of config.json."""
_BASES: Mapping[str, str] = {
    "nf4-bnb": "nf4-dq",
    "int8-quanto": "w8",
    "int8-torchao": "w8",
    "fp8-quanto": "w8",
    "fp8uz-quanto": "w8",
    "fp8-torchao": "fp8",
    "int8-sdnq": "sdnq",
    "uint8-sdnq": "sdnq",
}
_FLOATS: Mapping[str, str] = {"fp32": "fp32", "fp16": "amp_fp16", "bf16": "amp_bf16", "no": "fp32"}
_FULL_FLOATS: Mapping[str, str] = {"bf16": "bf16"}
_RATIOS = ("area", "megapixel")


def renamed(key: str) -> str:
    """A name of any of its files, as config.json has it without dashes."""
    plain = key.lstrip("-").replace("-", "_").casefold()
    return _ENVIRONMENT.get(plain, plain)


def _finish(reader: Reader) -> None:
    model, note = diffusion_model(str(reader.take("pretrained_model_name_or_path") or ""), reader.text("model_family"))
    if model:
        reader.set(MODEL, model, "model_family")
        reader.notes += [note] if note and reader.take("pretrained_model_name_or_path") else []
    is_adapter = "lora" in (reader.text("model_type") or "lora")
    if is_adapter:
        _read_adapter(reader)
    word = reader.text("mixed_precision") or "bf16"
    table = _FLOATS if is_adapter else {**_FLOATS, **_FULL_FLOATS}
    reader.set(
        "precision", table.get(word, "amp_bf16"), "mixed_precision", is_default="mixed_precision" not in reader.document
    )
    if is_adapter and word == "bf16":
        reader.set("weights", "bf16", "mixed_precision")
    _read_resolution(reader)
    for key, option in (("num_processes", "gpus"), ("num_machines", "nodes")):
        value = positive(reader, key)
        if value is not None:
            reader.set(option, value, key)
    if states(reader, STEPS):
        reader.entries[:] = [each for each in reader.entries if each.option != "epochs"]


def _read_adapter(reader: Reader) -> None:
    if reader.text("lora_type") == "lycoris":
        reader.leave("lora_type", "lycoris: its config is not read, forecast as LoRA")
    if not states(reader, "lora"):
        reader.set("lora", DEFAULT_RANK, "default", is_default=True)
    reader.set("lora_targets", ATTENTION_ADAPTED, "default", is_default=True)
    reader.set("lora_dropout", 0.0, "default", is_default=True)
    base = reader.text("base_model_precision")
    if base in _BASES:
        reader.set("quantize", _BASES[base], "base_model_precision")
    elif base not in ("", "no_change", "bf16"):
        reader.leave("base_model_precision", f"{base}: {AS_THE_MODEL}")


def _read_resolution(reader: Reader) -> None:
    """By edges, or by area: 1 is a megapixel, a square of 1,024."""
    value = reader.take("resolution")
    if reader.text("resolution_type") in _RATIOS and isinstance(value, int | float | str):
        try:
            area = float(value)
        except ValueError:
            area = 0.0
        value = round(1024 * area**0.5 / 64) * 64 if 0 < area < 16 else value
    if value is None and stated(reader, MODEL):
        value = DEFAULT_RESOLUTION
    set_pictures(reader, value, "resolution")


SIMPLE_TUNER = Trainer(
    "SimpleTuner",
    marks=(
        frozenset({"model_family"}),
        frozenset({"data_backend_config"}),
        frozenset({"model_type", "pretrained_model_name_or_path", "train_batch_size"}),
        frozenset({"flow_schedule_shift", "train_batch_size"}),
    ),
    keys={
        "train_batch_size": says("batch", positive),
        "gradient_accumulation_steps": says("accumulate", positive),
        "max_train_steps": says(STEPS, positive),
        "num_train_epochs": says("epochs", epochs),
        "optimizer": optimizer,
        "lora_rank": says("lora", positive),
        "gradient_checkpointing": when("checkpointing", True),
        "gradient_checkpointing_interval": not_modelled("every block is forecast as recomputed"),
        "use_ema": when("ema", True),
        "use_dora": when("adapter", "dora"),
        "controlnet": not_modelled("the network is forecast without it"),
        "fuse_optimizer": passed_over,
        "train_text_encoder": not_modelled("text encoders are forecast as frozen"),
        "attention_mechanism": lambda reader, key: (
            reader.leave(key, reader.text(key)) if reader.text(key) not in ("", "diffusers") else None
        ),
        "fuse_qkv_projections": not_modelled(),
        "flux_lora_target": lambda reader, key: reader.leave(
            key, f"{reader.text(key)}: attention is forecast with adapters"
        ),
        "training_dynamo_backend": lambda reader, key: (
            reader.set("compile", "inductor", key) if reader.text(key) == "inductor" else None
        ),
        "offload_during_startup": passed_over,
        "enable_group_offload": not_modelled("all blocks are forecast on the GPU"),
        "ramtorch": not_modelled("all weights are forecast on the GPU"),
        "validation_steps": not_modelled("validation pictures are not timed"),
        "vae_cache_ondemand": not_modelled("pictures are forecast as encoded beforehand"),
        "dataloader_prefetch": passed_over,
    },
    harmless=(
        *(
            "lora_alpha",
            "lora_init*",
            "checkpoint*",
            "data_backend_config",
            "disable_*",
            "eval_*",
            "evaluation_type",
            "flow_*",
        ),
        *(
            "grad_clip*",
            "hub_*",
            "learning_rate",
            "lr_*",
            "num_eval*",
            "output_dir",
            "push_*",
            "quantize_via",
            "report_to",
        ),
        *(
            "seed",
            "tracker_*",
            "vae_*",
            "validation_*",
            "num_validation*",
            "aspect_*",
            "caption_*",
            "minimum_image*",
            "ema_*",
        ),
        *(
            "resume_*",
            "lycoris_config",
            "instance_*",
            "text_encoder_*",
            "max_grad_norm",
            "noise_*",
            "snr_*",
            "guidance_*",
        ),
        *("allow_tf32", "skip_*", "prepend_*", "user_prompt*", "debug*", "model_flavour", "write_batch*", "torch_num*"),
        *(
            "preserve_*",
            "metadata_*",
            "ignore_*",
            "max_sequence*",
            "tokenizer_*",
            "keep_*",
            "base_model_default*",
            "i_know*",
        ),
        *(
            "training_scheduler*",
            "inference_*",
            "prediction_type",
            "rescale_*",
            "flux_guidance*",
            "flux_fast*",
            "sana_*",
            "loss_*",
        ),
    ),
    defaults={"batch": 4, "optimizer": "adamw"},
    finish=_finish,
    programs=("simpletuner",),
    rename=renamed,
)
