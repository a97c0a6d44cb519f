"""A step as the framework runs it: loss, backward, optimizer, and what freezing, tying and checkpointing change."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.every import every
from torch import nn
from torch.utils.checkpoint import checkpoint

from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_kinds import Attention, Elementwise, Loss, Matmul, OptimizerUpdate, Reduce
from epochcast.describe.graph.optimizer import OPTIMIZERS, update
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

Capture = Callable[..., Trace]


def two_layers() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def updates(trace: Trace) -> list[tuple[str, int, int, int]]:
    ops = [op for op in trace.ops if op.phase is Phase.UPDATE]
    return [
        (op.kind.step, op.kind.flops(op), op.kind.read_bytes(op), op.kind.written_bytes(op))
        for op in ops
        if isinstance(op.kind, OptimizerUpdate)
    ]


@every("optimizer", sorted(set(OPTIMIZERS) - {"adadelta", "adagrad", "adamw", "rmsprop"}))
def test_the_recorded_update_is_the_derived_one_pass_by_pass(capture: Capture, optimizer: str) -> None:
    trace = capture(two_layers, (4,), optimizer=optimizer)
    derived = [
        (op.kind.step, op.kind.flops(op), op.kind.read_bytes(op), op.kind.written_bytes(op))
        for op in update(trace.parameters, optimizer)
        if isinstance(op.kind, OptimizerUpdate)
    ]
    assert updates(trace) == derived


@pytest.mark.parametrize("optimizer", ["adadelta", "adagrad", "adamw", "rmsprop"])
def test_the_recorded_update_moves_the_bytes_of_the_derived_one(capture: Capture, optimizer: str) -> None:
    trace = capture(two_layers, (4,), optimizer=optimizer)
    derived = sum(op.kind.read_bytes(op) + op.kind.written_bytes(op) for op in update(trace.parameters, optimizer))
    assert sum(read + written for _, _, read, written in updates(trace)) == pytest.approx(derived, rel=0.1)


def test_optimizer_state_is_named_by_its_parameter(capture: Capture) -> None:
    trace = capture(two_layers, (4,), optimizer="adam")
    lerp = next(op for op in trace.ops if op.phase is Phase.UPDATE)
    assert {"exp_avg:0.weight", "grad:0.weight"} <= {t.name for t in lerp.inputs}
    assert {t.name for t in lerp.outputs} == {f"exp_avg:{p.name}" for p in trace.parameters}


@pytest.mark.parametrize(("optimizer", "style"), [("lamb", "foreach"), ("adam", "fused"), ("momentum", "loop")])
def test_what_torch_does_not_run_on_meta_is_derived(capture: Capture, optimizer: str, style: str) -> None:
    trace = capture(two_layers, (4,), optimizer=optimizer, update_style=style)
    assert [op for op in trace.ops if op.phase is Phase.UPDATE] == list(update(trace.parameters, optimizer, style))


def test_without_an_optimizer_nothing_is_updated(capture: Capture) -> None:
    assert not updates(capture(two_layers, (4,), optimizer="none"))


@pytest.mark.parametrize(
    ("mode", "phases"),
    [
        ("forward", {Phase.FORWARD}),
        ("forward_backward", {Phase.FORWARD, Phase.BACKWARD}),
        ("training", {Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE}),
    ],
)
def test_a_mode_runs_its_phases(capture: Capture, mode: str, phases: set[Phase]) -> None:
    assert {op.phase for op in capture(two_layers, (4,), mode=mode).ops} == phases


def test_without_a_loss_backward_begins_at_the_outputs(capture: Capture) -> None:
    ops = capture(two_layers, (4,), mode="forward_backward", with_loss=False).ops
    assert not any(isinstance(op.kind, Loss) for op in ops)
    first = next(op for op in ops if op.phase is Phase.BACKWARD)
    assert isinstance(first.kind, Matmul)


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        ((10,), ["softmax", "loss"]),
        ((7, 10), ["softmax", "loss"]),
        ((10, 4, 4), ["softmax", "loss"]),
        ((1,), ["loss"]),
        ((3, 2, 4, 5), ["reduce"]),
    ],
)
def test_the_loss_follows_the_shape_of_the_output(capture: Capture, shape: tuple[int, ...], kinds: list[str]) -> None:
    class Shaped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.empty(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    ops = capture(Shaped, shape, mode="forward_backward").ops
    assert [op.kind.label for op in ops if op.layer == "loss" and op.phase is Phase.FORWARD] == kinds


class Heads(nn.Module):
    def __init__(self, result: str) -> None:
        super().__init__()
        self.body, self.result = nn.Linear(4, 3), result

    def forward(self, x: torch.Tensor) -> Any:
        y = self.body(x)
        results: dict[str, Any] = {
            "mapping": {"out": y, "aux": y * 2},
            "own loss": {"loss": y.sum(), "logits": y},
            "tuple": (y, y.detach()),
            "nothing": {"tokens": x.long()},
        }
        return results[self.result]


@pytest.mark.parametrize(("result", "losses"), [("mapping", 2), ("own loss", 0), ("tuple", 1), ("nothing", 0)])
def test_mappings_and_tuples_of_outputs_have_losses(capture: Capture, result: str, losses: int) -> None:
    ops = capture(lambda: Heads(result), (4,), mode="forward_backward").ops
    assert sum(isinstance(op.kind, Loss) and op.phase is Phase.FORWARD for op in ops) == losses
    assert any(op.phase is Phase.BACKWARD for op in ops) == (result != "nothing")


def test_a_loss_can_be_given(capture: Capture) -> None:
    with torch.device("meta"):
        module = two_layers()
    model = from_workload(Workload(module, inputs=(4,), loss=lambda y: F.mse_loss(y, torch.empty_like(y))))
    ops = model.trace(Recipe(2, mode="forward_backward")).ops
    assert [op.kind for op in ops if isinstance(op.kind, Loss)] == [Loss("mse"), Loss("mse")]


# ---- frozen, tied, checkpointed -----------------------------------------------------------------


def test_nothing_is_computed_behind_the_first_trained_parameter(capture: Capture) -> None:
    """Of the backward pass only the last layer's weight and bias gradient are left."""
    trace = capture(two_layers, (4,), freeze=("0.*",), optimizer="sgd")
    back = [op for op in trace.ops if op.phase is Phase.BACKWARD and op.layer != "loss"]
    assert [op.output.name for op in back] == ["grad:2.weight", "grad:2.bias"]
    assert [p.trainable for p in trace.parameters] == [False, False, True, True]
    assert len(next(op for op in trace.ops if op.phase is Phase.UPDATE).outputs) == 2


