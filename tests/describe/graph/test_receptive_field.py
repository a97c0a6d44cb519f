import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.receptive_field import receptive_fields


def last_of_layer(model: str, input_shape: tuple[int, ...] | None = None) -> dict[str, tuple[int, ...] | None]:
    graph = zoo_model(model, input_shape).graph(1)
    fields = receptive_fields(graph)
    return {op.layer: fields[op.name] for op in graph.ops}


def last(b: Builder) -> tuple[int, ...] | None:
    graph = b.finish(b.ops[-1].output)
    return receptive_fields(graph)[graph.ops[-1].name]


@given(layers=st.integers(1, 8), kernel=st.integers(1, 7))
def test_n_layers_of_f_by_f_see_nf_minus_n_plus_1(layers: int, kernel: int) -> None:
    b = Builder("stack", 1)
    x = b.input("image", (3, 64, 64))
    for index in range(layers):
        x = b.conv(x, 3, kernel, name=f"conv{index}")
    assert last(b) == (layers * kernel - layers + 1,) * 2


@given(layers=st.integers(1, 4), dilation=st.integers(1, 4))
def test_dilation_spreads_the_taps(layers: int, dilation: int) -> None:
    b = Builder("dilated", 1)
    x = b.input("image", (3, 64, 64))
    for index in range(layers):
        x = b.conv(x, 3, 3, dilation=dilation, name=f"conv{index}")
    assert last(b) == (1 + 2 * dilation * layers,) * 2


# Simonyan & Zisserman's configuration D: 5, 6 after the first pool, 14, 16, 40, 44, 92, 100, 196, 212.
def test_vgg16_sees_212_pixels_at_its_last_pool() -> None:
    graph = zoo_model("vgg16").graph(1)
    fields = receptive_fields(graph)
    pools = [fields[op.name] for op in graph.ops if op.kind.label == "pool"]
    convolutions = [fields[op.name] for op in graph.ops if op.kind.label == "conv"]
    assert pools[:5] == [(6, 6), (16, 16), (44, 44), (100, 100), (212, 212)]
    assert convolutions[-1] == (196, 196)


# By hand: conv1 7; pool 7 + 2·2; three 3x3 at jump 4: 11 + 3·8; then each stage's first 3x3 still at the old jump (its
# stride sits there), the others at the new: 35 + 8 + 3·16, 91 + 16 + 5·32, 267 + 32 + 2·64. With the stride on the 1x1
# in front, as first published, the last would be 35 + 4·16 + 6·32 + 3·64 = 483 (Araujo et al. 2019).
def test_resnet50_sees_427_pixels_at_its_last_stage() -> None:
    fields = last_of_layer("resnet50")
    layers = ("conv1", "maxpool", "layer1.2.add", "layer2.3.add", "layer3.5.add", "layer4.2.add")
    assert [fields[layer] for layer in layers] == [(7, 7), (11, 11), (35, 35), (91, 91), (267, 267), (427, 427)]


@pytest.mark.parametrize(
    ("kernel", "stride", "field"), [(2, 2, 9), (4, 2, 11), (3, 1, 13)], ids=["touching", "overlapping", "plain"]
)
def test_an_output_of_an_upward_layer_sees_kernel_over_stride_elements(kernel: int, stride: int, field: int) -> None:
    """On top of a 9-pixel field with jump 2."""
    b = Builder("up", 1)
    x = b.conv(b.input("image", (3, 64, 64)), 3, 9, stride=2, name="down")
    b.conv_transposed(x, 3, kernel, stride=stride, name="up")
    assert last(b) == (field, field)


def test_the_larger_branch_counts() -> None:
    b = Builder("branches", 1)
    x = b.input("image", (3, 32, 32))
    b.add(b.conv(x, 3, 3, padding=1, name="narrow"), b.conv(x, 3, 5, padding=2, name="wide"))
    assert last(b) == (5, 5)


@pytest.mark.parametrize("mixer", ["global pool", "mean", "linear", "attention", "product"])
def test_what_mixes_all_positions_sees_the_whole_input(mixer: str) -> None:
    b = Builder("mixer", 1)
    x = b.conv(b.input("image", (4, 16, 12)), 4, 3, padding=1, name="conv")
    tokens = b.view(x, (1, 1, 192, 4))
    match mixer:
        case "global pool":
            b.adaptive_average_pool(x)
        case "mean":
            b.reduce("mean", x, [2, 3])
        case "linear":
            b.linear(b.flatten(x), 5)
        case "attention":
            b.attention(tokens, tokens, tokens)
        case _:
            b.matmul(tokens, tokens, transpose_b=True)
    assert last(b) == (16, 12)


def test_channels_alone_mix_no_positions() -> None:
    b = Builder("channels", 1)
    x = b.conv(b.input("image", (4, 16, 12)), 4, 3, padding=1, name="conv")
    b.reduce("mean", x, [1], keep=True)
    assert last(b) == (3, 3)
    b.linear(b.view(x, (1, 192, 4)), 5)
    assert last(b) == (3, 3)


def test_three_dimensions_have_three_fields() -> None:
    b = Builder("video", 1)
    b.conv(b.input("clip", (3, 8, 32, 32)), 4, (3, 5, 7), name="conv")
    assert last(b) == (3, 5, 7)


def test_tokens_have_no_field() -> None:
    assert set(last_of_layer("lstm_lm").values()) == {None}
