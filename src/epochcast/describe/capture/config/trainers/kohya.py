"""kohya's sd-scripts (docs/train_network.md, docs/config_README-en.md): a TOML for `--config_file`, one for
`--dataset_config`, or the command line.

Frozen weights lie in the format of mixed precision, those that are trained in float32 unless `full_bf16` or `full_fp16`
is set. Adapters sit on the linear layers of the U-Net's transformers (`networks/lora.py`, `Transformer2DModel`).
"""

from collections.abc import Mapping

from epochcast.describe.capture.config.key_table import (
    MODEL,
    PROGRAM,
    Trainer,
    any_set,
    epochs,
    is_set,
    not_modelled,
    number,
    optimizer,
    passed_over,
    positive,
    says,
    stated,
    states,
    tables,
    when,
)
from epochcast.describe.capture.config.setting import STEPS, Reader
from epochcast.describe.capture.config.trainers.diffusion_models import (
    UNET_ADAPTED,
    diffusion_model,
    set_encoders,
    set_pictures,
)
from epochcast.describe.capture.config.trainers.shared_rows import AS_THE_MODEL, set_halves
from epochcast.describe.graph.adapters import ALL_LINEAR

DEFAULT_STEPS = 1600
"""`max_train_steps` where nothing is said."""
DEFAULT_RANK = 4
_LORA = ("networks.lora", "networks.lora_flux", "networks.lora_sd3", "networks.lora_fa", "networks.lora_lumina")
# What a program of sd-scripts trains.
PROGRAMS: Mapping[str, str] = {
    "train_network.py": "sd1.5",
    "fine_tune.py": "sd1.5",
    "train_db.py": "sd1.5",
    "sdxl_train_network.py": "sdxl",
    "sdxl_train.py": "sdxl",
    "sd3_train_network.py": "sd3",
    "sd3_train.py": "sd3",
    "flux_train_network.py": "flux",
    "flux_train.py": "flux",
}


def _finish(reader: Reader) -> None:
    program = str(reader.take(PROGRAM) or "")
    family = "sd2" if is_set(reader, "v2") else "flux" if reader.text("network_module") == "networks.lora_flux" else ""
    _set_model(reader, family or PROGRAMS.get(program, ""))
    _read_data(reader)
    has_adapter = bool(reader.text("network_module"))
    if has_adapter:
        _read_adapter(reader)
    half = next((each for each in ("bf16", "fp16") if reader.text("mixed_precision") == each), "")
    reader.read_keys |= {"mixed_precision", "full_bf16", "full_fp16"}
    if half:
        is_pure = bool(any_set(reader, f"full_{half}"))
        set_halves(reader, half, "mixed_precision", is_loaded=has_adapter, is_pure=is_pure and not has_adapter)
    _name_encoders(reader, has_adapter=has_adapter)
    if not states(reader, "optimizer"):
        name = (
            "adamw8bit" if is_set(reader, "use_8bit_adam") else "lion" if is_set(reader, "use_lion_optimizer") else ""
        )
        reader.set("optimizer", name or "adamw", "use_8bit_adam" if name else "default", is_default=not name)
    if states(reader, "epochs"):
        reader.entries[:] = [each for each in reader.entries if each.option != STEPS]
    elif not states(reader, STEPS):
        reader.set(STEPS, DEFAULT_STEPS, "default", is_default=True)


def _set_model(reader: Reader, family: str) -> None:
    key = "pretrained_model_name_or_path"
    written = str(reader.take(key) or "")
    if written or family:
        model, note = diffusion_model(written, family)
        reader.set(MODEL, model, key)
        reader.notes += [note] if note else []


def _read_data(reader: Reader) -> None:
    """Of several data sets the first: [[datasets]] with its batch and resolution, or the keys of the command line."""
    first = next(tables(reader, "datasets"), {})
    resolution = first.get("resolution", reader.document.get("resolution"))
    batch = first.get("batch_size", reader.document.get("batch_size"))
    reader.read_keys |= {"resolution", "batch_size"}
    if isinstance(batch, int) and not states(reader, "batch"):
        reader.set("batch", batch, "datasets.batch_size")
    set_pictures(reader, resolution, "resolution")
    if first.get("enable_bucket") or is_set(reader, "enable_bucket"):
        reader.notes.append("enable_bucket: pictures of other proportions are counted as square ones of the same area")


def _read_adapter(reader: Reader) -> None:
    module = reader.text("network_module")
    arguments = str(reader.take("network_args") or "")
    if module not in _LORA:
        kind = next((word for word in ("lokr", "loha", "oft", "boft", "dylora", "dora") if word in arguments), module)
        reader.leave("network_module", f"{kind}: forecast as LoRA of the same rank")
    for key, name in (("conv_dim", "adapters of convolutions"), ("dora_wd", "DoRA")):
        if key in arguments:
            reader.leave(f"network_args {key}", f"{name}: {AS_THE_MODEL}")
    if not states(reader, "lora"):
        reader.set("lora", DEFAULT_RANK, "default", is_default=True)
    if not states(reader, "lora_dropout"):
        reader.set("lora_dropout", 0.0, "default", is_default=True)
    is_unet = not str(stated(reader, MODEL) or "").startswith("diffusers:")
    reader.set("lora_targets", UNET_ADAPTED if is_unet else (ALL_LINEAR,), "network_module", is_default=True)


