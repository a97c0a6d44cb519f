"""The example scripts of diffusers (examples/text_to_image, dreambooth): their options on a command line or in a file.

Text encoder and autoencoder run in every step, in the format of mixed precision; what is trained stays in float32.
"""

from epochcast.describe.capture.config.key_table import (
    MODEL,
    PROGRAM,
    Trainer,
    any_set,
    epochs,
    is_set,
    not_modelled,
    passed_over,
    positive,
    says,
    states,
    when,
)
from epochcast.describe.capture.config.setting import STEPS, Reader
from epochcast.describe.capture.config.trainers.diffusion_models import (
    ATTENTION_ADAPTED,
    diffusion_model,
    set_pictures,
)
from epochcast.describe.capture.config.trainers.shared_rows import set_dataset, set_halves

DEFAULT_RANK, RESOLUTION, BATCH, EPOCHS = 4, 512, 16, 100
"""Defaults of `rank`, `resolution`, `train_batch_size` and `num_train_epochs` in train_text_to_image_lora.py."""
_PROGRAMS = tuple(
    f"train_{task}{kind}{family}.py"
    for task in ("text_to_image", "dreambooth")
    for kind in ("", "_lora")
    for family in ("", "_sdxl", "_sd3", "_flux")
)


def _finish(reader: Reader) -> None:
    model, note = diffusion_model(str(reader.take("pretrained_model_name_or_path") or ""), "")
    if model:
        reader.set(MODEL, model, "pretrained_model_name_or_path")
    reader.notes += [note] if note else []
    program = str(reader.document.get(PROGRAM) or "")
    has_adapter = "lora" in program.split(".", maxsplit=1)[0].split("_") or "rank" in reader.document
    if has_adapter:
        rank = positive(reader, "rank")
        reader.set("lora", rank or DEFAULT_RANK, "rank", is_default=rank is None)
        reader.set("lora_targets", ATTENTION_ADAPTED, "default", is_default=True)
        reader.set("lora_dropout", 0.0, "default", is_default=True)
    half = next((each for each in ("bf16", "fp16") if reader.text("mixed_precision") == each), "")
    reader.read_keys.add("mixed_precision")
    if half:
        set_halves(reader, half, "mixed_precision", is_loaded=has_adapter)
    set_pictures(reader, reader.take("resolution") or RESOLUTION, "resolution")
    reader.set("optimizer", "adamw8bit" if is_set(reader, "use_8bit_adam") else "adamw", "use_8bit_adam")
    written = reader.take("dataset_name")
    set_dataset(reader, str(written or ""), "dataset_name")
    reader.leave("text encoder and autoencoder", "their forward passes of each step")
    if any_set(reader, "train_text_encoder"):
        reader.leave("train_text_encoder", "text encoders are forecast as frozen")
    if states(reader, STEPS):
        reader.entries[:] = [each for each in reader.entries if each.option != "epochs"]


DIFFUSERS_SCRIPTS = Trainer(
    "diffusers' examples",
    marks=(
        frozenset({"pretrained_model_name_or_path", "train_batch_size", "dataset_name"}),
        frozenset({"pretrained_model_name_or_path", "train_batch_size", "instance_data_dir"}),
    ),
    keys={
        "train_batch_size": says("batch", positive),
        "gradient_accumulation_steps": says("accumulate", positive),
        "max_train_steps": says(STEPS, positive),
        "num_train_epochs": says("epochs", epochs),
        "gradient_checkpointing": when("checkpointing", True),
        "use_ema": when("ema", True),
        "enable_xformers_memory_efficient_attention": when("attention", "flash"),
        "dataloader_num_workers": says("workers"),
        "max_train_samples": says("samples", positive),
        "use_dora": when("adapter", "dora"),
        "with_prior_preservation": not_modelled("a step sees twice the pictures"),
        "allow_tf32": passed_over,
        "validation_prompt": not_modelled("validation pictures are not timed"),
    },
    harmless=(
        *(
            "learning_rate",
            "lr_*",
            "adam_*",
            "max_grad_norm",
            "seed",
            "output_dir",
            "report_to",
            "checkpoint*",
            "random_flip",
        ),
        *(
            "center_crop",
            "snr_gamma",
            "noise_offset",
            "revision",
            "variant",
            "instance_*",
            "class_*",
            "num_validation*",
        ),
        *(
            "validation_epochs",
            "push_to_hub",
            "hub_*",
            "caption_column",
            "image_column",
            "resume_*",
            "scale_lr",
            "cache_dir",
        ),
        *(
            "num_class_images",
            "prior_loss_weight",
            "guidance_scale",
            "dataset_config_name",
            "logging_dir",
            "image_interpol*",
        ),
        *("pretrained_vae_model_name_or_path", "repeats", "prediction_type", "non_ema_revision", "sample_batch_size"),
    ),
    defaults={"batch": BATCH, "precision": "fp32", "epochs": EPOCHS},
    finish=_finish,
    programs=_PROGRAMS,
)
