"""DenseNet-BC: Huang et al. 2017. Inside a block every layer reads all that were made before it.

A layer is norm, relu, 1x1 convolution to 4k channels, norm, relu, 3x3 convolution to k ("growth rate"). A transition
halves the channels and the size. As torchvision runs it, each layer joins its inputs anew: bytes grow with the square
of the depth of a block, which is why DenseNets are slow for their flops. (Its `memory_efficient` recomputation is not
modelled.)
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def densenet(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    blocks: tuple[int, ...],
    growth: int = 32,
    stem: int = 64,
    classes: int = 1000,
) -> Graph:
    """`blocks` layers in each of four blocks."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    with b.scope("features"):
        x = b.conv(x, stem, 7, stride=2, padding=3, bias=False, name="conv0")
        x = b.relu(b.batch_norm(x, name="norm0"), name="relu0")
        x = b.max_pool(x, 3, 2, 1, name="pool0")
        for index, count in enumerate(blocks, start=1):
            with b.scope(f"denseblock{index}"):
                x = _block(b, x, count, growth)
            if index < len(blocks):
                with b.scope(f"transition{index}"):
                    x = _transition(b, x)
        x = b.batch_norm(x, name="norm5")
    x = b.flatten(b.adaptive_average_pool(b.relu(x, name="relu"), name="avgpool"))
    return b.finish(b.linear(x, classes, name="classifier"))


def _block(b: Builder, x: Tensor, count: int, growth: int) -> Tensor:
    features = [x]
    for index in range(count):
        with b.scope(f"denselayer{index + 1}"):
            y = b.concatenate(features)
            y = b.conv(b.relu(b.batch_norm(y, name="norm1"), name="relu1"), 4 * growth, 1, bias=False, name="conv1")
            y = b.relu(b.batch_norm(y, name="norm2"), name="relu2")
            features.append(b.conv(y, growth, 3, padding=1, bias=False, name="conv2"))
    return b.concatenate(features)


def _transition(b: Builder, x: Tensor) -> Tensor:
    half = x.shape[1] // 2
    x = b.conv(b.relu(b.batch_norm(x, name="norm"), name="relu"), half, 1, bias=False, name="conv")
    return b.average_pool(x, 2, 2, name="pool")
