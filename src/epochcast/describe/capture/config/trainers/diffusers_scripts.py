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
    set_optimizer,
    states,
    when,
)
from epochcast.describe.capture.config.setting import STEPS, Reader
from epochcast.describe.capture.config.trainers.diffusion_models import (
    ATTENTION_ADAPTED,
    diffusion_model,
    set_encoders,
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
_OTHERS = ("train_controlnet.py", "train_controlnet_sdxl.py", "train_controlnet_sd3.py", "train_controlnet_flux.py")
_AHEAD = "train_text_to_image_sdxl.py"
"""It encodes all pictures and prompts before the training."""
_LATER = ("sdxl", "sd3", "flux")
"""Families whose Dreambooth scripts encode the one prompt before the training."""


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
    if is_set(reader, "use_8bit_adam") or not is_set(reader, "optimizer"):
        reader.set("optimizer", "adamw8bit" if is_set(reader, "use_8bit_adam") else "adamw", "use_8bit_adam")
    else:
        set_optimizer(reader, str(reader.document["optimizer"]), "optimizer")
    written = reader.take("dataset_name")
    set_dataset(reader, str(written or ""), "dataset_name")
    trains_text = bool(any_set(reader, "train_text_encoder"))
    if trains_text:
        reader.leave("train_text_encoder", "text encoders are forecast as frozen")
    words = program.removesuffix(".py").split("_")
    has_prompts = "dreambooth" in words and words[-1] in _LATER and not trains_text
    is_ahead = program == _AHEAD
    set_encoders(
        reader,
        text="" if has_prompts or is_ahead else "no option",
        pictures="" if is_set(reader, "cache_latents") or is_ahead else "cache_latents",
    )
    if "controlnet" in program:
        reader.leave(program, "a ControlNet: the network is forecast as trained, without the copy of its encoder")
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
        "controlnet_model_name_or_path": passed_over,
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
        *("set_grads_to_none", "proportion_empty_prompts", "conditioning_image*", "tracker_*", "validation_image"),
    ),
    defaults={"batch": BATCH, "precision": "fp32", "epochs": EPOCHS},
    finish=_finish,
    programs=(*_PROGRAMS, *_OTHERS),
)
