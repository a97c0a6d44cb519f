"""lerobot's train_config.json, or `lerobot-train --policy.type=act --dataset.repo_id=…` (lerobot/configs/train.py)."""

from epochcast.describe.capture.config.key_table import (
    MODEL,
    Trainer,
    is_set,
    not_modelled,
    number,
    positive,
    says,
    set_optimizer,
    states,
)
from epochcast.describe.capture.config.setting import STEPS, Reader

BATCH, STEPS_OF_RUN, WORKERS = 8, 100_000, 4
"""Defaults of batch_size, steps and num_workers."""
# Optimizers of the policies' presets (`get_optimizer_preset`).
_PRESETS = {"act": "adamw", "diffusion": "adam", "vqbet": "adam", "tdmpc": "adam"}


def _finish(reader: Reader) -> None:
    policy = reader.text("policy.type") or reader.text("policy.path")
    key = "policy.type" if reader.text("policy.type") else "policy.path"
    reader.set(MODEL, policy, key, problem=f"no network here for the policy {policy!r}; give MODEL: file.py:factory")
    is_mixed = is_set(reader, "policy.use_amp")
    dtype = reader.text("policy.dtype")
    reader.set("precision", "amp_fp16" if is_mixed else "bf16" if dtype == "bfloat16" else "fp32", "policy.use_amp")
    written = reader.text("optimizer.type")
    if written:
        set_optimizer(reader, written, "optimizer.type")
    elif not states(reader, "optimizer"):
        reader.set("optimizer", _PRESETS.get(policy, "adamw"), "default", is_default=True)
    if is_set(reader, "policy.compile_model"):
        reader.set("compile", "inductor", "policy.compile_model")
    if is_set(reader, "policy.gradient_checkpointing"):
        reader.set("checkpointing", True, "policy.gradient_checkpointing")
    rank = positive(reader, "peft.r")
    if rank:
        reader.set("lora", rank, "peft.r")
    dropout = number(reader, "peft.lora_dropout")
    if rank and dropout is not None:
        reader.set("lora_dropout", dropout, "peft.lora_dropout")


LEROBOT = Trainer(
    "lerobot",
    marks=(frozenset({"policy.type", "dataset.repo_id"}), frozenset({"policy.path", "dataset.repo_id"})),
    keys={
        "batch_size": says("batch", positive),
        "steps": says(STEPS, positive),
        "num_workers": says("workers"),
        "prefetch_factor": says("prefetch", positive),
        "env_eval_freq": not_modelled("evaluations in the environment are not timed"),
        "eval_freq": not_modelled("evaluations in the environment are not timed"),
        "policy.freeze_vision_encoder": not_modelled("give `freeze`"),
        "policy.train_expert_only": not_modelled("give `freeze`"),
        "dataset.image_transforms.enable": not_modelled("give `loader_seconds`"),
    },
    harmless=(
        *("policy.*", "dataset.*", "env*", "eval.*", "eval_*", "output_dir", "job_name", "resume", "seed", "cudnn*"),
        *(
            "log_freq",
            "tolerance_s",
            "save_*",
            "use_policy*",
            "optimizer.*",
            "scheduler*",
            "wandb*",
            "peft.*",
            "rename_map*",
        ),
        *("persistent_workers", "max_eval*", "checkpoint_path", "sample_weighting*", "reward_model*"),
    ),
    defaults={"batch": BATCH, STEPS: STEPS_OF_RUN, "workers": WORKERS},
    finish=_finish,
    programs=("lerobot-train", "lerobot_train.py", "lerobot.scripts.train"),
)
