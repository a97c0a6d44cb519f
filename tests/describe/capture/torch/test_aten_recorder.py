"""What is recorded of a call: its storages, its phase, its layer."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.op import Gradient, Phase
from epochcast.describe.graph.op_kinds import Conv, Elementwise, Embedding, Matmul, Norm, Opaque, Pool, Reduce
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

Capture = Callable[..., Trace]


class Viewed(nn.Module):
    """Views in front of, behind and inside a product; an in-place activation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x.reshape(-1, 6)).relu_()
        part: torch.Tensor = y.view(x.shape[0], -1)[:, :4]
        return part


def test_views_record_nothing_and_share_a_storage(capture: Capture) -> None:
    product, activation = capture(Viewed, (12,), mode="forward").ops
    assert isinstance(product.kind, Matmul)
    assert activation.kind == Elementwise("relu")
    assert activation.inputs[0].name == activation.output.name == product.output.name


def test_a_layer_is_the_module_that_ran_and_its_backward_ops_have_it_too(capture: Capture) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.Sequential(nn.BatchNorm2d(8), nn.ReLU()), nn.Flatten())

    ops = capture(make, (3, 8, 8), mode="forward_backward").ops
    layers = {(op.phase, type(op.kind)): op.layer for op in ops if op.layer != "loss"}
    assert layers[Phase.FORWARD, Conv] == layers[Phase.BACKWARD, Conv] == "0"
    assert layers[Phase.FORWARD, Norm] == layers[Phase.BACKWARD, Norm] == "1.0"
    assert layers[Phase.FORWARD, Elementwise] == layers[Phase.BACKWARD, Elementwise] == "1.1"


def test_the_loss_is_a_layer_of_its_own(capture: Capture) -> None:
    ops = capture(lambda: nn.Linear(3, 5), (3,), mode="forward_backward").ops
    assert [op.kind.label for op in ops if op.layer == "loss"] == ["softmax", "loss", "copy", "loss", "softmax"]


def test_a_convolution_goes_back_in_two_products_and_a_sum(capture: Capture) -> None:
    """x (2, 3, 8, 8), 4 kernels of 3x3: y is (2, 4, 6, 6); the first layer needs no data gradient."""

    def make() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, bias=False), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    ops = capture(make, (3, 8, 8), mode="forward_backward").ops
    back = [op for op in ops if op.phase is Phase.BACKWARD and op.layer in ("0", "1")]
    assert [(op.layer, op.gradient, op.output.shape) for op in back] == [
        ("1", Gradient.DATA, (2, 4, 6, 6)),
        ("1", Gradient.WEIGHTS, (4, 4, 3, 3)),
        ("0", Gradient.WEIGHTS, (4, 3, 3, 3)),
        ("0", Gradient.WEIGHTS, (4,)),
    ]
    assert [op.output.name for op in back[1:]] == ["grad:1.weight", "grad:0.weight", "grad:0.bias"]
    assert isinstance(back[-1].kind, Reduce)


def test_a_linear_layer_has_its_weight_and_bias_as_weights(capture: Capture) -> None:
    forward, *_ = capture(lambda: nn.Linear(3, 5), (7, 3)).ops
    assert forward.kind == Matmul(transpose_b=True)
    assert [w.shape for w in forward.weights] == [(5, 3), (5,)]
    assert [w.name for w in forward.weights] == ["weight", "bias"]


def test_an_embedding_moves_rows_and_its_gradient_is_a_whole_table(capture: Capture) -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.Embedding(100, 8), nn.Flatten(), nn.Linear(40, 2))

    ops = capture(make, (5,), mode="forward_backward").ops
    forward, backward = (op for op in ops if isinstance(op.kind, Embedding))
    assert (forward.inputs[0].shape, forward.output.shape) == ((2, 5), (2, 5, 8))
    assert (backward.gradient, backward.output.name, backward.output.shape) == (
        Gradient.WEIGHTS,
        "grad:0.weight",
        (100, 8),
    )