def test_a_pattern_that_freezes_nothing_is_refused(capture: Capture) -> None:
    with pytest.raises(BadInput, match=r"`freeze` pattern 'layer9\.\*' matches no parameter"):
        capture(two_layers, (4,), freeze=("layer9.*",))


def test_freezing_leaves_the_module_as_it_was() -> None:
    module = two_layers()
    model = from_workload(Workload(module, inputs=(4,)))
    model.trace(Recipe(2, freeze=("0.*",)))
    assert all(p.requires_grad for p in model.module.parameters())


def test_with_everything_frozen_there_is_no_backward(capture: Capture) -> None:
    assert {op.phase for op in capture(two_layers, (4,), freeze=("*",)).ops} == {Phase.FORWARD}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.table(ids))
        return y


def test_a_shared_parameter_is_counted_once_and_its_two_gradients_are_summed(capture: Capture) -> None:
    trace = capture(Tied, (5,))
    assert [p.name for p in trace.parameters] == ["table.weight"]
    product, total = (op for op in trace.ops if op.phase is Phase.BACKWARD and op.output.name == "grad:table.weight")
    assert total.kind == Elementwise("add")
    assert {t.name for t in total.inputs} == {"grad:table.weight", "grad:table.weight+2"}  # the first is added to
    assert product.gradient is Gradient.WEIGHTS


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.into = nn.Linear(32, 32)
        self.body = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.into(x)
        if self.reentrant is None:
            return self.body(y)  # type: ignore[no-any-return]
        return checkpoint(self.body, y, use_reentrant=self.reentrant)  # type: ignore[no-any-return]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_runs_the_forward_ops_again_inside_backward(capture: Capture, reentrant: bool) -> None:
    plain = capture(lambda: Checkpointed(None), (10, 32), mode="forward_backward")
    again = capture(lambda: Checkpointed(reentrant), (10, 32), mode="forward_backward")
    body = sum(
        op.kind.flops(op)
        for op in plain.ops
        if op.phase is Phase.FORWARD and op.layer.startswith("body") and isinstance(op.kind, Matmul | Attention)
    )
    assert again.flops["forward"] == plain.flops["forward"]
    assert again.flops["backward"] == pytest.approx(plain.flops["backward"] + body)
    rerun = next(op for op in again.ops if isinstance(op.kind, Attention) and op.phase is Phase.BACKWARD)
    assert rerun.layer == "body.self_attn"
    assert not rerun.is_gradient


