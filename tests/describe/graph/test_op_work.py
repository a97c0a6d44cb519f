"""Flops and bytes of every kind, by hand. Small primes, so that a wrong factor shows."""

from math import prod

import pytest

from epochcast.describe.graph.op import Gradient, Op, Phase
from epochcast.describe.graph.op_kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    HostLoop,
    Kind,
    Loss,
    Matmul,
    Norm,
    Opaque,
    OptimizerUpdate,
    Pool,
    Recurrent,
    Reduce,
    Softmax,
    View,
)
from epochcast.describe.graph.op_work import OpClass, OpWork
from epochcast.describe.graph.tensor import DType, Tensor


def tensor(*shape: int, dtype: DType = DType.FLOAT32, name: str = "") -> Tensor:
    return Tensor(shape, dtype, name)


def made(
    kind: Kind,
    inputs: list[Tensor],
    outputs: list[Tensor],
    weights: tuple[Tensor, ...] = (),
    phase: Phase = Phase.FORWARD,
    gradient: Gradient = Gradient.NONE,
) -> Op:
    return Op("op", kind, tuple(inputs), tuple(outputs), weights, phase, "layer", gradient)


def backward(
    kind: Kind,
    inputs: list[Tensor],
    outputs: list[Tensor],
    weights: tuple[Tensor, ...] = (),
    gradient: Gradient = Gradient.DATA,
) -> Op:
    return made(kind, inputs, outputs, weights, Phase.BACKWARD, gradient)


# 2 images of 3 channels 9x9, 5 filters 3x3 with stride 2 and padding 1: 5x5 out.
# 2 · (2·5·5·5) outputs · (3·9) taps = 13,500 flops, in every direction.
X, W, Y = tensor(2, 3, 9, 9), tensor(5, 3, 3, 3), tensor(2, 5, 5, 5)
STRIDED = Conv(stride=(2, 2), padding=(1, 1))
FORWARD = made(STRIDED, [X], [Y], (W, tensor(5)))
DATA = backward(STRIDED, [Y], [X], (W,))
WEIGHTS = backward(STRIDED, [Y, X], [W], gradient=Gradient.WEIGHTS)


@pytest.mark.parametrize("op", [FORWARD, DATA, WEIGHTS], ids=["forward", "data", "weights"])
def test_a_convolution_costs_the_same_flops_in_every_direction(op: Op) -> None:
    assert op.work.flops == 2 * (2 * 5 * 5 * 5) * (3 * 9) == 13_500


def test_a_convolution_reads_input_weight_and_bias_and_writes_its_output() -> None:
    assert FORWARD.work.read_bytes == 4 * (2 * 3 * 81 + 5 * 27 + 5)
    assert FORWARD.work.written_bytes == 4 * 2 * 5 * 25


@pytest.mark.parametrize(
    ("op", "shape"),
    [(FORWARD, (2 * 25, 5, 27, 1)), (DATA, (2 * 81, 3, 45, 1)), (WEIGHTS, (5, 27, 2 * 25, 1))],
    ids=["forward", "data", "weights"],
)
def test_a_convolution_is_an_implicit_matrix_product(op: Op, shape: tuple[int, ...]) -> None:
    assert tuple(op.kind.matrix(op)) == shape


def test_a_three_dimensional_convolution_counts_three_kernel_sides() -> None:
    kind = Conv((1, 1, 1), (0, 0, 0), (1, 1, 1))
    op = made(kind, [tensor(2, 3, 5, 5, 5)], [tensor(2, 7, 3, 3, 3)], (tensor(7, 3, 3, 3, 3),))
    assert op.work.flops == 2 * (2 * 7 * 27) * (3 * 27)


def test_a_convolution_of_g_groups_costs_a_gth() -> None:
    grouped = made(Conv(groups=3), [tensor(2, 6, 5, 5)], [tensor(2, 9, 3, 3)], (tensor(9, 2, 3, 3),))
    assert grouped.work.flops == 2 * (2 * 9 * 9) * (2 * 9)
    assert tuple(grouped.kind.matrix(grouped)) == (2 * 9, 3, 18, 3)
    assert grouped.op_class is OpClass.CONV_GROUPED


