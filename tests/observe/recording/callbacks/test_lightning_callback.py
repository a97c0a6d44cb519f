"""The callback in a real `Trainer.fit`, under both names of the library."""

import pickle
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if find_spec("lightning") is None or find_spec("pytorch_lightning") is None:
    pytest.skip("Lightning is not installed", allow_module_level=True)

PACKAGES = ("lightning.pytorch", "pytorch_lightning")
Recorded = Callable[[], Any]


def package(name: str) -> Any:
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

    import_torchvision()  # Lightning's metrics import it
    return import_module(name)


def trainer(lightning: Any, folder: Path, **options: Any) -> Any:
    from epochcast.callbacks import LightningTracking

    tracking = LightningTracking("mine", to=folder / "run.jsonl")
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        callbacks=[tracking, *options.pop("callbacks", [])],
        **options,
    )


def module(lightning: Any) -> Any:
    class Line(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.layer(batch).pow(2).mean()

        def validation_step(self, batch: Any, index: int) -> Any:
            return None

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    return Line()


def batches(count: int = 6) -> Any:
    return torch.utils.data.DataLoader(torch.zeros(4 * count, 4), batch_size=4)


@pytest.mark.parametrize("name", PACKAGES)
def test_steps_validation_and_checkpoints_are_recorded(name: str, tmp_path: Path, recorded: Recorded) -> None:
    lightning = package(name)
    fit = trainer(lightning, tmp_path, max_epochs=2, accumulate_grad_batches=2)
    fit.fit(module(lightning), batches(), batches(1))
    found = recorded()
    (head,), last = found.heads, found.rows[-1]
    assert (head["total_steps"], head["total_epochs"], head["steps_per_epoch"]) == (12, 2, 6)
    assert (last["ec"], last["step"], found.steps) == ("end", 12, 12)
    assert found.pauses("validation") == found.pauses("checkpoint") == [6, 12]
    assert all("data_seconds" in row for row in found.rows if row["ec"] == "train")


def test_the_last_step_is_recorded_where_no_row_is_due(tmp_path: Path, recorded: Recorded, standstill: None) -> None:
    lightning = package(PACKAGES[0])
    fit = trainer(lightning, tmp_path, max_epochs=2, enable_checkpointing=False)
    fit.fit(module(lightning), batches())
    found = recorded()
    assert [row["step"] for row in found.rows if row["ec"] == "train"] == [1, 6, 12]
    assert (found.rows[-1]["ec"], found.rows[-1]["step"], found.steps) == ("end", 12, 12)


def test_a_training_from_a_checkpoint_goes_on_from_its_step(tmp_path: Path, recorded: Recorded) -> None:
    lightning = package(PACKAGES[0])
    first = trainer(lightning, tmp_path, max_epochs=1, enable_checkpointing=False)
    first.fit(module(lightning), batches())
    first.save_checkpoint(tmp_path / "saved.ckpt")
    again = trainer(lightning, tmp_path, max_epochs=3, enable_checkpointing=False)
    again.fit(module(lightning), batches(), ckpt_path=tmp_path / "saved.ckpt")
    found = recorded()
    assert [head["start_step"] for head in found.heads] == [0, 6]
    assert (found.rows[-1]["step"], found.heads[-1]["total_steps"]) == (18, 18)


def test_an_error_is_written_down(tmp_path: Path, recorded: Recorded) -> None:
    lightning = package(PACKAGES[0])

    class Break(lightning.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, *_: Any) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trainer(lightning, tmp_path, max_epochs=1, callbacks=[Break()]).fit(module(lightning), batches())
    assert (recorded().rows[-1]["ec"], recorded().rows[-1]["what"]) == ("stopped", "ZeroDivisionError")


def test_a_limit_of_steps_counts_accumulated_batches(tmp_path: Path, recorded: Recorded) -> None:
    lightning = package(PACKAGES[0])
    fit = trainer(lightning, tmp_path, max_steps=2, max_epochs=5, accumulate_grad_batches=3, enable_checkpointing=False)
    fit.fit(module(lightning), batches())
    assert recorded().heads[0]["total_steps"] == recorded().rows[-1]["step"] == 6


def test_a_callback_can_be_sent_to_another_process_before_it_is_used() -> None:
    package(PACKAGES[0])
    from epochcast.callbacks import LightningTracking

    assert pickle.loads(pickle.dumps(LightningTracking("mine"))).options.job == "mine"
