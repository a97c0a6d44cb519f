"""The networks of the thesis' table of largest batches.

Its "Conv3d" is "a 3d convolutional resnet for video recognition" on UCF-101, without a depth: taken to be the network
of Hara et al. 2018 on 16 frames of 112 pixels. Of 18, 34, 50 and 101 layers, 34 came nearest to what ran, 18 next.
"""

from collections.abc import Callable, Mapping

from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def hara34(batch: int) -> Graph:
    """7x7x7 stem and pooling, then (3, 4, 6, 3) basic blocks of 3x3x3 convolutions."""
    b = Builder("hara34", batch)
    x = b.conv(b.input("video", (3, 16, 112, 112)), 64, 7, stride=(1, 2, 2), padding=3, bias=False, name="conv1")
    x = b.max_pool(b.relu(b.batch_norm(x, name="bn1"), name="relu"), 3, stride=2, padding=1, name="maxpool")
    for stage, count in enumerate((3, 4, 6, 3)):
        for index in range(count):
            with b.scope(f"layer{stage + 1}.{index}"):
                x = _basic(b, x, 64 * 2**stage, 2 if stage and not index else 1)
    return b.finish(b.linear(b.flatten(b.adaptive_average_pool(x, name="avgpool")), 101, name="fc"))


def _basic(b: Builder, x: Tensor, planes: int, stride: int) -> Tensor:
    y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1")
    y = b.relu(b.batch_norm(y, name="bn1"), name="relu1")
    y = b.batch_norm(b.conv(y, planes, 3, padding=1, bias=False, name="conv2"), name="bn2")
    if y.shape != x.shape:
        x = b.batch_norm(b.conv(x, planes, 1, stride=stride, bias=False, name="downsample.0"), name="downsample.1")
    return b.relu(b.add(y, x, name="add"), name="relu2")


def _torchvision(name: str) -> Callable[[], Model]:
    return lambda: find_model(f"torchvision:{name}")


THESIS: Mapping[str, tuple[Callable[[], Model], int, int]] = {
    "Resnet34": (_torchvision("resnet34"), 373, 450),
    "Resnet50": (_torchvision("resnet50"), 158, 176),
    "Resnet152": (_torchvision("resnet152"), 76, 80),
    "Densenet201": (_torchvision("densenet201"), 71, 71),
    "Alexnet": (_torchvision("alexnet"), 2115, 2875),
    "Conv3d": (lambda: BuiltModel("hara34", hara34), 191, 210),
}
"""Table 5.1: the network, what the thesis estimated from two probes, and the largest batch that ran on 16 GB."""
