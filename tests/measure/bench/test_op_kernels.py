from random import Random

import pytest
import torch
from tests.every import every

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Op
from epochcast.describe.graph.op_kinds import OptimizerUpdate
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput
from epochcast.measure.bench.op_kernels import kernel, reduced_axes
from epochcast.measure.bench.ops_bench import operands
from epochcast.measure.bench.random_shapes import LAYERS, OpLimits, draw, forward_and_backward


def results(op: Op) -> list[torch.Tensor]:
    with torch.no_grad():
        made = kernel(op.kind, op)(operands(op, op.inputs, "cpu"), operands(op, op.weights, "cpu"))
    pieces = list(made) if isinstance(made, list | tuple) else [made]
    return [piece for piece in pieces if isinstance(piece, torch.Tensor)]


def small_ops(name: str, seeds: int) -> list[Op]:
    found = [op for seed in range(seeds) for op in LAYERS[name][1](Random(seed), Builder(name, 2))]
    return [op for op in found if op.work.flops < 1e8 and op.work.read_bytes + op.work.written_bytes < 2**24]


@every("name", LAYERS)
def test_a_kernel_makes_what_its_op_says(name: str) -> None:
    ops = small_ops(name, 12)
    assert ops
    for op in ops:
        made = results(op)
        if not isinstance(op.kind, OptimizerUpdate):  # works in place
            assert made[0].numel() == op.output.elements, op


def test_kernels_run_in_half_precision_too() -> None:
    random, failed = Random(3), []
    for _ in range(60):
        for op in draw(random, OpLimits(1e7, 2**22), DType.BFLOAT16):
            try:
                results(op)
            except RuntimeError as problem:
                failed.append((op.name, str(problem)))
    assert failed == []


# A gradient asked for alone is the gradient autograd gives.
def test_gradients_of_a_convolution_are_autograds() -> None:
    b = Builder("conv", 2)
    b.conv(b.input("x", (4, 9, 9)), 6, 3, stride=2, padding=1, bias=False, name="conv")
    _, data, weights = forward_and_backward(tuple(b.ops))
    x, w = torch.randn(2, 4, 9, 9, requires_grad=True), torch.randn(6, 4, 3, 3, requires_grad=True)
    y = torch.nn.functional.conv2d(x, w, stride=2, padding=1)
    arriving = torch.randn_like(y)
    y.backward(arriving)  # type: ignore[no-untyped-call]
    assert x.grad is not None and w.grad is not None
    with torch.no_grad():
        got_x = kernel(data.kind, data)([arriving], [w])
        got_w = kernel(weights.kind, weights)([arriving, x], [])
    assert isinstance(got_x, tuple) and isinstance(got_w, tuple)
    torch.testing.assert_close(got_x[0], x.grad)
    torch.testing.assert_close(got_w[1], w.grad)


def test_a_linear_layer_adds_its_bias() -> None:
    b = Builder("linear", 3)
    b.linear(b.input("x", (5,)), 4, name="fc")
    x, w, bias = torch.randn(3, 5), torch.randn(4, 5), torch.randn(4)
    made = kernel(b.ops[0].kind, b.ops[0])([x], [w, bias])
    assert isinstance(made, torch.Tensor)
    torch.testing.assert_close(made, torch.nn.functional.linear(x, w, bias))


def test_what_a_reduction_leaves_out_is_found_by_shape() -> None:
    assert reduced_axes((2, 3, 7, 7), (2, 3)) == [2, 3]
    assert reduced_axes((2, 3, 7, 7), (3,)) == [0, 2, 3]
    assert reduced_axes((2, 9, 5), (5,)) == [0, 1]
    assert reduced_axes((2, 9, 5), (2, 5)) == [1]
    assert reduced_axes((2, 9, 5), (2, 1, 5)) == [1]
    assert reduced_axes((2, 9), (1,)) == [0, 1]


def test_an_op_without_a_kernel_is_refused_by_name() -> None:
    b = Builder("odd", 1)
    b.opaque("my::op", [b.input("x", (3,))], [(1, 3)])
    with pytest.raises(BadInput, match="no kernel to measure for opaque"):
        kernel(b.ops[0].kind, b.ops[0])
