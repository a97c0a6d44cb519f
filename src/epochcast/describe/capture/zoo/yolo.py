"""YOLOv3: Redmon & Farhadi 2018, "YOLOv3: An incremental improvement", as it is trained.

Darknet-53 (residual blocks of a 1x1 and a 3x3 convolution, strided convolutions between them), and at three scales a
stack of convolutions that predicts three boxes per position; each finer scale is joined with the coarser one at twice
its size. Every convolution but the last of a scale is normalised over the batch and followed by a leaky relu.
"""

from epochcast.describe.capture.zoo.detection_losses import binary_cross_entropy
from epochcast.describe.capture.zoo.proposals import flat, overlaps
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

BLOCKS = (1, 2, 8, 8, 4)
ANCHORS = 3


def yolov3(batch: int, input_shape: tuple[int, ...] = (3, 416, 416), *, name: str, classes: int = 80) -> Graph:
    """Of images whose sides are multiples of 32."""
    b = Builder(name, batch)
    x = _conv(b, b.input("image", input_shape), 32, 3, "stem")
    stages = []
    for number, count in enumerate(BLOCKS):
        with b.scope(f"stage{number + 1}"):
            x = _conv(b, x, 64 * 2**number, 3, "down", stride=2)
            for index in range(count):
                with b.scope(f"{index}"):
                    y = _conv(b, _conv(b, x, x.shape[1] // 2, 1, "narrow"), x.shape[1], 3, "wide")
                    x = b.add(x, y, name="add")
        stages.append(x)
    outputs = []
    for number, channels in enumerate((512, 256, 128)):
        with b.scope(f"scale{number + 1}"):
            if number:
                finer = stages[-1 - number]
                x = _conv(b, x, channels, 1, "before")
                x = b.copy("repeat", x, (*x.shape[:2], *finer.shape[2:]), name="upsample")
                x = b.concatenate([x, finer], name="join")
            for index in range(5):
                x = _conv(b, x, channels * (1 + index % 2), 1 + 2 * (index % 2), f"{index}")
            y = b.conv(_conv(b, x, 2 * channels, 3, "last"), ANCHORS * (5 + classes), 1, name="predictions")
            outputs.append(flat(b, y, 5 + classes, "flat"))
    boxes = b.concatenate(outputs, name="boxes")
    overlaps(b, boxes.shape[1])
    return b.finish([binary_cross_entropy(b, boxes, "loss")], loss="none")


def _conv(b: Builder, x: Tensor, channels: int, kernel: int, name: str, *, stride: int = 1) -> Tensor:
    with b.scope(name):
        x = b.conv(x, channels, kernel, stride=stride, padding=kernel // 2, bias=False, name="conv")
        return b.elementwise("leaky_relu", b.batch_norm(x, name="norm"), name="leaky_relu")
