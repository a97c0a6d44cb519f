"""Inputs, losses and steps of the user's own."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import epochcast as ec
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(32, 64), nn.Linear(16, 64)

    def forward(self, x: torch.Tensor, y: torch.Tensor, *, scale: torch.Tensor | None = None) -> torch.Tensor:
        z: torch.Tensor = self.a(x) + self.b(y)
        return z if scale is None else z * scale


class OfOne(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.two = Two()

    def forward(self, batch: dict[str, Any]) -> dict[str, torch.Tensor]:
        return {"logits": self.two(batch["x"], batch["more"]["y"])}


X, Y = torch.zeros(2, 32), torch.zeros(2, 16)


@pytest.mark.parametrize(
    ("model", "inputs", "names"),
    [
        (Two, (X, Y), ["x", "y"]),
        (Two, {"x": X, "y": Y, "scale": torch.ones(2, 1)}, ["x", "y", "scale"]),
        (OfOne, {"x": X, "more": {"y": Y}}, ["batch.x", "batch.more.y"]),
    ],
    ids=["several", "keywords", "one dictionary"],
)
def test_inputs_of_any_shape_reach_the_model(model: Any, inputs: Any, names: list[str]) -> None:
    trace = from_workload(Workload(model(), inputs)).trace(Recipe(4))
    assert [t.name for t in trace.inputs] == names
    assert trace.flops["forward"] == 2 * 4 * 64 * (32 + 16)


def test_the_batch_may_come_second() -> None:
    workload = Workload(nn.LSTM(8, 8), torch.zeros(5, 2, 8), batch_dimension=1, loss=lambda out: out[0].sum())
    trace = from_workload(workload).trace(Recipe(64))
    assert next(op for op in trace.ops if "recurrent" in op.name).inputs[0].shape == (64, 5, 8)


@pytest.mark.parametrize(
    ("loss", "op"),
    [
        (lambda out: out.pow(2).mean(), "pow"),
        (lambda out, batch: F.mse_loss(out[:, :32], batch[0]), "mse_loss"),
        (nn.CrossEntropyLoss(), "nll_loss_forward"),
        (F.smooth_l1_loss, "smooth_l1_loss"),
    ],
    ids=["output", "output and batch", "module of torch", "function of torch"],
)
def test_a_loss_of_ones_own_is_run(loss: Any, op: str) -> None:
    trace = from_workload(Workload(Two(), (X, Y), loss=loss)).trace(Recipe(4))
    assert any(one.name.startswith(f"loss/{op}") for one in trace.ops)


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.make, self.judge = nn.Linear(8, 32), nn.Linear(32, 1)
        self.maker = torch.optim.Adam(self.make.parameters())
        self.trainer = torch.optim.RMSprop(self.judge.parameters())


def losses(models: Any, real: torch.Tensor) -> dict[str, torch.Tensor]:
    make, judge = (models["make"], models["judge"]) if isinstance(models, dict) else models
    fake = make(torch.randn(real.shape[0], 8, device=real.device))
    return {"judge": judge(fake.detach()).mean() - judge(real).mean(), "make": -judge(fake).mean()}


def critics(model: Gan, real: torch.Tensor, times: int = 3) -> None:
    for _ in range(times):
        loss = losses((model.make, model.judge), real)["judge"]
        model.trainer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        model.trainer.step()
    loss = losses((model.make, model.judge), real)["make"]
    model.maker.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    model.maker.step()


def matmuls(trace: Trace, phase: Phase) -> int:
    return sum(op.kind.label == "matmul" for op in trace.ops if op.phase is phase)


@pytest.mark.parametrize(
    "models",
    [(nn.Linear(8, 32), nn.Linear(32, 1)), {"make": nn.Linear(8, 32), "judge": nn.Linear(32, 1)}],
    ids=["a tuple", "a dict"],
)
def test_losses_that_a_step_returns_are_differentiated_and_all_is_updated_once(models: Any) -> None:
    trace = from_workload(Workload(models, torch.zeros(2, 32), step=losses)).trace(Recipe(4, optimizer="adam"))
    assert matmuls(trace, Phase.FORWARD) == 4
    assert matmuls(trace, Phase.BACKWARD) == 5  # three weight gradients of the judge, one of the maker, one of the fake
    assert sum(p.elements for p in trace.parameters) == 8 * 32 + 32 + 32 + 1
    assert {t.relation.state_of for op in trace.ops for t in op.outputs if t.relation.state_of} == {
        p.name for p in trace.parameters
    }


def test_a_step_with_optimizers_of_its_own_runs_them_as_often_as_it_says() -> None:
    trace = from_workload(Workload(Gan(), torch.zeros(2, 32), step=critics)).trace(Recipe(64, optimizer="sgd"))
    assert matmuls(trace, Phase.FORWARD) == 4 * 4
    updates = [op for op in trace.ops if op.phase is Phase.UPDATE]
    algorithms = {getattr(op.kind, "algorithm", "") for op in updates}
    assert {"adam", "rmsprop"} <= algorithms
    assert "the step runs its own optimizers (RMSprop, Adam), not sgd" in trace.notes
    states = {t.relation.state_of for op in trace.ops for t in op.outputs}
    assert {"make.weight", "judge.weight"} <= states


def test_more_rounds_of_a_step_take_longer_and_a_larger_batch_more_memory() -> None:
    def forecast(times: int, batch: int) -> ec.Forecast:
        def step(model: Gan, real: torch.Tensor) -> None:
            critics(model, real, times)

        return ec.forecast(Gan(), inputs=torch.zeros(2, 32), step=step, device="A100", batch=batch)

    once, often, large = forecast(1, 64), forecast(4, 64), forecast(1, 2**20)
    assert 2 < often.step_seconds.mid / once.step_seconds.mid < 4
    assert large.peak_bytes is not None
    assert once.peak_bytes is not None
    assert large.peak_bytes.mid > once.peak_bytes.mid + 2**20 * 32 * 4


def test_part_of_a_step_is_what_belongs_to_a_mode() -> None:
    model = from_workload(Workload(Gan(), torch.zeros(2, 32), step=critics))
    phases = {
        mode: {op.phase for op in model.trace(Recipe(4, mode=mode)).ops} for mode in ("forward", "forward_backward")
    }
    assert phases == {"forward": {Phase.FORWARD}, "forward_backward": {Phase.FORWARD, Phase.BACKWARD}}
    assert model.graph(4).ops


LIVE = Gan()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"step": lambda model, batch: None}, "`step` trains nothing"),
        ({"step": lambda model, batch: critics(LIVE, batch)}, "a step uses the model it is given"),
        ({"step": lambda model: None}, "`step` is called as step"),
        ({"step": 3}, "`step` must be a function, got int"),
        ({"step": critics, "loss": critics}, "give `loss` or `step`, not both"),
        ({"step": critics, "inputs": None}, "`step` needs a batch to work on"),
        ({"loss": lambda out: 3}, "`loss` must return a tensor, got int"),
    ],
    ids=["nothing", "another model", "one argument", "a number", "both", "no batch", "no tensor"],
)
def test_what_cannot_be_a_step_is_one_line(options: dict[str, Any], says: str) -> None:
    model = Two() if "loss" in options and "step" not in options else Gan()
    inputs = (X, Y) if isinstance(model, Two) else torch.zeros(2, 32)
    with pytest.raises(BadInput, match=says):
        ec.forecast(model, **{"inputs": inputs, **options}, device="A100", batch=4)


def test_inputs_of_a_reference_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"`inputs` goes with a live model: let the function of 'net\.py:make' return"):
        ec.forecast("net.py:make", inputs=X, device="A100", batch=4)


def test_a_class_is_made_where_it_needs_nothing() -> None:
    assert ec.forecast(Two, inputs=(X, Y), device="A100", batch=4).parameters == 64 * 48 + 128
    with pytest.raises(BadInput, match="the class Linear needs in_features, out_features"):
        ec.forecast(nn.Linear, input_shape=(8,), device="A100", batch=4)


def test_a_compiled_module_or_function_is_captured_as_it_is_written() -> None:
    compiled = torch.compile(lambda x: torch.relu(x) * 2)

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> Any:
            return compiled(self.layer(x))

    trace = from_workload(Workload(Inside(), torch.zeros(2, 8))).trace(Recipe(4))
    assert any("relu" in op.name for op in trace.ops)


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)

    def boxes(self, images: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.head(self.backbone(images).mean((2, 3)))
        return made

    def forward(self, images: list[torch.Tensor], targets: list[dict[str, torch.Tensor]]) -> torch.Tensor:
        found = self.boxes(torch.stack(images))
        return torch.stack([(box - t["boxes"]).abs().mean() for box, t in zip(found, targets, strict=True)]).mean()


IMAGES = [torch.zeros(3, 64, 64) for _ in range(2)]
TARGETS = [{"boxes": torch.zeros(5, 4), "labels": torch.ones(5, dtype=torch.int64)} for _ in range(2)]


@pytest.mark.parametrize("inputs", [(IMAGES, TARGETS), {"images": IMAGES, "targets": TARGETS}, IMAGES, (0, TARGETS)])
def test_a_list_with_one_image_per_sample_says_what_to_do(inputs: Any) -> None:
    with pytest.raises(BadInput, match=r"a list of 2 with one element per sample.*`inputs=`.*`step=`"):
        ec.forecast(Detector(), inputs=inputs, device="A100", batch=4)


def test_layers_of_a_detector_run_on_one_tensor_of_images() -> None:
    def step(model: Detector, images: torch.Tensor) -> torch.Tensor:
        return model.boxes(images).abs().mean()

    answer = ec.forecast(Detector(), inputs=torch.zeros(2, 3, 64, 64), step=step, device="A100", batch=4)
    assert answer.batch_per_gpu == 4


def test_a_list_of_inputs_that_each_hold_the_batch_is_taken() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 4)

        def forward(self, parts: list[torch.Tensor]) -> torch.Tensor:
            made: torch.Tensor = self.layer(parts[0] + parts[1])
            return made

    parts = [torch.zeros(2, 8), torch.zeros(2, 8)]
    assert ec.forecast(Two(), inputs=(parts,), device="A100", batch=4).batch_per_gpu == 4
