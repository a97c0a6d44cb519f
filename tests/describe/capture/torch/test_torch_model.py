"""A captured module at any batch size, with any inputs."""

from typing import Any

import pytest
import torch
from torch import nn

from epochcast.describe.capture.model import Model
from epochcast.describe.capture.torch.example_arguments import Example
from epochcast.describe.capture.torch.meta_steps import recorded_update, run
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 5)
    )


def test_it_is_a_model() -> None:
    model: Model = from_workload(Workload(network(), inputs=(3, 8, 8)), name="mine")
    assert model.name == "mine"


def test_a_batch_size_that_was_not_captured_is_what_a_capture_there_gives() -> None:
    recipe = Recipe(13, optimizer="adam", precision="fp32_strict")
    model = from_workload(Workload(network(), inputs=(3, 8, 8)))
    once = run(model.module, model.example, recipe)
    update = recorded_update(model.module, once.grads, recipe, Values())
    assert model.trace(recipe).ops == (*once.ops, *update)


def test_another_optimizer_does_not_run_the_module_again() -> None:
    class Counting(nn.Linear):
        runs = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            Counting.runs += 1
            return super().forward(x)

    model = from_workload(Workload(Counting(4, 4), inputs=(4,)))
    graph = model.graph(3)
    first = Counting.runs
    adam, sgd = (model.trace(Recipe(3, optimizer=name, ema=name == "adam")) for name in ("adam", "sgd"))
    assert Counting.runs == first
    assert len(adam.ops) > len(sgd.ops)
    assert graph.ops == sgd.ops[: len(graph.ops)]


