"""SSD: Liu et al. 2016, "SSD: Single shot multibox detector", as it is trained: on VGG-16, and on ResNet as in MLPerf.

VGG's fifth pool keeps the size, its first two products become convolutions (one dilated six times), and smaller and
smaller maps follow; every map predicts classes and boxes by one 3x3 convolution. Names are torchvision's, and so is
what is frozen there: the first of five stages. A ResNet ends with its third stage, which is not strided: 38x38.
"""

from collections.abc import Sequence

from epochcast.describe.capture.zoo.detection_losses import box_loss, cross_entropy
from epochcast.describe.capture.zoo.proposals import OBJECTS, flat, overlaps
from epochcast.describe.capture.zoo.resnet import ResidualStyle, stage, stem
from epochcast.describe.capture.zoo.vgg import CHANNELS, CONVOLUTIONS
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

# (middle channels, channels, kernel, stride, padding) of the maps behind VGG.
_EXTRAS = {
    300: ((256, 512, 3, 2, 1), (128, 256, 3, 2, 1), (128, 256, 3, 1, 0), (128, 256, 3, 1, 0)),
    512: ((256, 512, 3, 2, 1), (128, 256, 3, 2, 1), (128, 256, 3, 2, 1), (128, 256, 3, 2, 1), (128, 256, 4, 1, 1)),
}
_RESNET_EXTRAS = (
    (256, 512, 3, 2, 1),
    (256, 512, 3, 2, 1),
    (128, 256, 3, 2, 1),
    (128, 256, 3, 1, 0),
    (128, 256, 3, 1, 0),
)
_ANCHORS = {300: (4, 6, 6, 6, 4, 4), 512: (4, 6, 6, 6, 6, 4, 4)}
POSITIVES_PER_OBJECT = 16


def ssd(
    batch: int,
    input_shape: tuple[int, ...] = (3, 300, 300),
    *,
    name: str,
    classes: int = 91,
    frozen_stages: int = 1,
    relu: str = "relu",
) -> Graph:
    """Of 300 or 512 pixels."""
    size = input_shape[1]
    if size not in _EXTRAS:
        raise BadInput(f"{name} takes images of 300 or 512 pixels, got {size}")
    b = Builder(name, batch, relu)
    with b.scope("backbone"):
        maps = _maps(b, b.input("image", input_shape), size)
    graph = b.finish(_losses(b, maps, _ANCHORS[size], classes), loss="none")
    frozen = _layers_of(frozen_stages)
    return graph.frozen([f"backbone.features.{layer}.*" for layer in frozen]) if frozen else graph


def ssd_resnet(
    batch: int, input_shape: tuple[int, ...] = (3, 300, 300), *, name: str, blocks: tuple[int, ...], bottleneck: bool
) -> Graph:
    """300 pixels on the first three stages of a ResNet, all of it trained; maps behind ResNet-50 are normalised."""
    b = Builder(name, batch)
    like = ResidualStyle(bottleneck)
    with b.scope("backbone"):
        x = stem(b, b.input("image", input_shape), like)
        for number, count in enumerate(blocks, 1):
            x = stage(b, x, like, number, count, halves=number == 2)
    maps = [x]
    for index, (middle, channels, kernel, stride, padding) in enumerate(_RESNET_EXTRAS):
        with b.scope(f"additional_blocks.{index}"):
            x = _normed(b, b.conv(x, middle, 1, bias=not bottleneck, name="0"), bottleneck, 1)
            x = b.conv(x, channels, kernel, stride=stride, padding=padding, bias=not bottleneck, name="3")
            x = _normed(b, x, bottleneck, 4)
        maps.append(x)
    return b.finish(_losses(b, maps, _ANCHORS[300], 81), loss="none")


def _normed(b: Builder, x: Tensor, has_norm: bool, place: int) -> Tensor:
    return b.relu(b.batch_norm(x, name=f"{place}") if has_norm else x, name=f"{place + 1}")


def _losses(b: Builder, maps: Sequence[Tensor], anchors: Sequence[int], classes: int) -> list[Tensor]:
    """Classes and boxes of every map, all maps together."""
    scores, deltas = [], []
    for index, (x, count) in enumerate(zip(maps, anchors, strict=True)):
        with b.scope("head"):
            score = b.conv(x, classes * count, 3, padding=1, name=f"classification_head.module_list.{index}")
            delta = b.conv(x, 4 * count, 3, padding=1, name=f"regression_head.module_list.{index}")
            scores.append(flat(b, score, classes, f"scores{index}"))
            deltas.append(flat(b, delta, 4, f"deltas{index}"))
    logits, boxes = b.concatenate(scores, name="scores"), b.concatenate(deltas, name="deltas")
    overlaps(b, logits.shape[1])
    positive = b.gather("index", boxes, (b.batch, OBJECTS * POSITIVES_PER_OBJECT, 4), name="positive")
    return [cross_entropy(b, logits, "loss_classification"), box_loss(b, positive, "loss_bbox_regression")]


def _layers_of(stages: int) -> list[int]:
    """The convolutions of VGG's first stages, by torchvision's numbers."""
    numbers, layer = [], 0
    for count in CONVOLUTIONS[16][:stages]:
        numbers += [layer + 2 * index for index in range(count)]
        layer += 2 * count + 1
    return numbers


def _maps(b: Builder, x: Tensor, size: int) -> Sequence[Tensor]:
    layer, maps = 0, []
    for number, (channels, count) in enumerate(zip(CHANNELS, CONVOLUTIONS[16], strict=True)):
        with b.scope("features" if number < 4 else "extra.0"):
            layer = layer if number < 4 else 1
            for _ in range(count):
                x = b.relu(b.conv(x, channels, 3, padding=1, name=f"{layer}"), name=f"{layer + 1}")
                layer += 2
            if number == 3:
                maps.append(_rescaled(b, x))
            if number < 4:
                x = b.max_pool(x, 2, 2, ceil_mode=number == 2, name=f"{layer}")
                layer += 1
    with b.scope("extra.0.7"):
        x = b.max_pool(x, 3, 1, 1, name="0")
        x = b.relu(b.conv(x, 1024, 3, padding=6, dilation=6, name="1"), name="2")
        x = b.relu(b.conv(x, 1024, 1, name="3"), name="4")
    maps.append(x)
    for index, (middle, channels, kernel, stride, padding) in enumerate(_EXTRAS[size], 1):
        with b.scope(f"extra.{index}"):
            x = b.relu(b.conv(x, middle, 1, name="0"), name="1")
            x = b.relu(b.conv(x, channels, kernel, stride=stride, padding=padding, name="2"), name="3")
        maps.append(x)
    return maps


def _rescaled(b: Builder, x: Tensor) -> Tensor:
    """x / ‖x‖ over the channels, times a learned scale of each."""
    length = b.reduce("norm", x, [1], keep=True, name="norm")
    scale = b.parameter("scale_weight", (x.shape[1], 1, 1))
    unit = b.elementwise("div", x, length, name="normalise")
    return b.op(Elementwise("mul"), [unit], [x.shape], weights=[scale], name="rescale")[0]