def test_max_pooling_knows_its_window(capture: Capture) -> None:
    ops = capture(lambda: nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Flatten()), (3, 8, 8), mode="forward").ops
    assert ops[0].kind == Pool("max", (3, 3), (2, 2), (1, 1))
    assert ops[0].output.shape == (2, 3, 4, 4)


class Determinant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 9)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.fft.fft(self.layer(x)).real.sum(-1, keepdim=True)
        return y


class Decomposition(nn.Module):
    def __init__(self, side: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, side * side)
        self.side = side

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = torch.linalg.svdvals(self.layer(x).view(-1, self.side, self.side))
        return values


def test_a_decomposition_starts_kernels_for_every_row(capture: Capture) -> None:
    def started(side: int) -> int:
        ops = capture(lambda: Decomposition(side), (4,), mode="forward").ops
        return next(op.work.launches for op in ops if isinstance(op.kind, Opaque))

    assert started(64) == 2 * started(32) > 64


def test_an_operator_without_a_rule_is_opaque_and_listed(capture: Capture) -> None:
    trace = capture(Determinant, (4,), mode="forward")
    opaque = next(op for op in trace.ops if isinstance(op.kind, Opaque))
    assert trace.opaque == ("aten._fft_r2c.default",)
    assert opaque.inputs[0].shape == (2, 9)


class Impatient(nn.Module):
    """Stops where the data says so."""

    def __init__(self, ask: str) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.ask = ask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.body(x)
        match self.ask:
            case "item":
                return y * y.sum().item()
            case "bool":
                return y if y.sum() > 0 else -y
            case "count":
                return y[: int((y > 0).sum())]
            case _:
                return y[y > 0]


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ("item", r"module 'body.0' reads a number of its data (.item()); 1 is assumed"),
        ("bool", "module 'body.0' asks its data whether a condition holds; False is assumed"),
    ],
)
def test_a_number_or_a_condition_of_the_data_is_assumed_and_said(capture: Capture, ask: str, says: str) -> None:
    assert says in capture(lambda: Wrapped(Impatient(ask)), (4,)).notes


@pytest.mark.parametrize("ask", ["count", "mask"])
def test_a_model_that_asks_for_values_is_refused_with_the_module_and_a_hint(capture: Capture, ask: str) -> None:
    with pytest.raises(BadInput, match=r"module 'body\.0' needs the values of a tensor") as caught:
        capture(lambda: Wrapped(Impatient(ask)), (4,))
    assert "example inputs with real values" in caught.value.__notes__[0]


class Wrapped(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(inner)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.body(x)
        return y


class HostTables(nn.Module):
    """Keeps a table as a plain attribute, on the host, and asks for values there."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.table = torch.ones(4, device="cpu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor(2.0, device="cpu").item()
        y: torch.Tensor = self.layer(x) * self.table * scale
        return y


def test_host_values_are_read_and_host_tables_are_moved(capture: Capture) -> None:
    ops = capture(HostTables, (4,), mode="forward").ops
    assert [op.kind.label for op in ops] == ["matmul", "elementwise", "elementwise"]
    assert ops[1].inputs[1].shape == (4,)


def test_two_captures_name_everything_alike() -> None:
    def names() -> list[str]:
        with torch.device("meta"):
            module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
        trace = from_workload(Workload(module, inputs=(3, 8, 8))).trace(Recipe(2, optimizer="adam"))
        return [t.name for op in trace.ops for t in (*op.inputs, *op.outputs, *op.weights)]

    assert names() == names()


def test_the_caller_keeps_its_hooks_and_dispatch_after_a_failure(capture: Capture) -> None:
    with pytest.raises(BadInput):
        capture(lambda: Wrapped(Impatient("count")), (4,))
    assert not torch.nn.modules.module._global_forward_pre_hooks
    assert torch.nn.functional.dropout(torch.ones(4), 0.5).shape == (4,)
