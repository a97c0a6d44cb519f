"""Arguments of trainers that matter to a forecast, whose values may only show when a script runs."""

from collections.abc import Mapping

from epochcast.describe.capture.config.trl_config import CHECKPOINTING

MATTERS = frozenset(
    (
        *(
            "per_device_train_batch_size",
            "gradient_accumulation_steps",
            "num_train_epochs",
            "max_steps",
            "bf16",
            "fp16",
        ),
        *("optim", "deepspeed", "fsdp", *CHECKPOINTING, "precision", "devices", "num_nodes", "strategy"),
        *("accumulate_grad_batches", "max_epochs", "max_length", "max_seq_length", "packing"),
        *("use_liger_kernel", "padding_free", "activation_offloading", "model_init_kwargs"),
    )
)
"""Those that change what is forecast."""

DEFAULT_KEYS: Mapping[str, frozenset[str]] = {
    "batch": frozenset({"per_device_train_batch_size"}),
    "epochs": frozenset({"num_train_epochs", "max_steps"}),
    "optimizer": frozenset({"optim"}),
    "precision": frozenset({"bf16", "fp16"}),
    "checkpointing": frozenset(CHECKPOINTING),
    "input_shape": frozenset({"max_length", "max_seq_length"}),
}
"""By option, the arguments that replace its default."""
