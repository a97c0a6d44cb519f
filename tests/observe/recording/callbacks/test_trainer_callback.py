"""The callback in a real `Trainer.train`."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if find_spec("transformers") is None or find_spec("accelerate") is None:
    pytest.skip("transformers and accelerate are not installed", allow_module_level=True)

Recorded = Callable[[], Any]


class Line(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, inputs: Any, labels: Any = None) -> dict[str, Any]:
        return {"loss": self.layer(inputs).pow(2).mean()}


def train(folder: Path, resume: bool = False, **options: Any) -> None:
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()
    from transformers import Trainer, TrainingArguments

    from epochcast.callbacks import TrainerTracking

    arguments = TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=4,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_steps=2,
        prediction_loss_only=True,
        **options,
    )
    samples = [{"inputs": torch.zeros(4), "labels": torch.zeros(1)} for _ in range(32)]
    callback = TrainerTracking("mine", to=folder / "run.jsonl")
    trainer = Trainer(Line(), arguments, train_dataset=samples, eval_dataset=samples[:4], callbacks=[callback])
    trainer.train(resume_from_checkpoint=resume)


def test_steps_evaluations_and_checkpoints_are_recorded(tmp_path: Path, recorded: Recorded) -> None:
    train(tmp_path, num_train_epochs=2, eval_strategy="steps", eval_steps=4, save_strategy="steps", save_steps=8)
    found = recorded()
    (head,), last = found.heads, found.rows[-1]
    assert (head["total_steps"], head["total_epochs"], head["steps_per_epoch"]) == (16, 2, 8)
    assert (last["ec"], last["step"], found.steps) == ("end", 16, 16)
    assert found.pauses("validation") == [4, 8, 12, 16] and found.pauses("checkpoint") == [8, 16]
    assert any("loss" in row for row in found.rows)


def test_a_training_from_a_checkpoint_goes_on_from_its_step(tmp_path: Path, recorded: Recorded) -> None:
    train(tmp_path, max_steps=6, save_strategy="steps", save_steps=6)
    train(tmp_path, resume=True, max_steps=10, save_strategy="no", gradient_accumulation_steps=1)
    found = recorded()
    assert [head["start_step"] for head in found.heads] == [0, 6] and found.rows[-1]["step"] == 10


def test_the_last_step_is_recorded_where_no_row_is_due(tmp_path: Path, recorded: Recorded, standstill: None) -> None:
    train(tmp_path, max_steps=6, save_strategy="no")
    found = recorded()
    assert [row["step"] for row in found.rows if row["ec"] == "train"] == [1, 6]
    assert (found.rows[-1]["ec"], found.rows[-1]["step"], found.steps) == ("end", 6, 6)


def test_a_step_that_the_trainer_counted_and_did_not_report_is_recorded(tmp_path: Path, recorded: Recorded) -> None:
    from types import SimpleNamespace

    from epochcast.callbacks import TrainerTracking

    tracking: Any = TrainerTracking("mine", to=tmp_path / "run.jsonl")
    state = SimpleNamespace(max_steps=3, num_train_epochs=1, is_world_process_zero=True, global_step=0)
    tracking.on_train_begin(None, state, None)
    state.global_step = 2
    tracking.on_step_end(None, state, None)
    state.global_step = 3
    tracking.on_train_end(None, state, None)
    assert (recorded().rows[-1]["step"], recorded().steps) == (3, 3)


def test_accumulated_batches_are_one_step(tmp_path: Path, recorded: Recorded) -> None:
    train(tmp_path, num_train_epochs=1, gradient_accumulation_steps=2, save_strategy="no")
    assert recorded().heads[0]["total_steps"] == recorded().steps == 4
