"""Residual networks: He et al. 2016 ("Deep Residual Learning"), and what came of them.

ResNeXt is Xie et al. 2017, wide networks Zagoruyko & Komodakis 2016. The ImageNet networks are torchvision's (the
stride of a bottleneck sits on its 3x3 convolution, "v1.5"). The CIFAR networks are the paper's section 4.2: 6n+2
layers, three stages of 16, 32, 64 channels, identity shortcuts padded with zeros.
"""

from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.tensor import Tensor


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
    kernel, stride = (3, 1) if small_stem else (7, 2)
    x = b.conv(x, 64, kernel, stride=stride, padding=kernel // 2, bias=False, name="conv1")
    x = b.relu(b.batch_norm(x, name="bn1"), name="relu")
    if not small_stem:
        x = b.max_pool(x, 3, 2, 1, name="maxpool")
    for stage, count in enumerate(blocks):
        for index in range(count):
            stride = 2 if stage and not index else 1
            with b.scope(f"layer{stage + 1}.{index}"):
                planes = 64 * 2**stage
                if bottleneck:
                    x = _bottleneck(b, x, planes, stride, groups, width_per_group)
                else:
                    x = _basic(b, x, planes, stride)
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="fc"))


def _basic(b: Builder, x: Tensor, planes: int, stride: int) -> Tensor:
    y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1")
    y = b.relu(b.batch_norm(y, name="bn1"), name="relu")
    y = b.batch_norm(b.conv(y, planes, 3, padding=1, bias=False, name="conv2"), name="bn2")
    return b.relu(b.add(y, _shortcut(b, x, planes, stride), name="add"), name="relu_out")


def _bottleneck(b: Builder, x: Tensor, planes: int, stride: int, groups: int, width_per_group: int) -> Tensor:
    width = planes * width_per_group // 64 * groups
    y = b.conv(x, width, 1, bias=False, name="conv1")
    y = b.relu(b.batch_norm(y, name="bn1"), name="relu")
    y = b.conv(y, width, 3, stride=stride, padding=1, groups=groups, bias=False, name="conv2")
    y = b.relu(b.batch_norm(y, name="bn2"), name="relu2")
    y = b.batch_norm(b.conv(y, planes * 4, 1, bias=False, name="conv3"), name="bn3")
    return b.relu(b.add(y, _shortcut(b, x, planes * 4, stride), name="add"), name="relu_out")


def _shortcut(b: Builder, x: Tensor, channels: int, stride: int) -> Tensor:
    """The identity, or a strided 1x1 projection where the shape changes."""
    if stride == 1 and x.shape[1] == channels:
        return x
    x = b.conv(x, channels, 1, stride=stride, bias=False, name="downsample.0")
    return b.batch_norm(x, name="downsample.1")


def cifar_resnet(
    batch: int, input_shape: tuple[int, ...] = (3, 32, 32), *, name: str, depth: int, classes: int = 10
) -> Graph:
    """6n+2 layers; where a stage begins the shortcut is every second pixel, padded with zero channels (option A)."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = b.relu(b.batch_norm(b.conv(x, 16, 3, padding=1, bias=False, name="conv1"), name="bn1"), name="relu")
    for stage, planes in enumerate((16, 32, 64)):
        for index in range((depth - 2) // 6):
            stride = 2 if stage and not index else 1
            with b.scope(f"layer{stage + 1}.{index}"):
                y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1")
                y = b.relu(b.batch_norm(y, name="bn1"), name="relu")
                y = b.batch_norm(b.conv(y, planes, 3, padding=1, bias=False, name="conv2"), name="bn2")
                shortcut = x if stride == 1 else b.copy("pad", x, y.shape, name="shortcut")
                x = b.relu(b.add(y, shortcut, name="add"), name="relu_out")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="fc"))
