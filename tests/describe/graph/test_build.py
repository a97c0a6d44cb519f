from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Attention, Matmul, Pool
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput


def builder() -> Builder:
    return Builder("net", 2)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (2, 8, 30, 30)),
        ({"padding": 1}, (2, 8, 32, 32)),
        ({"stride": 2, "padding": 1}, (2, 8, 16, 16)),
        ({"dilation": 2}, (2, 8, 28, 28)),
        ({"stride": (2, 1), "padding": (0, 1)}, (2, 8, 15, 32)),
    ],
)
def test_a_convolution_of_32_pixels_by_hand(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    b = builder()
    assert b.conv(b.input("x", (3, 32, 32)), 8, 3, **options).shape == shape


@given(size=st.integers(1, 40), kernel=st.integers(1, 5), stride=st.integers(1, 3))
def test_a_transposed_convolution_undoes_the_size_of_a_convolution(size: int, kernel: int, stride: int) -> None:
    b = builder()
    up = b.conv_transposed(b.input("x", (3, size)), 3, kernel, stride=stride, name="up")
    assert b.conv(up, 3, kernel, stride=stride, name="down").shape == (2, 3, size)


# 32 pixels, window 3, stride 2: ⌊29/2⌋+1 = 15, rounded up 16; the window that starts in the padding does not count.
@pytest.mark.parametrize(
    ("padding", "ceil_mode", "size"), [(0, False, 15), (0, True, 16), (1, False, 16), (1, True, 17)]
)
def test_pooling_by_hand(padding: int, ceil_mode: bool, size: int) -> None:
    b = builder()
    y = b.max_pool(b.input("x", (3, 32, 32)), 3, 2, padding, ceil_mode=ceil_mode)
    assert y.shape == (2, 3, size, size)
    assert [t.dtype for t in b.ops[-1].outputs] == [DType.FLOAT32, DType.INT64]


def test_a_last_window_must_start_inside_the_input() -> None:
    b = builder()
    assert b.max_pool(b.input("x", (3, 3, 3)), 1, 2, ceil_mode=True).shape == (2, 3, 2, 2)
    assert b.max_pool(b.input("y", (3, 4, 4)), 1, 3, ceil_mode=True).shape == (2, 3, 2, 2)


def test_an_adaptive_pool_makes_the_size_it_is_told() -> None:
    b = builder()
    assert b.adaptive_average_pool(b.input("x", (3, 9, 7)), 6).shape == (2, 3, 6, 6)
    assert b.ops[-1].kind == Pool("average", (0, 0), (0, 0), (0, 0))


def test_parameters_by_hand() -> None:
    b = builder()
    x = b.input("x", (6, 8, 8))
    b.conv(x, 9, 3, groups=3, name="conv")  # 9·2·9 + 9
    b.batch_norm(x, name="bn")  # 2·6
    y = b.linear(b.flatten(x), 5, name="fc")  # 384·5 + 5
    b.recurrent(b.view(y, (2, 1, 5)), 7, name="lstm", directions=2)  # 2·(28·5 + 28·7 + 2·28)
    counts: dict[str, int] = {}
    for parameter in b.parameters.values():
        counts[parameter.layer] = counts.get(parameter.layer, 0) + parameter.elements
    assert counts == {"conv": 171, "bn": 12, "fc": 1925, "lstm": 2 * (140 + 196 + 56)}


def test_scopes_name_layers_and_layers_name_parameters() -> None:
    b = builder()
    with b.scope("stage1"), b.scope("block2"):
        b.linear(b.input("x", (3,)), 4, name="fc")
    assert list(b.parameters) == ["stage1.block2.fc.weight", "stage1.block2.fc.bias"]
    assert b.ops[0].layer == "stage1.block2.fc"


def test_a_layer_asked_for_twice_by_name_shares_its_weights() -> None:
    b = builder()
    x = b.input("x", (4,))
    b.linear(b.linear(x, 4, name="fc"), 4, name="fc")
    assert len(b.parameters) == 2
    assert len({op.name for op in b.ops}) == 2


def test_unnamed_layers_have_weights_of_their_own() -> None:
    b = builder()
    b.linear(b.linear(b.input("x", (4,)), 4), 4)
    assert list(b.parameters) == ["linear.weight", "linear.bias", "linear1.weight", "linear1.bias"]


def test_attention_takes_fewer_heads_of_keys_than_of_queries() -> None:
    b = builder()
    q, kv = b.input("q", (8, 5, 16)), b.input("kv", (2, 7, 16))
    assert b.attention(q, kv, kv, causal=True).shape == (2, 8, 5, 16)
    assert b.ops[-1].kind == Attention(causal=True)


def test_a_product_of_computed_tensors_by_hand() -> None:
    b = builder()
    a, c = b.input("a", (3, 5, 7)), b.input("c", (3, 11, 7))
    assert b.matmul(a, c, transpose_b=True).shape == (2, 3, 5, 11)
    assert b.ops[-1].kind == Matmul(transpose_b=True)


def test_shapes_are_broadcast_from_the_end() -> None:
    b = builder()
    x, row, column = b.input("x", (3, 4, 4)), b.constant("row", (1, 4)), b.constant("column", (4, 1))
    assert b.add(row, column).shape == (4, 4)
    assert b.mul(x, row).shape == (2, 3, 4, 4)


def test_a_split_is_of_equal_or_given_parts() -> None:
    b = builder()
    x = b.input("x", (4, 6))
    assert [t.shape for t in b.split(x, 3)] == [(2, 4, 2)] * 3
    assert [t.shape for t in b.split(x, [1, 3], axis=1)] == [(2, 1, 6), (2, 3, 6)]


def test_reductions_keep_or_drop_their_axes() -> None:
    b = builder()
    x = b.input("x", (3, 4, 5))
    assert b.reduce("mean", x, [-2, -1]).shape == (2, 3)
    assert b.reduce("mean", x, [2, 3], keep=True).shape == (2, 3, 1, 1)


def test_dropout_writes_a_mask() -> None:
    b = builder()
    b.dropout(b.input("x", (3,)))
    assert [t.dtype for t in b.ops[0].outputs] == [DType.FLOAT32, DType.BOOL]


# The messages a user meets.


def test_an_input_that_is_too_small_is_told_so() -> None:
    with pytest.raises(
        BadInput, match=r"vgg16: .* turns 512×1×1 into 512×0×0: the input is too small for this network"
    ):
        zoo_model("vgg16", (3, 16, 16)).graph(1)


def test_a_negative_batch_is_refused() -> None:
    with pytest.raises(BadInput, match="batch must be at least 1, got -3"):
        Builder("net", -3)


def test_groups_must_divide_the_channels() -> None:
    b = builder()
    x = b.input("x", (6, 8, 8))
    with pytest.raises(BadInput, match="net: conv has 4 groups, which do not divide 6 → 8 channels"):
        b.conv(x, 8, 3, groups=4)
    with pytest.raises(BadInput, match="net: up has 4 groups, which do not divide 6 → 8 channels"):
        b.conv_transposed(x, 8, 3, groups=4, name="up")


def test_branches_must_fit_where_they_meet() -> None:
    b = builder()
    one, other = b.input("one", (3, 8, 8)), b.input("other", (3, 7, 7))
    with pytest.raises(BadInput, match="net: join joins 3×8×8 and 3×7×7, which do not fit: use another input size"):
        b.concatenate([one, other], name="join")
    with pytest.raises(BadInput, match="net: add joins 3×8×8 and 3×7×7, which do not fit: use another input size"):
        b.add(one, other)


def test_a_shared_parameter_has_one_shape() -> None:
    b = builder()
    x = b.input("x", (4,))
    b.linear(x, 4, name="fc")
    with pytest.raises(BadInput, match=r"fc.weight is shared but has two shapes: \(4, 4\) and \(5, 4\)"):
        b.linear(x, 5, name="fc")


def test_sizes_have_as_many_numbers_as_there_are_dimensions() -> None:
    b = builder()
    with pytest.raises(BadInput, match=r"expected 2 sizes, got \(3, 3, 3\)"):
        b.conv(b.input("x", (3, 8, 8)), 4, (3, 3, 3))
