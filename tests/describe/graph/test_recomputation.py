"""What a compiled backward pass computes again, with bytes worked out by hand; and the traffic of a language model."""

from typing import Any

import numpy as np
import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import Tensor
from epochcast.describe.graph.trace import Trace, trace_from

BATCH, WIDTH, BYTES = 4, 8, 4
ACTIVATION = BATCH * WIDTH * BYTES


def step(*functions: str, mode: str = "forward_backward") -> Trace:
    """linear → functions one after another → linear"""

    def build(samples: int) -> Graph:
        builder = Builder("net", samples)
        hidden = builder.linear(builder.input("x", (WIDTH,)), WIDTH, bias=False)
        return builder.finish(builder.linear(_chained(builder, hidden, functions), WIDTH, bias=False))

    return trace_from(build, Recipe(BATCH, mode=mode, compile="inductor"))


def _chained(builder: Builder, x: Tensor, functions: tuple[str, ...]) -> Tensor:
    for function in functions:
        x = builder.dropout(x) if function == "dropout" else builder.elementwise(function, x)
    return x


def pointwise(trace: Trace) -> list[tuple[float, float]]:
    """Bytes read and written by the kernels that are no product."""
    columns = trace.columns
    return [(float(columns.read_bytes[i]), float(columns.written_bytes[i])) for i in np.flatnonzero(~columns.is_matrix)]


def test_intermediate_results_of_a_chain_are_computed_again_from_its_source() -> None:
    kernels = pointwise(step("tanh", "sigmoid", "tanh"))
    assert kernels[0] == (ACTIVATION, ACTIVATION)  # reads the product's result, writes what the next product reads
    # Reads the incoming gradient, the last result (in memory for the next product) and the source of the others.
    assert (3 * ACTIVATION, ACTIVATION) in kernels[1:]


def test_an_activation_in_place_is_not_computed_from_its_own_result() -> None:
    """Behind a normalisation, what the backward pass needs of it is copied before it is overwritten."""
    torch = pytest.importorskip("torch")

    class Residual(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Conv2d(8, 8, 1), torch.nn.Conv2d(8, 8, 1)
            self.norm, self.act = torch.nn.BatchNorm2d(8), torch.nn.SiLU(inplace=True)

        def forward(self, x: Any) -> Any:
            x = self.last(x)
            return self.last(self.act(self.norm(self.first(x))) + x)

    model = find_model(Residual(), (8, 32, 32))
    eager, compiled = (model.trace(Recipe(BATCH, compile=compiler)).columns for compiler in ("none", "inductor"))
    assert compiled.read_bytes.sum() < eager.read_bytes.sum()


def test_forward_alone_saves_nothing() -> None:
    assert pointwise(step("tanh", "sigmoid", "tanh", mode="forward")) == [(ACTIVATION, ACTIVATION)]


def test_what_dropout_drew_is_saved() -> None:
    """Behind dropout, results are kept: numbers are not drawn again for others than its mask."""
    forward = pointwise(step("tanh", "dropout", "tanh", "sigmoid", "tanh"))[0]
    assert forward[1] > ACTIVATION


def test_a_compiled_loss_reads_logits_twice_and_writes_their_gradient_once() -> None:
    trace = zoo_model("gpt2").trace(Recipe(2, precision="amp_bf16", compile="inductor"))
    logits_bytes = 2 * 1024 * 50257 * 2
    loss = [i for i, layer in enumerate(trace.layers) if layer == "loss"]
    assert float(trace.columns.bytes[loss].sum()) == pytest.approx(3 * logits_bytes, rel=0.01)