def _name_encoders(reader: Reader, *, has_adapter: bool) -> None:
    """What runs beside the network, unless it is cached."""
    if has_adapter and not any_set(reader, "network_train_unet_only", "cache_text_encoder_outputs"):
        reader.leave("text encoder", "its adapters are trained, too, and forecast as frozen")
    has_texts = any_set(reader, "cache_text_encoder_outputs", "cache_text_encoder_outputs_to_disk")
    has_pictures = any_set(reader, "cache_latents", "cache_latents_to_disk")
    set_encoders(
        reader,
        text="" if has_texts else "cache_text_encoder_outputs",
        pictures="" if has_pictures else "cache_latents",
    )


KOHYA = Trainer(
    "kohya sd-scripts",
    marks=(
        frozenset({"pretrained_model_name_or_path", "network_module"}),
        frozenset({"pretrained_model_name_or_path", "train_data_dir"}),
        frozenset({"pretrained_model_name_or_path", "dataset_config"}),
        frozenset({"pretrained_model_name_or_path", "cache_latents"}),
        frozenset({"pretrained_model_name_or_path", "max_train_epochs"}),
        frozenset({"datasets", "enable_bucket"}),
        frozenset({"datasets", "caption_extension"}),
        frozenset({"datasets", "keep_tokens"}),
        frozenset({"network_module", "network_dim"}),
    ),
    keys={
        "train_batch_size": says("batch", positive),
        "gradient_accumulation_steps": says("accumulate", positive),
        "max_train_epochs": says("epochs", epochs),
        "max_train_steps": says(STEPS, positive),
        "network_dim": says("lora", positive),
        "network_dropout": says("lora_dropout", number),
        "gradient_checkpointing": when("checkpointing", True),
        "cpu_offload_checkpointing": not_modelled("checkpoints are forecast on the GPU"),
        "optimizer_type": optimizer,
        "xformers": when("attention", "flash"),
        "sdpa": when("attention", "auto"),
        "mem_eff_attn": not_modelled(),
        "torch_compile": when("compile", "inductor"),
        "dynamo_backend": not_modelled("give `compile`"),
        "max_data_loader_n_workers": says("workers"),
        "fused_backward_pass": when("update_in_backward", True),
        "blocks_to_swap": not_modelled("all blocks are forecast on the GPU"),
        "fp8_base": when("quantize", "w8"),
        "fp8_base_unet": when("quantize", "w8"),
        "lowram": not_modelled(),
        "deepspeed": not_modelled("give `strategy`"),
        "weighted_captions": not_modelled(),
        "train_text_encoder": not_modelled("text encoders are forecast as frozen"),
        "network_train_text_encoder_only": not_modelled("the U-Net is forecast with adapters"),
        "sample_every_n_steps": not_modelled("sample pictures are not timed"),
        "sample_every_n_epochs": not_modelled("sample pictures are not timed"),
        "cache_latents": passed_over,
        "cache_latents_to_disk": passed_over,
        "cache_text_encoder_outputs": passed_over,
        "cache_text_encoder_outputs_to_disk": passed_over,
        "network_train_unet_only": passed_over,
        "enable_bucket": passed_over,
        "dataset_config": not_modelled("give that file as a second `--config`"),
    },
    harmless=(
        *(
            "network_alpha",
            "network_weights",
            "dim_from_weights",
            "output_*",
            "save_*",
            "log_*",
            "logging_dir",
            "wandb*",
        ),
        *(
            "learning_rate",
            "unet_lr",
            "text_encoder_lr",
            "lr_*",
            "optimizer_args",
            "max_grad_norm",
            "seed",
            "clip_skip",
        ),
        *("train_data_dir", "reg_data_dir", "in_json", "caption_*", "shuffle_caption", "keep_tokens*", "flip_aug"),
        *("color_aug", "random_crop", "bucket_*", "min_bucket_reso", "max_bucket_reso", "persistent_data*", "noise_*"),
        *(
            "min_snr_gamma",
            "prior_loss_weight",
            "multires_*",
            "adaptive_noise*",
            "zero_terminal*",
            "v_parameterization",
        ),
        *(
            "sample_prompts",
            "sample_sampler",
            "resume",
            "vae",
            "vae_batch_size",
            "no_half_vae",
            "tokenizer_*",
            "training_comment",
        ),
        *("datasets", "dataset_repeats", "huggingface_*", "loss_type", "huber_*", "scale_*", "ip_noise*"),
        *(
            "clip_l",
            "clip_g",
            "t5xxl*",
            "ae",
            "guidance_scale",
            "timestep_sampling",
            "discrete_flow*",
            "model_prediction*",
        ),
        *(
            "max_token_length",
            "masked_loss",
            "debiased*",
            "metadata_*",
            "no_metadata",
            "skip_cache*",
            "initial_*",
            "config_file",
        ),
    ),
    defaults={"batch": 1, "precision": "fp32"},
    finish=_finish,
    programs=tuple(PROGRAMS),
    has_sections=True,
)