def test_a_depthwise_convolution_multiplies_each_channel_by_its_own_filter() -> None:
    depthwise = made(Conv(groups=6), [tensor(2, 6, 5, 5)], [tensor(2, 6, 3, 3)], (tensor(6, 1, 3, 3),))
    assert depthwise.work.flops == 2 * (2 * 6 * 9) * 9
    assert depthwise.op_class is OpClass.CONV_DEPTHWISE


# 2 images of 3 channels 4x4 up to 5 channels 8x8 by 2x2 with stride 2: every input element meets 5·4 taps.
UP = Conv((2, 2), (0, 0), (1, 1), transposed=True)
SMALL, LARGE, UP_WEIGHT = tensor(2, 3, 4, 4), tensor(2, 5, 8, 8), tensor(3, 5, 2, 2)


@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (made(UP, [SMALL], [LARGE], (UP_WEIGHT,)), (2 * 16, 20, 3, 1)),
        (backward(UP, [LARGE], [SMALL], (UP_WEIGHT,)), (2 * 16, 3, 20, 1)),
        (backward(UP, [LARGE, SMALL], [UP_WEIGHT], gradient=Gradient.WEIGHTS), (3, 20, 2 * 16, 1)),
    ],
    ids=["forward", "data", "weights"],
)
def test_a_transposed_convolution_is_counted_at_its_input(op: Op, shape: tuple[int, ...]) -> None:
    assert op.work.flops == 2 * (2 * 16 * 3) * (5 * 4) == 2 * prod(shape)
    assert tuple(op.kind.matrix(op)) == shape
    assert op.op_class is OpClass.CONV_TRANSPOSED


def test_a_one_by_one_convolution_is_pointwise() -> None:
    op = made(Conv(), [tensor(2, 3, 4, 4)], [tensor(2, 5, 4, 4)], (tensor(5, 3, 1, 1),))
    assert op.op_class is OpClass.CONV_POINTWISE


def test_a_linear_layer_multiplies_every_token() -> None:
    op = made(Matmul(transpose_b=True), [tensor(2, 7, 3)], [tensor(2, 7, 5)], (tensor(5, 3), tensor(5)))
    assert op.work == OpWork(2 * 14 * 3 * 5, 4 * (42 + 15 + 5), 4 * 70, 14, 5, 3, 1, 1)
    assert op.op_class is OpClass.LINEAR


def test_a_batched_product_is_many_small_ones_even_for_one_sample() -> None:
    op = made(Matmul(), [tensor(2, 3, 5, 7), tensor(2, 3, 7, 11)], [tensor(2, 3, 5, 11)])
    assert tuple(op.kind.matrix(op)) == (5, 11, 7, 6)
    assert op.work.flops == 2 * 6 * 5 * 7 * 11
    one = made(Matmul(), [tensor(1, 5, 7), tensor(1, 7, 11)], [tensor(1, 5, 11)])
    assert one.op_class is OpClass.BATCHED_MATMUL


# 2 samples, 3 heads, 5 queries, 7 keys, width 11: each product is 2·2·3·5·7·11 = 4,620 flops.
Q, K, V, MIXED = tensor(2, 3, 5, 11), tensor(2, 3, 7, 11), tensor(2, 3, 7, 11), tensor(2, 3, 5, 11)


def test_attention_is_two_products_forward_and_five_backward() -> None:
    forward = made(Attention(), [Q, K, V], [MIXED])
    assert forward.work.flops == 2 * 4_620
    assert backward(Attention(), [MIXED, Q, K, V, MIXED], [Q, K, V]).work.flops == 5 * 4_620


def test_a_window_is_skipped_unless_a_mask_hides_the_other_keys() -> None:
    """3 of 7 keys: 3 · 2·2·3·5·11 flops a product; a kernel that reads a mask multiplies all."""
    windowed, mask = Attention(window=3), tensor(2, 1, 5, 7)
    assert made(windowed, [Q, K, V], [MIXED]).work.flops == 2 * 1_980
    assert backward(windowed, [MIXED, Q, K, V, MIXED], [Q, K, V]).work.flops == 5 * 1_980
    assert made(windowed, [Q, K, V, mask], [MIXED]).work.flops == 2 * 4_620
    assert backward(windowed, [MIXED, Q, K, V, MIXED, mask], [Q, K, V]).work.flops == 5 * 4_620


