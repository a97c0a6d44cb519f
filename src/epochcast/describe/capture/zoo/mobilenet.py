"""MobileNets: Sandler et al. 2018 (V2) and Howard et al. 2019 (V3).

Inverted residuals: expand by a 1x1 convolution, filter depthwise, project by another. V3 adds squeeze-and-excitation
(Hu et al. 2018) and hard swish. Names and the order of layers are torchvision's.
"""

from collections.abc import Mapping
from typing import NamedTuple

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

CLONED = frozenset({"relu6", "hardswish", "silu"})


def conv_norm(
    b: Builder,
    x: Tensor,
    channels: int,
    kernel: int,
    *,
    stride: int = 1,
    groups: int = 1,
    activation: str | None = None,
    name: str,
) -> Tensor:
    """Convolution that keeps the size (but for its stride), batch normalisation, activation: 0, 1 and 2 of `name`."""
    with b.scope(name):
        x = b.conv(x, channels, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False, name="0")
        x = b.batch_norm(x, name="1")
        return activate(b, x, activation, name="2") if activation else x


def activate(b: Builder, x: Tensor, function: str, *, name: str) -> Tensor:
    """The activation, as torchvision runs it: in place.

    The gradient of relu6, hard swish and silu needs the value before, so autograd clones that first: a copy that only
    backward reads (here it reads the original, which is as large). Relu needs only its result.
    """
    if function in CLONED:
        b.copy("clone", x, x.shape, name=f"{name}.clone")
    return b.elementwise(function, x, name=name)


def squeeze_excite(b: Builder, x: Tensor, squeezed: int, activation: str, gate: str, *, name: str) -> Tensor:
    """x · gate(W₂·activation(W₁·mean(x))): every channel scaled by a gate computed from the whole image."""
    with b.scope(name):
        scale = b.adaptive_average_pool(x, name="avgpool")
        scale = activate(b, b.conv(scale, squeezed, 1, name="fc1"), activation, name="activation")
        scale = b.elementwise(gate, b.conv(scale, x.shape[1], 1, name="fc2"), name="scale_activation")
        return b.mul(scale, x, name="scale")


def divisible(channels: float, divisor: int = 8) -> int:
    """The nearest multiple of the divisor, but never more than a tenth below: how both families round widths."""
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * channels else rounded


# Expansion, channels, blocks, stride of the first: table 2 of the paper.
V2_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, classes: int = 1000) -> Graph:
    """Width 1.0."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = conv_norm(b, x, 32, 3, stride=2, activation="relu6", name="features.0")
    layer = 1
    for expansion, channels, blocks, first_stride in V2_STAGES:
        for index in range(blocks):
            with b.scope(f"features.{layer}"):
                x = _inverted_v2(b, x, expansion, channels, 1 if index else first_stride)
            layer += 1
    x = conv_norm(b, x, 1280, 1, activation="relu6", name=f"features.{layer}")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    x = b.dropout(x, name="classifier.0")
    return b.finish(b.linear(x, classes, name="classifier.1"))


def _inverted_v2(b: Builder, x: Tensor, expansion: int, channels: int, stride: int) -> Tensor:
    y, layer, hidden = x, 0, x.shape[1] * expansion
    if expansion != 1:
        y = conv_norm(b, y, hidden, 1, activation="relu6", name="conv.0")
        layer = 1
    y = conv_norm(b, y, hidden, 3, stride=stride, groups=hidden, activation="relu6", name=f"conv.{layer}")
    y = b.conv(y, channels, 1, bias=False, name=f"conv.{layer + 1}")
    y = b.batch_norm(y, name=f"conv.{layer + 2}")
    return b.add(x, y, name="add") if y.shape == x.shape else y


class Bneck(NamedTuple):
    """A row of the paper's tables 1 and 2: what one V3 block does."""

    kernel: int
    expanded: int
    channels: int
    squeezes: bool
    activation: str
    stride: int


V3_BLOCKS: Mapping[str, tuple[Bneck, ...]] = {
    "large": (
        Bneck(3, 16, 16, False, "relu", 1),
        Bneck(3, 64, 24, False, "relu", 2),
        Bneck(3, 72, 24, False, "relu", 1),
        Bneck(5, 72, 40, True, "relu", 2),
        Bneck(5, 120, 40, True, "relu", 1),
        Bneck(5, 120, 40, True, "relu", 1),
        Bneck(3, 240, 80, False, "hardswish", 2),
        Bneck(3, 200, 80, False, "hardswish", 1),
        Bneck(3, 184, 80, False, "hardswish", 1),
        Bneck(3, 184, 80, False, "hardswish", 1),
        Bneck(3, 480, 112, True, "hardswish", 1),
        Bneck(3, 672, 112, True, "hardswish", 1),
        Bneck(5, 672, 160, True, "hardswish", 2),
        Bneck(5, 960, 160, True, "hardswish", 1),
        Bneck(5, 960, 160, True, "hardswish", 1),
    ),
    "small": (
        Bneck(3, 16, 16, True, "relu", 2),
        Bneck(3, 72, 24, False, "relu", 2),
        Bneck(3, 88, 24, False, "relu", 1),
        Bneck(5, 96, 40, True, "hardswish", 2),
        Bneck(5, 240, 40, True, "hardswish", 1),
        Bneck(5, 240, 40, True, "hardswish", 1),
        Bneck(5, 120, 48, True, "hardswish", 1),
        Bneck(5, 144, 48, True, "hardswish", 1),
        Bneck(5, 288, 96, True, "hardswish", 2),
        Bneck(5, 576, 96, True, "hardswish", 1),
        Bneck(5, 576, 96, True, "hardswish", 1),
    ),
}
V3_HEAD: Mapping[str, int] = {"large": 1280, "small": 1024}


def mobilenet_v3(
    batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, size: str = "large", classes: int = 1000
) -> Graph:
    """The large or the small network, width 1.0."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = conv_norm(b, x, 16, 3, stride=2, activation="hardswish", name="features.0")
    for layer, block in enumerate(V3_BLOCKS[size], start=1):
        with b.scope(f"features.{layer}"):
            x = _inverted_v3(b, x, block)
    last = len(V3_BLOCKS[size]) + 1
    x = conv_norm(b, x, 6 * x.shape[1], 1, activation="hardswish", name=f"features.{last}")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    with b.scope("classifier"):
        x = activate(b, b.linear(x, V3_HEAD[size], name="0"), "hardswish", name="1")
        return b.finish(b.linear(b.dropout(x, name="2"), classes, name="3"))


def _inverted_v3(b: Builder, x: Tensor, block: Bneck) -> Tensor:
    kernel, expanded, channels, squeezes, activation, stride = block
    y, layer = x, 0
    if expanded != x.shape[1]:
        y = conv_norm(b, y, expanded, 1, activation=activation, name="block.0")
        layer = 1
    y = conv_norm(b, y, expanded, kernel, stride=stride, groups=expanded, activation=activation, name=f"block.{layer}")
    if squeezes:
        layer += 1
        y = squeeze_excite(b, y, divisible(expanded // 4), "relu", "hardsigmoid", name=f"block.{layer}")
    y = conv_norm(b, y, channels, 1, name=f"block.{layer + 1}")
    return b.add(y, x, name="add") if y.shape == x.shape else y
