"""U-Net: Ronneberger, Fischer & Brox 2015, figure 1. Down five levels, up again, each level joined to its counterpart.

Convolutions are valid, so 572 pixels become 388 and what is copied across is cropped. 23 convolutions; parameters:

    down   37,568 + 221,440 + 885,248 + 3,539,968 + 14,157,824                      = 18,842,048
    up     9,176,576 + 2,294,528 + 573,824 + 143,552 (2x2 up-convolutions included) = 12,188,480
    last   64·2 + 2                                                                 =        130
    sum                                                                               31,030,658

The 31,031,685 often quoted is a Keras network with padded convolutions and another tail: 3x3 to two channels (1,154),
then 1x1 to one (3). The loss is the cross entropy of every position; the paper's weight map is not modelled.
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

LEVELS = 5
# The authors' Caffe model drops half of what leaves the two deepest levels of the contracting path.
DROPPED_LEVELS = (3, 4)


def unet(
    batch: int, input_shape: tuple[int, ...] = (1, 572, 572), *, name: str, base: int = 64, classes: int = 2
) -> Graph:
    """`base` channels at the top, doubled at each level."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    skips = []
    for level in range(LEVELS):
        with b.scope(f"down{level + 1}"):
            x = _pair(b, x, base * 2**level)
            if level in DROPPED_LEVELS:
                x = b.dropout(x, name="dropout")
            if level < LEVELS - 1:
                skips.append(x)
                x = b.max_pool(x, 2, 2, name="pool")
    for level in reversed(range(LEVELS - 1)):
        with b.scope(f"up{level + 1}"):
            x = b.relu(b.conv_transposed(x, base * 2**level, 2, stride=2, name="upconv"), name="relu0")
            skip = skips[level]
            x = b.concatenate([b.view(skip, (*skip.shape[:2], *x.shape[2:]), "crop"), x])
            x = _pair(b, x, base * 2**level)
    return b.finish(b.conv(x, classes, 1, name="last"))


def fastmri_unet(
    batch: int, input_shape: tuple[int, ...] = (1, 320, 320), *, name: str, base: int = 32, levels: int = 4
) -> Graph:
    """The network of fastMRI (Zbontar et al. 2018), which AlgoPerf trains too: padded convolutions, each with an
    instance norm and a leaky relu, averages instead of maxima; the loss, an absolute error, is counted as a square.

    Parameters, without biases but the last, in pairs down, at the bottom, up (2x2 up-convolutions included), and last:

        9,504 + 55,296 + 221,184 + 884,736 + 3,538,944 + 2,293,760 + 573,440 + 143,360 + 35,840 + 33 = 7,756,097
    """
    b = Builder(name, batch)
    x, skips = b.input("image", input_shape), []
    for level in range(levels):
        with b.scope(f"down_sample_layers.{level}"):
            skips.append(_normed_pair(b, x, base * 2**level))
            x = b.average_pool(skips[-1], 2, name="pool")
    with b.scope("conv"):
        x = _normed_pair(b, x, base * 2**levels)
    for level in reversed(range(levels)):
        with b.scope(f"up_conv.{levels - 1 - level}"):
            y = b.conv_transposed(x, base * 2**level, 2, stride=2, bias=False, name="transposed")
            x = _normed_pair(b, b.concatenate([_leaky(b, y), skips[level]]), base * 2**level)
    return b.finish(b.conv(x, 1, 1, name="last"), loss="mse")


def _normed_pair(b: Builder, x: Tensor, channels: int) -> Tensor:
    for name in ("0", "4"):
        x = b.dropout(_leaky(b, b.conv(x, channels, 3, padding=1, bias=False, name=name)))
    return x


def _leaky(b: Builder, x: Tensor) -> Tensor:
    """An instance norm without scale, and a leaky relu in place."""
    return b.elementwise("leaky_relu", b.norm(x, "instance", x.shape[1], affine=False))


def _pair(b: Builder, x: Tensor, channels: int) -> Tensor:
    x = b.relu(b.conv(x, channels, 3, name="conv1"), name="relu1")
    return b.relu(b.conv(x, channels, 3, name="conv2"), name="relu2")
