"""VGG: Simonyan & Zisserman 2015, table 1, columns A, B, D and E. Only 3x3 convolutions, between five 2x2 pools.

A stack of N layers of FxF sees N·F − N + 1 pixels a side: three of 3x3 see seven, with fewer weights and more bends.
Names and the adaptive pool in front of the classifier are torchvision's; at 224 pixels that pool changes nothing.
"""

from collections.abc import Mapping

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph

CHANNELS = (64, 128, 256, 512, 512)
CONVOLUTIONS: Mapping[int, tuple[int, ...]] = {
    11: (1, 1, 2, 2, 2),
    13: (2, 2, 2, 2, 2),
    16: (2, 2, 3, 3, 3),
    19: (2, 2, 4, 4, 4),
}
"""Convolutions per stage, by depth; with the three products they make up the depth."""


def vgg(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    depth: int,
    batch_norm: bool = False,
    classes: int = 1000,
) -> Graph:
    """The network of a `depth`, with batch normalisation behind every convolution where wanted."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    layer = 0
    with b.scope("features"):
        for channels, count in zip(CHANNELS, CONVOLUTIONS[depth], strict=True):
            for _ in range(count):
                x = b.conv(x, channels, 3, padding=1, name=f"{layer}")
                if batch_norm:
                    layer += 1
                    x = b.batch_norm(x, name=f"{layer}")
                x = b.relu(x, name=f"{layer + 1}")
                layer += 2
            x = b.max_pool(x, 2, 2, name=f"{layer}")
            layer += 1
    x = b.flatten(b.adaptive_average_pool(x, 7, name="avgpool"))
    with b.scope("classifier"):
        x = b.dropout(b.relu(b.linear(x, 4096, name="0"), name="1"), name="2")
        x = b.dropout(b.relu(b.linear(x, 4096, name="3"), name="4"), name="5")
        return b.finish(b.linear(x, classes, name="6"))
