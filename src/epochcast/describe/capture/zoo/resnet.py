"""Residual networks: He et al. 2016 ("Deep Residual Learning"), and what came of them.

ResNeXt is Xie et al. 2017, wide networks Zagoruyko & Komodakis 2016. The ImageNet networks are torchvision's (the
stride of a bottleneck sits on its 3x3 convolution, "v1.5"). The CIFAR networks are the paper's section 4.2: 6n+2
layers, three stages of 16, 32, 64 channels, identity shortcuts padded with zeros.
"""

from collections.abc import Callable
from dataclasses import dataclass

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

Normalise = Callable[[Builder, Tensor, str], Tensor]
"""A normalisation layer of a builder, by name."""


def batch_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    """Over the batch, as these networks are trained on ImageNet."""
    return b.batch_norm(x, name=name)


@dataclass(frozen=True, slots=True)
class ResidualStyle:
    """What all blocks of a network share.

    `strides_first`: the stride of a bottleneck sits on its first 1x1 convolution, as in the paper and in Caffe.
    """

    bottleneck: bool = True
    groups: int = 1
    width_per_group: int = 64
    norm: Normalise = batch_norm
    strides_first: bool = False


def resnet(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    blocks: tuple[int, ...],
    bottleneck: bool,
    groups: int = 1,
    width_per_group: int = 64,
    classes: int = 1000,
    small_stem: bool = False,
) -> Graph:
    """The four-stage ImageNet network with `blocks` residual blocks per stage.

    `small_stem` is what implementations for CIFAR do with it: one 3x3 convolution, no pooling.
    """
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    like = ResidualStyle(bottleneck, groups, width_per_group)
    x = stem(b, x, like, small=small_stem)
    for number, count in enumerate(blocks, 1):
        x = stage(b, x, like, number, count)
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="fc"))


def stem(b: Builder, x: Tensor, like: ResidualStyle, *, small: bool = False) -> Tensor:
    """A 7x7 convolution and a pool: a quarter of the pixels a side; `small`: one 3x3 convolution."""
    kernel, stride = (3, 1) if small else (7, 2)
    x = b.conv(x, 64, kernel, stride=stride, padding=kernel // 2, bias=False, name="conv1")
    x = _relu(b, like.norm(b, x, "bn1"), name="relu")
    return x if small else b.max_pool(x, 3, 2, 1, name="maxpool")


def stage(
    b: Builder,
    x: Tensor,
    like: ResidualStyle,
    number: int,
    count: int,
    *,
    dilation: int = 1,
    halves: bool | None = None,
) -> Tensor:
    """`count` blocks; by default, stages behind the first halve the pixels unless they are dilated (`halves`)."""
    is_halved = number > 1 and dilation == 1 if halves is None else halves
    for index in range(count):
        stride = 2 if is_halved and not index else 1
        planes = 64 * 2 ** (number - 1)
        with b.scope(f"layer{number}.{index}"):
            if like.bottleneck:
                x = _bottleneck(b, x, like, planes, stride, dilation)
            else:
                x = _basic(b, x, like, planes, stride)
    return x


def _basic(b: Builder, x: Tensor, like: ResidualStyle, planes: int, stride: int) -> Tensor:
    y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1")
    y = _relu(b, like.norm(b, y, "bn1"), name="relu")
    y = like.norm(b, b.conv(y, planes, 3, padding=1, bias=False, name="conv2"), "bn2")
    return _relu(b, b.add(y, _shortcut(b, x, like, planes, stride), name="add"), name="relu_out")


def _bottleneck(b: Builder, x: Tensor, like: ResidualStyle, planes: int, stride: int, dilation: int) -> Tensor:
    width = planes * like.width_per_group // 64 * like.groups
    first, second = (stride, 1) if like.strides_first else (1, stride)
    y = b.conv(x, width, 1, stride=first, bias=False, name="conv1")
    y = _relu(b, like.norm(b, y, "bn1"), name="relu")
    y = b.conv(
        y, width, 3, stride=second, padding=dilation, dilation=dilation, groups=like.groups, bias=False, name="conv2"
    )
    y = _relu(b, like.norm(b, y, "bn2"), name="relu2")
    y = like.norm(b, b.conv(y, planes * 4, 1, bias=False, name="conv3"), "bn3")
    return _relu(b, b.add(y, _shortcut(b, x, like, planes * 4, stride), name="add"), name="relu_out")


def _shortcut(b: Builder, x: Tensor, like: ResidualStyle, channels: int, stride: int) -> Tensor:
    """The identity, or a strided 1x1 projection where the shape changes."""
    if stride == 1 and x.shape[1] == channels:
        return x
    x = b.conv(x, channels, 1, stride=stride, bias=False, name="downsample.0")
    return like.norm(b, x, "downsample.1")


def _relu(b: Builder, x: Tensor, name: str) -> Tensor:
    """Residual blocks work in place, whatever the rest of the network does."""
    return b.elementwise("relu", x, name=name)


def cifar_resnet(
    batch: int, input_shape: tuple[int, ...] = (3, 32, 32), *, name: str, depth: int, classes: int = 10
) -> Graph:
    """6n+2 layers; where a stage begins the shortcut is every second pixel, padded with zero channels (option A)."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = b.relu(b.batch_norm(b.conv(x, 16, 3, padding=1, bias=False, name="conv1"), name="bn1"), name="relu")
    for stage_number, planes in enumerate((16, 32, 64)):
        for index in range((depth - 2) // 6):
            stride = 2 if stage_number and not index else 1
            with b.scope(f"layer{stage_number + 1}.{index}"):
                y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1")
                y = b.relu(b.batch_norm(y, name="bn1"), name="relu")
                y = b.batch_norm(b.conv(y, planes, 3, padding=1, bias=False, name="conv2"), name="bn2")
                shortcut = x if stride == 1 else b.copy("pad", x, y.shape, name="shortcut")
                x = b.relu(b.add(y, shortcut, name="add"), name="relu_out")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="fc"))
