"""Networks of KernelBench's level 3 (Ouyang et al. 2025) that differ from the published ones they are called after, and
single blocks of such, so that its measurements can be compared: `kernelbench:DenseNet121`.

What differs: no groups (AlexNet), no bottlenecks (DenseNet121), no activation inside the modules
(GoogleNetInceptionV1), no shortcuts (MobileNetV2), no squeeze-and-excitation (EfficientNetB0), one block a stage
(EfficientNetB1), gates instead of features (EfficientNetB2, whose pooled gate is what goes on), no strides
(ShuffleNet), plain convolutions (RegNet). Sizes are those of its files since 2025-07.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.zoo.attention_layers import split_heads
from epochcast.describe.capture.zoo.inception import GOOGLENET_STAGES
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput, UnknownName

Shape = tuple[int, ...]
Layers = Callable[[Builder, Tensor], Tensor]
CLASSES = 1000


def kernelbench_model(name: str, input_shape: Shape | None = None) -> BuiltModel:
    """The network of a problem, at its own input size unless `input_shape` is given."""
    if name not in PROBLEMS:
        raise UnknownName("problem of KernelBench", name, PROBLEMS)
    published, layers = PROBLEMS[name]
    shape = published if input_shape is None else input_shape
    if len(shape) != len(published):
        raise BadInput(f"{name} takes an input of {len(published)} sizes, got {len(shape)}")
    check_channels_first(shape, published[0])
    return BuiltModel(f"kernelbench:{name}", partial(_graph, name, shape, layers))


def _graph(name: str, shape: Shape, layers: Layers, batch: int) -> Graph:
    b = Builder(name, batch)
    return b.finish(layers(b, b.input("x", shape)))


def _conv(b: Builder, x: Tensor, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> Tensor:
    """A convolution without bias that keeps the size (but for its stride), and its norm."""
    return b.batch_norm(b.conv(x, channels, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False))


def _classified(b: Builder, x: Tensor, classes: int = CLASSES) -> Tensor:
    return b.linear(b.flatten(b.adaptive_average_pool(x)), classes)


def _dense(sizes: Sequence[int], b: Builder, x: Tensor) -> Tensor:
    """Linear layers with relu between them."""
    for size in sizes[:-1]:
        x = b.relu(b.linear(x, size))
    return b.linear(x, sizes[-1])


def _lenet(b: Builder, x: Tensor) -> Tensor:
    for channels in (6, 16):
        x = b.max_pool(b.relu(b.conv(x, channels, 5)), 2, 2)
    return _dense((120, 84, 20), b, b.flatten(x))


def _alexnet(b: Builder, x: Tensor) -> Tensor:
    x = b.max_pool(b.relu(b.conv(x, 96, 11, stride=4, padding=2)), 3, 2)
    x = b.max_pool(b.relu(b.conv(x, 256, 5, padding=2)), 3, 2)
    for channels in (384, 384, 256):
        x = b.relu(b.conv(x, channels, 3, padding=1))
    return _dense((4096, 4096, CLASSES), b, b.flatten(b.max_pool(x, 3, 2)))


def _googlenet(b: Builder, x: Tensor) -> Tensor:
    x = b.max_pool(b.relu(b.conv(x, 64, 7, stride=2, padding=3)), 3, 2, 1)
    x = b.relu(b.conv(b.relu(b.conv(x, 64, 1)), 192, 3, padding=1))
    for modules in GOOGLENET_STAGES:
        x = b.max_pool(x, 3, 2, 1)
        for widths in modules.values():
            x = _inception(widths, b, x)
    return _classified(b, x)


def _inception(widths: Sequence[int], b: Builder, x: Tensor) -> Tensor:
    pointwise, threes_reduced, threes, fives_reduced, fives, pooled = widths
    second = b.conv(b.conv(x, threes_reduced, 1), threes, 3, padding=1)
    third = b.conv(b.conv(x, fives_reduced, 1), fives, 5, padding=2)
    fourth = b.conv(b.max_pool(x, 3, 1, 1), pooled, 1)
    return b.concatenate([b.conv(x, pointwise, 1), second, third, fourth])


def _densenet(b: Builder, x: Tensor) -> Tensor:
    x = b.max_pool(b.relu(_conv(b, x, 64, 7, 2)), 3, 2, 1)
    blocks = (6, 12, 24, 16)
    for index, layers in enumerate(blocks):
        x = _dense_block(layers, b, x)
        if index + 1 < len(blocks):
            x = _transition(x.shape[1] // 2, b, x)
    return _classified(b, b.relu(b.batch_norm(x)), 10)


def _dense_block(layers: int, b: Builder, x: Tensor) -> Tensor:
    parts = [x]
    for _ in range(layers):
        parts.append(b.conv(b.relu(b.batch_norm(x)), 32, 3, padding=1, bias=False))
        x = b.concatenate(parts)
    return x


def _transition(channels: int, b: Builder, x: Tensor) -> Tensor:
    return b.average_pool(b.conv(b.relu(b.batch_norm(x)), channels, 1, bias=False), 2, 2)


def _basic_block(b: Builder, x: Tensor) -> Tensor:
    y = _conv(b, b.relu(_conv(b, x, 64, 3)), 64, 3)
    return b.relu(b.add(y, _conv(b, x, 64, 1)))


def _fire(b: Builder, x: Tensor) -> Tensor:
    x = b.relu(b.conv(x, 6, 1))
    return b.concatenate([b.relu(b.conv(x, 64, 1)), b.relu(b.conv(x, 64, 3, padding=1))])


def _regnet(b: Builder, x: Tensor) -> Tensor:
    for channels in (64, 128, 256):
        for _ in range(2):
            x = b.relu(b.batch_norm(b.conv(x, channels, 3, padding=1)))
        x = b.max_pool(x, 2, 2)
    return b.linear(b.reduce("mean", x, [2, 3]), 10)


def _shufflenet(b: Builder, x: Tensor) -> Tensor:
    x = b.max_pool(b.relu(_conv(b, x, 24, 3, 2)), 3, 2, 1)
    for channels, units in ((240, 3), (480, 7), (960, 3)):
        for _ in range(units):
            middle = channels // 4
            y = b.relu(_conv(b, x, middle, 1, groups=3))
            y = _conv(b, y, middle, 3, groups=middle)
            y = b.copy("contiguous", y, y.shape, name="shuffle")
            y = b.relu(_conv(b, y, channels, 1, groups=3))
            x = b.add(y, x if x.shape == y.shape else _conv(b, x, channels, 1))
    return _classified(b, b.relu(_conv(b, x, 1024, 1)))


def _inverted(b: Builder, x: Tensor, channels: int, kernel: int, stride: int, ratio: int) -> Tensor:
    """Expand, filter depthwise, project; nothing is expanded by one."""
    hidden = ratio * x.shape[1]
    if ratio > 1:
        x = b.elementwise("relu6", _conv(b, x, hidden, 1))
    x = b.elementwise("relu6", _conv(b, x, hidden, kernel, stride, hidden))
    return _conv(b, x, channels, 1)


def _mobilenet(b: Builder, x: Tensor) -> Tensor:
    x = b.elementwise("relu6", _conv(b, x, 32, 3, 2))
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for ratio, channels, blocks, stride in stages:
        for index in range(blocks):
            x = _inverted(b, x, channels, 3, 1 if index else stride, ratio)
    return _classified(b, b.elementwise("relu6", _conv(b, x, 1280, 1)))


def _efficientnet_b0(b: Builder, x: Tensor) -> Tensor:
    x = b.relu(_conv(b, x, 32, 3, 2))
    stages = (
        (16, 3, 1, 1, 1), (24, 3, 2, 6, 2), (40, 5, 2, 6, 2), (80, 3, 2, 6, 2), (112, 5, 1, 6, 2), (192, 5, 2, 6, 3),
        (320, 3, 1, 6, 1),
    )  # fmt: skip
    for channels, kernel, stride, ratio, blocks in stages:
        for index in range(blocks):
            y = _inverted(b, x, channels, kernel, 1 if index else stride, ratio)
            x = b.add(y, x) if y.shape == x.shape else y
    return _classified(b, b.relu(_conv(b, x, 1280, 1)))


def _efficientnet_b1(b: Builder, x: Tensor) -> Tensor:
    x = b.relu(_conv(b, x, 32, 3, 2))
    stages = ((16, 1, 1), (24, 2, 6), (40, 2, 6), (80, 2, 6), (112, 1, 6), (192, 2, 6), (320, 1, 6))
    for channels, stride, ratio in stages:
        hidden = ratio * x.shape[1]
        x = b.elementwise("relu6", _conv(b, x, hidden, 1))
        x = b.elementwise("relu6", _conv(b, x, hidden, 3, stride, hidden))
        x = _conv(b, x, channels, 1)
    return _classified(b, b.relu(_conv(b, x, 1280, 1)))


def _efficientnet_b2(b: Builder, x: Tensor) -> Tensor:
    """The gate of each block, one value a channel, is all that its next layer sees."""
    x = b.relu(_conv(b, x, 32, 3, 2))
    for channels, stride, ratio in ((96, 1, 3), (144, 2, 6), (192, 2, 6), (288, 2, 6), (384, 1, 6)):
        hidden = ratio * x.shape[1]
        x = b.relu(_conv(b, x, hidden, 1))
        x = b.adaptive_average_pool(b.relu(_conv(b, x, hidden, 3, stride, hidden)))
        x = b.relu(b.conv(x, hidden // 4, 1, bias=False))
        x = _conv(b, b.elementwise("sigmoid", b.conv(x, hidden, 1, bias=False)), channels, 1)
    return _classified(b, b.relu(_conv(b, x, 1408, 1)))


def _mini_gpt(b: Builder, x: Tensor) -> Tensor:
    """One block of minGPT with its scores in memory, eight heads."""
    batch, length, width = x.shape
    parts = b.split(b.linear(b.layer_norm(x), 3 * width), 3)
    q, k, v = (b.copy("contiguous", t, t.shape) for t in (split_heads(b, part, 8) for part in parts))
    scores = b.elementwise("scale", b.matmul(q, k, transpose_b=True))
    weights = b.softmax(b.elementwise("mask", scores))
    y = b.copy("contiguous", b.matmul(weights, v), (batch, length, width))
    x = b.add(x, b.linear(y, width))
    y = b.linear(b.layer_norm(x), 4 * width)
    half, cube = b.elementwise("scale", y), b.elementwise("scale", b.elementwise("pow", y))
    inside = b.elementwise("tanh", b.elementwise("scale", b.add(y, cube)))
    return b.add(x, b.linear(b.mul(half, b.elementwise("add", inside)), width))


_IMAGE: Shape = (3, 224, 224)
PROBLEMS: Mapping[str, tuple[Shape, Layers]] = {
    "MLP": ((16384,), partial(_dense, (16384, 16384, 8192))),
    "ShallowWideMLP": ((16384,), partial(_dense, (32768, 32768, 16384))),
    "LeNet5": ((1, 32, 32), _lenet),
    "AlexNet": (_IMAGE, _alexnet),
    "GoogleNetInceptionV1": (_IMAGE, _googlenet),
    "DenseNet121": (_IMAGE, _densenet),
    "GoogleNetInceptionModule": ((480, 224, 224), partial(_inception, (192, 96, 208, 16, 48, 64))),
    "ResNetBasicBlock": (_IMAGE, _basic_block),
    "DenseNet121DenseBlock": ((32, 224, 224), partial(_dense_block, 6)),
    "DenseNet121TransitionLayer": ((32, 256, 256), partial(_transition, 64)),
    "SqueezeNetFireModule": ((3, 256, 256), _fire),
    "EfficientNetMBConv": ((112, 224, 224), partial(_inverted, channels=192, kernel=5, stride=2, ratio=6)),
    "RegNet": (_IMAGE, _regnet),
    "ShuffleNet": (_IMAGE, _shufflenet),
    "MobileNetV2": (_IMAGE, _mobilenet),
    "EfficientNetB0": (_IMAGE, _efficientnet_b0),
    "EfficientNetB1": ((3, 240, 240), _efficientnet_b1),
    "EfficientNetB2": (_IMAGE, _efficientnet_b2),
    "MiniGPTBlock": ((512, 768), _mini_gpt),
}
"""The shape of a sample and the layers of each."""
