"""Hugging Face Trainer, by `train`."""

from pathlib import Path
from typing import Any

import torch

from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from studies.trainings.cases import Training
from studies.trainings.happenings import Happenings
from studies.trainings.models import BATCH, MODELS, Samples, step_seconds


def run(training: Training, folder: Path, steps_given: int | None) -> int:
    import_torchvision()
    from transformers import Trainer, TrainerCallback, TrainingArguments

    from epochcast.callbacks import TrainerTracking

    torch.manual_seed(0)
    net = MODELS[training.model]()
    usual_seconds = step_seconds(net, torch.optim.SGD(net.parameters(), 0.01))
    steps = steps_given or max(20, int(training.seconds / training.epochs / usual_seconds))
    (folder / "steps").write_text(str(steps), encoding="utf-8")
    happenings = Happenings(training, steps * training.epochs, folder)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, inputs: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": self.net(inputs, labels)}

    class Happen(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            if not happenings.after(state.global_step):
                control.should_training_stop = True

    arguments = TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        num_train_epochs=training.epochs,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        logging_steps=training.report_every,
        eval_strategy="steps" if training.validation_every else "no",
        eval_steps=training.validation_every or None,
        save_strategy="steps" if training.checkpoint_every else "no",
        save_steps=training.checkpoint_every or 500,
        save_total_limit=2,
        use_cpu=True,
        report_to=[],
        remove_unused_columns=False,
        prediction_loss_only=True,
    )
    trainer = Trainer(
        Model(),
        arguments,
        train_dataset=Samples(net, steps * BATCH),
        eval_dataset=Samples(net, training.validation_steps * BATCH),
        callbacks=[TrainerTracking(training.name, to=folder / "callback.jsonl"), Happen()],
    )
    trainer.train(resume_from_checkpoint=any((folder / "checkpoints").glob("checkpoint-*")))
    happenings.over()
    return steps
