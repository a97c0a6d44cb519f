"""Real Lightning modules: their training_step is what is forecast."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import epochcast as ec
from epochcast.describe.capture.torch.torchvision_shim import import_torchvision

import_torchvision()  # Lightning imports it where it is installed, also beside a torch it was not built for
lightning = pytest.importorskip("lightning")


class Classifier(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> Any:
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        loss = F.cross_entropy(self(x), y) + F.cross_entropy(self(x.flip(0)), y)
        self.log("loss", loss)
        return {"loss": loss, "steps": self.trainer.estimated_stepping_batches}

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters())


class Adversaries(lightning.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.make, self.judge = nn.Linear(16, 784), nn.Linear(784, 1)

    def forward(self, noise: torch.Tensor) -> Any:
        return self.make(noise)

    def training_step(self, real: torch.Tensor) -> None:
        maker, trainer = self.optimizers()
        noise = torch.randn(len(real), 16).type_as(real)
        self.toggle_optimizer(trainer)
        trainer.zero_grad()
        self.manual_backward((self.judge(self(noise).detach()) - self.judge(real)).mean())
        trainer.step()
        self.untoggle_optimizer(trainer)
        maker.zero_grad()
        self.manual_backward(-self.judge(self(noise)).mean())
        maker.step()
        self.log_dict({"one": 1.0})

    def configure_optimizers(self) -> Any:
        return [torch.optim.Adam(self.make.parameters()), torch.optim.SGD(self.judge.parameters())], []


BATCH = (torch.zeros(4, 64), torch.zeros(4, dtype=torch.long))
LAYER_FLOPS = 3 * 2 * 64 * 10


def test_the_training_step_runs_on_a_batch_of_the_loader() -> None:
    """Twice through one layer; the gradient of its input is not needed, so two thirds of three passes each."""
    answer = ec.forecast(Classifier(), inputs=BATCH, device="A100", batch=32)
    assert answer.flops_per_sample == 2 * LAYER_FLOPS * 2 / 3
    assert answer.optimizer == "adamw"


def test_inputs_of_forward_alone_are_forecast_with_a_note() -> None:
    answer = ec.forecast(Classifier(), inputs=torch.zeros(4, 64), device="A100", batch=32)
    assert answer.flops_per_sample == LAYER_FLOPS * 2 / 3
    assert any("`forward` of Classifier is forecast, not its `training_step`" in note for note in answer.warnings)


@pytest.mark.parametrize("gpus", [1, 4])
def test_manual_optimization_runs_its_own_optimizers(gpus: int) -> None:
    answer = ec.forecast(Adversaries(), inputs=torch.zeros(4, 784), device="A100", batch=32, gpus=gpus)
    assert any("its own optimizers (SGD, Adam)" in note for note in answer.warnings)
    judge, make = 2 * 784, 2 * 16 * 784
    # the judge sees two and then one picture; weights get gradients once each time, the picture of the maker, too
    assert answer.flops_per_sample == 3 * judge + 2 * make + (3 + 1) * judge + make


def test_manual_optimization_without_a_batch_is_refused() -> None:
    with pytest.raises(ec.BadInput, match="goes backward by itself in `training_step`"):
        ec.forecast(Adversaries(), inputs=(torch.zeros(4, 16), torch.zeros(4, 16)), device="A100", batch=32)


def test_the_users_module_stays_as_it_is() -> None:
    module = Classifier()
    ec.forecast(module, inputs=BATCH, device="A100", batch=32)
    assert module._trainer is None
    assert "log" not in vars(module)