def test_fused_attention_keeps_its_scores_off_memory() -> None:
    op = made(Attention(), [Q, K, V], [MIXED])
    assert op.work.read_bytes + op.work.written_bytes == 4 * 2 * 3 * 11 * (5 + 7 + 7 + 5)


def test_shared_keys_are_read_once_and_multiplied_by_every_head() -> None:
    shared = tensor(2, 1, 7, 11)
    op = made(Attention(), [Q, shared, shared], [MIXED])
    assert op.work.flops == 2 * 4_620
    assert op.work.read_bytes == 4 * (2 * 3 * 5 * 11 + 2 * (2 * 7 * 11))


# LSTM: 4 gates, input 3, hidden 5, 2 samples of 7 steps: 4·5·(3 + 5) weights, 2 flops per weight, sample and step.
CELL = Recurrent("lstm", 5)
CELL_WEIGHTS = (tensor(20, 3), tensor(20, 5), tensor(20), tensor(20))
SEQUENCE, STATES = tensor(2, 7, 3), tensor(2, 7, 5)


def test_an_lstm_multiplies_every_weight_at_every_step() -> None:
    op = made(CELL, [SEQUENCE], [STATES], CELL_WEIGHTS)
    assert op.work.flops == 2 * 2 * 7 * (20 * 8) == 2 * prod(op.kind.matrix(op))
    assert op.work.launches == 7 + 1


def test_an_lstm_costs_twice_its_forward_backward_and_once_where_it_is_frozen() -> None:
    inputs, outputs = [STATES, SEQUENCE, STATES], [SEQUENCE, *CELL_WEIGHTS]
    forward = made(CELL, [SEQUENCE], [STATES], CELL_WEIGHTS).work.flops
    assert backward(CELL, inputs, outputs, CELL_WEIGHTS, Gradient.BOTH).work.flops == 2 * forward
    assert backward(CELL, inputs, [SEQUENCE], CELL_WEIGHTS).work.flops == forward


@pytest.mark.parametrize(("cell", "gates"), [("lstm", 4), ("gru", 3), ("rnn", 1)])
def test_a_cell_has_its_gates(cell: str, gates: int) -> None:
    assert Recurrent(cell).gates == gates


def test_a_norm_reads_and_writes_its_data_once() -> None:
    op = made(Norm(), [tensor(2, 3, 5, 5)], [tensor(2, 3, 5, 5)], (tensor(3), tensor(3)))
    assert (op.work.read_bytes, op.work.written_bytes) == (4 * (150 + 6), 4 * 150)
    assert op.work.flops == 7 * 150
    assert (op.work.m, op.work.n) == (3, 50)


def test_layer_norm_rows_are_tokens() -> None:
    op = made(Norm("layer"), [tensor(2, 7, 5)], [tensor(2, 7, 5)])
    assert (op.work.m, op.work.n) == (14, 5)


def test_max_pooling_compares_every_element_of_every_window() -> None:
    op = made(Pool("max", (3, 3)), [tensor(2, 3, 9, 9)], [tensor(2, 3, 4, 4), tensor(2, 3, 4, 4, dtype=DType.INT64)])
    assert op.work.flops == 9 * 2 * 3 * 16
    assert op.work.written_bytes == 2 * 3 * 16 * (4 + 8)


def test_a_global_pool_sees_each_input_once() -> None:
    assert made(Pool("average", (0, 0)), [tensor(2, 3, 9, 9)], [tensor(2, 3, 1, 1)]).work.flops == 2 * 3 * 81


def test_softmax_is_five_operations_per_element() -> None:
    op = made(Softmax(), [tensor(2, 7)], [tensor(2, 7)])
    assert op.work == OpWork(5 * 14, 56, 56, 2, 7, 1, 1, 1)


