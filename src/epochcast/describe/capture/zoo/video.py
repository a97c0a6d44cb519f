"""Residual networks over video: R3D of Tran et al. 2018 ("A closer look at spatiotemporal convolutions").

The basic block with every 3x3 convolution made 3x3x3; 16 frames of 112 pixels, 400 classes of Kinetics. Names are
torchvision's, which has 18 layers. R3D-34 is the same with (3, 4, 6, 3) blocks: to 33,371,472 parameters it adds
blocks of 2·27·c² + 4·c, one of 64 channels, two of 128, four of 256, one of 512: 221,440 + 2·885,248 + 4·3,539,968 +
14,157,824, in all 63,681,104.
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def r3d(
    batch: int,
    input_shape: tuple[int, ...] = (3, 16, 112, 112),
    *,
    name: str,
    blocks: tuple[int, ...],
    classes: int = 400,
) -> Graph:
    """Four stages of `blocks` residual blocks; from the second on each halves frames and pixels."""
    b = Builder(name, batch)
    x = b.input("video", input_shape)
    with b.scope("stem"):
        x = b.conv(x, 64, (3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False, name="0")
        x = b.relu(b.batch_norm(x, name="1"), name="2")
    for stage, count in enumerate(blocks):
        for index in range(count):
            with b.scope(f"layer{stage + 1}.{index}"):
                x = _basic(b, x, 64 * 2**stage, 2 if stage and not index else 1)
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="fc"))


def _basic(b: Builder, x: Tensor, planes: int, stride: int) -> Tensor:
    y = b.conv(x, planes, 3, stride=stride, padding=1, bias=False, name="conv1.0")
    y = b.relu(b.batch_norm(y, name="conv1.1"), name="conv1.2")
    y = b.conv(y, planes, 3, padding=1, bias=False, name="conv2.0")
    y = b.batch_norm(y, name="conv2.1")
    if y.shape != x.shape:
        x = b.conv(x, planes, 1, stride=stride, bias=False, name="downsample.0")
        x = b.batch_norm(x, name="downsample.1")
    return b.relu(b.add(y, x, name="add"), name="relu")