def test_a_model_without_a_backward_pass_has_a_forward_graph() -> None:
    class Stuck(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(context: Any, *grads: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no gradient")

    class Net(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Stuck.apply(super().forward(x))  # type: ignore[no-any-return, no-untyped-call]

    assert from_workload(Workload(Net(4, 4), inputs=(4,))).graph(2).outputs[0].shape == (2, 4)


def test_a_batch_of_one_needs_no_capture_of_one() -> None:
    """In training, batch normalisation refuses one value per channel."""
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    graph = from_workload(Workload(module, inputs=(4,))).graph(1)
    assert graph.outputs[0].shape == (1, 4)
    assert graph.inputs[0].shape == (1, 4)


def test_the_forward_graph_has_parameters_buffers_and_outputs() -> None:
    graph = from_workload(Workload(network(), inputs=(3, 8, 8))).graph(2)
    assert graph.parameter_count == 3 * 8 * 9 + 8 + 16 + 128 * 5 + 5
    assert [t.name for t in graph.inputs] == ["input", "1.num_batches_tracked"]
    assert graph.outputs[0].shape == (2, 5)


def test_the_users_module_keeps_its_weights_and_its_device() -> None:
    module = network()
    before = module[0].weight.detach().clone()  # type: ignore[index]
    from_workload(Workload(module, inputs=(3, 8, 8))).trace(Recipe(2, optimizer="adam"))
    assert torch.equal(before, module[0].weight)  # type: ignore[index]
    assert all(p.grad is None for p in module.parameters())


def test_shared_parameters_stay_shared_on_meta() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = module[0].weight
    trace = from_workload(Workload(module, inputs=(4,))).trace(Recipe(2))
    assert [p.name for p in trace.parameters] == ["0.weight", "0.bias", "1.bias"]


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, extra: dict[str, torch.Tensor]) -> torch.Tensor:
        x = self.table(tokens) * mask.unsqueeze(-1) + extra["positions"]
        y: torch.Tensor = self.head(x.mean(1))
        return y


TOKENS, MASK, POSITIONS = torch.zeros(7, 6, dtype=torch.int64), torch.ones(7, 6, dtype=torch.bool), torch.zeros(6, 8)


@pytest.mark.parametrize(
    "inputs",
    [
        (TOKENS, MASK, {"positions": POSITIONS}),
        {"tokens": TOKENS, "mask": MASK, "extra": {"positions": POSITIONS}},
        Example((TOKENS,), {"mask": MASK, "extra": {"positions": POSITIONS}}),
    ],
    ids=["tuple", "mapping", "example"],
)
def test_several_inputs_of_any_kind_grow_with_the_batch_where_they_share_it(inputs: Any) -> None:
    trace = from_workload(Workload(Masked(), inputs=inputs)).trace(Recipe(32))
    assert [(t.name, t.shape, t.dtype) for t in trace.inputs] == [
        ("tokens", (1, 6), DType.INT64),
        ("mask", (1, 6), DType.BOOL),
        ("extra.positions", (1, 8), DType.FLOAT32),
    ]
    graph = from_workload(Workload(Masked(), inputs=inputs)).graph(32)
    assert [t.shape for t in graph.inputs] == [(32, 6), (32, 6), (6, 8)]


def test_an_argument_called_like_a_parameter_is_told_from_it() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.empty(4))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * self.weight

    graph = from_workload(Workload(Weighted(), inputs=(4,))).graph(2)
    assert [t.name for t in graph.ops[0].inputs] == ["input:weight", "weight"]


def test_asking_again_runs_nothing() -> None:
    calls = []

    class Counted(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            calls.append(input.shape[0])
            return super().forward(input)

    model = from_workload(Workload(Counted(4, 2), inputs=(4,)))
    for recipe in (Recipe(2), Recipe(64), Recipe(2, precision="amp_bf16"), Recipe(8, accumulate=4)):
        model.trace(recipe)
    assert len(calls) == 2


def test_a_model_that_runs_other_ops_at_another_batch_is_refused() -> None:
    class Fickle(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            y = super().forward(input)
            return y.relu() if input.shape[0] > 5 else y

    with pytest.raises(BadInput, match="control flow depends on the batch"):
        from_workload(Workload(Fickle(4, 2), inputs=(4,))).trace(Recipe(2))


def test_an_input_of_the_wrong_size_says_so() -> None:
    with pytest.raises(BadInput, match=r"does not take an input of 1×8×8 in module '0': .*`input_shape`"):
        from_workload(Workload(network(), inputs=(1, 8, 8))).trace(Recipe(2))


def test_an_error_inside_the_model_carries_the_tail_of_its_traceback() -> None:
    class Broken(nn.Linear):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            raise KeyError("no such head")

    with pytest.raises(BadInput, match="the model fails in forward: KeyError: 'no such head'") as caught:
        from_workload(Workload(Broken(4, 2), inputs=(4,))).trace(Recipe(2))
    assert any("def forward" in note or "raise KeyError" in note for note in caught.value.__notes__)


def test_a_conditional_convolution_has_its_groups_back() -> None:
    """A kernel for every sample (Yang et al. 2019): run as one sample with batch·groups groups."""

    class Conditional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.Parameter(torch.empty(4, 8 * 3 * 9))
            self.route = nn.Linear(3, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            batch, channels, height, width = x.shape
            kernels = self.route(x.mean((2, 3))) @ self.experts
            flat = x.reshape(1, batch * channels, height, width)
            y = nn.functional.conv2d(flat, kernels.view(batch * 8, 3, 3, 3), groups=batch)
            return y.view(batch, -1)

    trace = from_workload(Workload(Conditional(), inputs=(3, 8, 8))).trace(Recipe(2, mode="forward"))
    conv = next(op for op in trace.ops if op.kind.label == "conv")
    assert conv.inputs[0].shape == (2, 3, 8, 8)
    assert conv.weights[0].shape == (8, 3, 3, 3)
    product = 2 * 2 * 6 * 6 * 8 * 3 * 9
    assert trace.flops["forward"] == product + 2 * 2 * 3 * 4 + 2 * 2 * 4 * 216


def test_a_captured_model_has_no_capacity_of_experts() -> None:
    model = from_workload(Workload(network(), inputs=(3, 8, 8)))
    with pytest.raises(BadInput, match="leave `expert_capacity` out"):
        model.trace(Recipe(2, expert_capacity=1.25))