def test_an_embedding_moves_its_rows_not_its_table() -> None:
    ids, rows = tensor(2, 3, dtype=DType.INT64), tensor(2, 3, 5)
    op = made(Embedding(), [ids], [rows], (tensor(1000, 5),))
    assert (op.work.read_bytes, op.work.written_bytes) == (2 * 3 * 8 + 4 * 30, 4 * 30)


def test_an_embedding_gradient_writes_the_whole_table() -> None:
    ids, rows = tensor(2, 3, dtype=DType.INT64), tensor(2, 3, 5)
    op = backward(Embedding(), [rows, ids], [tensor(1000, 5)], gradient=Gradient.WEIGHTS)
    assert op.work.written_bytes == 4 * (5000 + 30)
    assert op.work.read_bytes == 2 * 3 * 8 + 2 * 4 * 30


def test_a_gather_reads_what_it_takes() -> None:
    op = made(Gather(), [tensor(1000), tensor(3, dtype=DType.INT64)], [tensor(3)])
    assert op.work.read_bytes == 3 * 4 + 3 * 8


def test_elementwise_reads_every_operand_and_a_half_is_two_bytes() -> None:
    half = tensor(2, 3, dtype=DType.FLOAT16)
    op = made(Elementwise("add"), [half, half], [half])
    assert op.work[:3] == (6, 24, 12)


def test_a_reduction_adds_every_element_of_all_its_inputs() -> None:
    op = made(Reduce("norm"), [tensor(5), tensor(7)], [tensor(1), tensor(1)])
    assert op.work.flops == 12


@pytest.mark.parametrize("kind", [Copy(), Opaque("mystery")])
def test_what_only_moves_or_is_unknown_has_bytes_but_no_flops(kind: Kind) -> None:
    op = made(kind, [tensor(3)], [tensor(3)])
    assert op.work[:3] == (0, 12, 12)


def test_a_host_loop_starts_its_kernels_for_every_sample() -> None:
    loop = HostLoop(once=5, per_sample=3)
    assert [made(loop, [tensor(n, 7)], [tensor(n, 1)]).work.launches for n in (1, 4)] == [5 + 3, 5 + 4 * 3]
    assert loop.is_awaited and not HostLoop(reads_back=False).is_awaited and not Copy().is_awaited
    assert not list(loop.gradients(made(loop, [tensor(2, 7)], [tensor(2, 1)]), frozenset({"x"})))


def test_a_view_is_free() -> None:
    op = made(View(), [tensor(6)], [tensor(2, 3)])
    assert (op.work[:3], op.work.launches) == ((0, 0, 0), 0)


def test_picking_the_target_costs_one_operation_per_target() -> None:
    assert made(Loss("nll"), [tensor(5, 10), tensor(5, dtype=DType.INT64)], [tensor(1)]).work.flops == 5


def foreach(tensors: int, elements: int, style: str = "foreach") -> Op:
    parameters = [tensor(elements, name=f"p{i}") for i in range(tensors)]
    gradients = [tensor(elements, name=f"g{i}") for i in range(tensors)]
    return made(OptimizerUpdate(style=style, flops_per_element=2), [*parameters, *gradients], parameters)


# Two lists of tensors: 64 tensors per launch, 320 blocks of 65,536 elements per launch.
@pytest.mark.parametrize(
    ("tensors", "elements", "launches"),
    [
        (64, 100, 1),
        (65, 100, 2),
        (1, 65536 * 320, 1),
        (1, 65536 * 320 + 1, 2),
        (2, 65536 * 200, 2),
        (10, 65536 * 32, 1),
    ],
)
def test_a_multi_tensor_kernel_starts_when_it_is_full(tensors: int, elements: int, launches: int) -> None:
    assert foreach(tensors, elements).work.launches == launches


def test_a_loop_starts_a_kernel_per_tensor() -> None:
    assert foreach(65, 100, "loop").work.launches == 65


def test_an_update_reads_and_writes_every_parameter() -> None:
    assert foreach(3, 7).work[:3] == (2 * 21, 4 * 42, 4 * 21)