class Doubling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0].sigmoid()


def test_a_function_of_the_users_own_runs_its_own_backward(capture: Capture) -> None:
    class Custom(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = Doubling.apply(self.layer(x))  # type: ignore[no-untyped-call]
            return y

    ops = capture(Custom, (4,), mode="forward_backward").ops
    functions = [op.kind.function for op in ops if isinstance(op.kind, Elementwise)]
    assert functions == ["exp", "sigmoid"]


def test_a_sum_of_two_gradients_is_made_in_place(capture: Capture) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into, self.layer = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.into(x)
            return y + self.layer(y)  # type: ignore[no-any-return]

    ops = capture(Residual, (4,), mode="forward_backward").ops
    total = next(op for op in ops if op.kind == Elementwise("add") and op.phase is Phase.BACKWARD)
    assert total.output.name in [t.name for t in total.inputs]


# ---- precision, layout --------------------------------------------------------------------------


def test_under_autocast_products_run_in_half_and_gradients_come_back_to_float32(capture: Capture) -> None:
    ops = capture(two_layers, (4,), precision="amp_fp16").ops
    assert {op.dtype for op in ops if isinstance(op.kind, Matmul)} == {DType.FLOAT16}
    assert {op.dtype for op in ops if isinstance(op.kind, OptimizerUpdate | Loss)} == {DType.FLOAT32}
    made = {t.name: t.dtype for op in ops if op.phase is Phase.BACKWARD for t in op.outputs}
    assert {made[f"grad:{name}"] for name in ("0.weight", "0.bias", "2.weight", "2.bias")} == {DType.FLOAT32}


def test_noise_is_made_in_the_dtype_of_the_data(capture: Capture) -> None:
    """Stochastic depth draws its mask in the dtype of what it drops, so dropping does not widen it."""

    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.layer(x)
            noise = torch.empty((y.shape[0], 1), dtype=y.dtype, device=y.device).bernoulli_(0.9).div_(0.9)
            dropped: torch.Tensor = y * noise
            return dropped

    ops = capture(Dropping, (4,), precision="amp_fp16", mode="forward").ops
    assert ops[-1].kind == Elementwise("mul")
    assert ops[-1].output.dtype is DType.FLOAT16


def test_a_bias_added_by_a_kernel_of_its_own_is_added_in_half(capture: Capture) -> None:
    """Autocast sees the whole linear layer; on tokens that do not lie in a row it runs as a product and a sum."""
    ops = capture(Transposed, (6, 4), precision="amp_fp16", mode="forward").ops
    total = next(op for op in ops if op.kind == Elementwise("add"))
    assert {t.dtype for t in (*total.inputs, *total.outputs)} == {DType.FLOAT16}


class Transposed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x.transpose(0, 1))
        return y


def test_a_gradient_scaler_is_one_more_pass_over_the_gradients() -> None:
    with torch.device("meta"):
        module = two_layers()
    model = from_workload(Workload(module, inputs=(4,)), grad_scaler=True)
    recipe = Recipe(2, precision="amp_fp16")
    first = next(op for op in model.trace(recipe).ops if op.phase is Phase.UPDATE)
    assert first.name == "grad_scaler.unscale"
    assert len(first.inputs) == 4
    assert "grad_scaler.unscale" not in [op.name for op in model.trace(Recipe(2, precision="amp_bf16")).ops]


def test_channels_last_needs_no_other_ops_in_a_plain_network(capture: Capture) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    plain, last = (capture(make, (3, 8, 8), channels_last=flag) for flag in (False, True))
    assert [op.kind for op in plain.ops] == [op.kind for op in last.ops]


def test_the_layout_of_one_recipe_does_not_stay_for_the_next() -> None:
    with torch.device("meta"):
        module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten())
    model = from_workload(Workload(module, inputs=(3, 8, 8)))
    model.trace(Recipe(2, channels_last=True))
    assert model.module[0].weight.is_contiguous(memory_format=torch.channels_last)  # type: ignore[index]
    model.trace(Recipe(2))
    assert model.module[0].weight.is_contiguous()  # type: ignore[index]


def test_a_bias_gradient_is_a_sum(capture: Capture) -> None:
    ops = capture(two_layers, (4,)).ops
    bias = next(op for op in ops if op.output.name == "grad:0.bias")
    assert (bias.kind, bias.gradient) == (Reduce("sum"), Gradient.WEIGHTS)
