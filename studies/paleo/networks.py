"""The networks PALEO estimated, as PALEO counts them: convolutions, pools and dropouts, nothing else.

No bias, no activation, no softmax and no loss (PALEO charges them nothing); fully connected layers are convolutions,
the first of them as large as what is left of the image, without padding. Sizes are those of the specifications PALEO
published with its program: AlexNet is the one-tower network of Krizhevsky (2014), in two widths; VGG-16 is
configuration D of Simonyan & Zisserman (2015); NiN is the ImageNet network of Lin et al. (2014) in Caffe's model zoo.
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

IMAGE = (3, 224, 224)
SPLIT_LAYERS = ("fc6", "dropout6", "fc7", "dropout7")
"""The layers of `alexnet` that are cut into slices under hybrid parallelism."""


def alexnet(batch: int, *, conv4: int = 384, slices: int = 1) -> Graph:
    """One GPU's part of AlexNet.

    `conv4` 384 is the network of PALEO's Table 1, 256 that of its parallel case. With `slices` the two wide fully
    connected layers are that many times narrower; their inputs, gathered from all GPUs, are not.
    """
    b = Builder("alexnet", batch)
    x = _conv(b, b.input("image", IMAGE), 64, 11, stride=4, name="conv1")
    x = b.max_pool(x, 3, 2, name="pool1")
    x = _conv(b, x, 192, 5, padding=2, name="conv2")
    x = b.max_pool(x, 3, 2, name="pool2")
    for name, channels in (("conv3", 384), ("conv4", conv4), ("conv5", 256)):
        x = _conv(b, x, channels, 3, padding=1, name=name)
    x = b.max_pool(x, 3, 2, name="pool5")
    return b.finish(_classifier(b, x, slices), loss="none")


def vgg16(batch: int) -> Graph:
    """Thirteen 3x3 convolutions in five stages, three fully connected layers."""
    b = Builder("vgg16", batch)
    x = b.input("image", IMAGE)
    for stage, (layers, channels) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), start=1):
        for layer in range(1, layers + 1):
            x = _conv(b, x, channels, 3, padding=1, name=f"conv{stage}_{layer}")
        x = b.max_pool(x, 2, name=f"pool{stage}")
    return b.finish(_classifier(b, x, 1), loss="none")


def nin(batch: int) -> Graph:
    """Four convolutions, each followed by two of 1x1 ("cccp")."""
    b = Builder("nin", batch)
    x = _conv(b, b.input("image", IMAGE), 96, 11, stride=4, name="conv1")
    x = b.max_pool(_pointwise(b, x, (96, 96), 1), 3, 2, name="pool1")
    x = _conv(b, x, 256, 5, padding=2, name="conv2")
    x = b.max_pool(_pointwise(b, x, (256, 256), 3), 3, 2, name="pool2")
    x = _conv(b, x, 384, 3, padding=1, name="conv3")
    x = b.max_pool(_pointwise(b, x, (384, 384), 5), 3, 2, name="pool3")
    x = _conv(b, b.dropout(x, name="dropout"), 1024, 3, padding=1, name="conv4")
    x = b.average_pool(_pointwise(b, x, (1024, 1000), 7), 5, 1, name="pool4")
    return b.finish(x, loss="none")


def _classifier(b: Builder, x: Tensor, slices: int) -> Tensor:
    """4096, 4096, 1000. Between slices the parts are gathered: a view, for what it costs is communication."""
    width = 4096 // slices
    for name, dropout, window in (("fc6", "dropout6", x.shape[-1]), ("fc7", "dropout7", 1)):
        x = b.dropout(_conv(b, x, width, window, name=name), name=dropout)
        if slices > 1:
            x = b.view(x, (x.shape[0], 4096, 1, 1), "all_gather")
    return _conv(b, x, 1000, 1, name="fc8")


def _pointwise(b: Builder, x: Tensor, channels: tuple[int, int], first: int) -> Tensor:
    for index, width in enumerate(channels, start=first):
        x = _conv(b, x, width, 1, name=f"cccp{index}")
    return x


def _conv(b: Builder, x: Tensor, channels: int, window: int, *, stride: int = 1, padding: int = 0, name: str) -> Tensor:
    return b.conv(x, channels, window, stride=stride, padding=padding, bias=False, name=name)
