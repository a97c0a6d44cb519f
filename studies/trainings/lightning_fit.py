"""Lightning, by `Trainer.fit`."""

from pathlib import Path
from typing import Any

import torch

from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from studies.trainings.cases import Training
from studies.trainings.happenings import Happenings
from studies.trainings.models import BATCH, MODELS, STALL_FACTOR, Samples, loader, step_seconds


def run(training: Training, folder: Path, steps_given: int | None) -> int:
    import_torchvision()
    import lightning.pytorch as lightning
    from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar

    from epochcast.callbacks import LightningTracking

    torch.manual_seed(0)
    net = MODELS[training.model]()
    usual_seconds = step_seconds(net, torch.optim.SGD(net.parameters(), 0.01))
    steps = steps_given or max(20, int(training.seconds / training.epochs / usual_seconds))
    (folder / "steps").write_text(str(steps), encoding="utf-8")
    happenings = Happenings(training, steps * training.epochs, folder)

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(**batch)

        def validation_step(self, batch: Any, index: int) -> Any:
            self.log("val_loss", self.net(**batch), batch_size=BATCH)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    class Happen(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            if not happenings.after(trainer.fit_loop.epoch_loop.total_batch_idx + 1):
                trainer.should_stop = True

    every = training.checkpoint_every
    saving = ModelCheckpoint(
        folder / "checkpoints",
        save_last=True,
        every_n_train_steps=every if every > 1 else None,
        every_n_epochs=1 if every == 1 else None,
    )
    trainer = lightning.Trainer(
        max_epochs=training.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=every > 0,
        default_root_dir=folder,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[
            TQDMProgressBar(refresh_rate=training.report_every),
            LightningTracking(training.name, to=folder / "callback.jsonl"),
            Happen(),
            *([saving] if every else []),
        ],
    )
    count = steps * BATCH
    stall = STALL_FACTOR * usual_seconds / BATCH if training.stall_at else 0.0
    samples = Samples(net, count, int(training.stall_at * count * training.epochs), stall)
    validation = loader(Samples(net, training.validation_steps * BATCH)) if training.validation_every else None
    last = folder / "checkpoints" / "last.ckpt"
    trainer.fit(Module(), loader(samples), validation, ckpt_path=last if last.exists() else None)
    happenings.over()
    return steps
