"""Regions that may hold an object: the proposal network, and the features of regions (Ren et al. 2015, He et al. 2017).

What depends on the data is fixed by what trainers draw: a fixed number of anchors and of boxes is sampled per image, so
that every shape is known. Boxes are spread evenly over the levels of a pyramid; the cost of a region does not depend on
its level. Gradients do not flow into boxes.

What Python does for one image after another is a `HostLoop`: the host reads how many boxes are left and which anchors
match, and starts nothing ahead. Its kernels and reads are those that torchvision 0.28 calls for batches of one and
three images (Faster and Mask R-CNN, R-50-FPN, counted by a dispatch mode) beyond the ops of this graph.

No cost model was taught the two kernels that only detectors have. RoIAlign is a gather and its gradient a scatter,
both costed by what they read and write. Non-maximum suppression is opaque: costed by its boxes and its bit matrix of
overlaps, and listed in the answer.
"""

from collections.abc import Sequence
from math import ceil

from epochcast.describe.capture.zoo.detection_losses import binary_cross_entropy, box_loss
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import HostLoop, Opaque, Reduce
from epochcast.describe.graph.tensor import DType, Tensor

OBJECTS = 7
"""Annotated boxes of an image, rounded: 860,001 on the 118,287 images of COCO train2017."""
SAMPLED_ANCHORS = 256
POSITIVE_ANCHORS = 128
CANDIDATES = 2000
"""Of every level, before suppression."""
PROPOSALS = 2000
"""Of an image, behind suppression."""
PROPOSAL_LOOP = HostLoop(once=129, per_sample=108 + 17)
"""283 kernels for one image, 499 for three, of which 46 are ops of the graph; 17 reads for every image."""
SAMPLING_LOOP = HostLoop(once=103 + 16, per_sample=36)
"""157 kernels for one image, 229 for three, of which 18 are ops of the graph; 16 reads."""


def overlaps(b: Builder, anchors: int, name: str = "overlaps") -> Tensor:
    """Intersection over union of every anchor with every object of its image, to match them."""
    with b.scope(name):
        boxes, objects = b.constant("anchors", (anchors, 1)), b.input("objects", (1, OBJECTS))
        return b.elementwise("iou", boxes, objects, name="iou")


def flat(b: Builder, x: Tensor, values: int, name: str) -> Tensor:
    """(N, A·values, H, W) → (N, H·W·A, values): a copy, since channels come last."""
    batch, channels, *sizes = x.shape
    count = channels // values
    for size in sizes:
        count *= size
    return b.copy("permute", x, (batch, count, values), name=name)


def region_proposals(
    b: Builder, levels: Sequence[Tensor], *, anchors: int, channels: int | None = None
) -> tuple[list[Tensor], Tensor]:
    """The losses of the proposal network and the boxes of every image, (N, proposals, 4).

    One head for all levels: a 3x3 convolution, `anchors` scores and boxes per position.
    """
    with b.scope("rpn"):
        scores, deltas = [], []
        for index, level in enumerate(levels):
            x = b.conv(level, channels or level.shape[1], 3, padding=1, name="head.conv.0.0")
            x = b.relu(x, name="head.conv.0.1")
            score = b.conv(x, anchors, 1, name="head.cls_logits")
            delta = b.conv(x, 4 * anchors, 1, name="head.bbox_pred")
            scores.append(flat(b, score, 1, f"scores.{index}"))
            deltas.append(flat(b, delta, 4, f"deltas.{index}"))
        logits, boxes = b.concatenate(scores, name="scores"), b.concatenate(deltas, name="deltas")
        best = [_best(b, score, index) for index, score in enumerate(scores)]
        proposals = _suppressed(b, b.concatenate(best, name="best"), boxes)
        looped(b, PROPOSAL_LOOP, proposals, "each_image")
        overlaps(b, logits.shape[1])
        sampled = b.gather("index", logits, (b.batch, SAMPLED_ANCHORS), name="sampled")
        positive = b.gather("index", boxes, (b.batch, POSITIVE_ANCHORS, 4), name="positive")
        losses = [binary_cross_entropy(b, sampled, "loss_objectness"), box_loss(b, positive, "loss_rpn_box_reg")]
    return losses, proposals


def _best(b: Builder, score: Tensor, index: int) -> Tensor:
    count = min(CANDIDATES, score.shape[1])
    return b.op(Reduce("topk"), [score], [(b.batch, count)], name=f"topk.{index}")[0]


def _suppressed(b: Builder, scores: Tensor, deltas: Tensor) -> Tensor:
    """The best boxes decoded, and those that overlap a better one taken out (Girshick et al. 2014)."""
    count = scores.shape[1]
    boxes = b.elementwise("decode", b.gather("index", deltas, (b.batch, count, 4), name="candidates"), name="decode")
    shapes = [(b.batch, min(PROPOSALS, count), 4), (b.batch, count, ceil(count / 64))]
    return b.op(Opaque("nms"), [boxes, scores], shapes, dtypes=[boxes.dtype, DType.INT64], name="nms")[0]


def looped(b: Builder, loop: HostLoop, boxes: Tensor, name: str) -> None:
    """What Python does with the boxes of one image after another."""
    b.op(loop, [boxes], [(boxes.shape[0], 1)], name=name)


def sampled_boxes(b: Builder, proposals: Tensor, count: int, name: str = "sampled") -> Tensor:
    """`count` boxes of every image, matched with its objects, (N·count, 4)."""
    overlaps(b, proposals.shape[1], f"{name}.overlaps")
    looped(b, SAMPLING_LOOP, proposals, f"{name}.each_image")
    return b.gather("index", proposals, (b.batch * count, 4), name=name)


def region_features(b: Builder, levels: Sequence[Tensor], boxes: Tensor, size: int, name: str) -> Tensor:
    """RoIAlign (He et al. 2017): `size` x `size` features of every box, (boxes, C, size, size).

    Each level is asked for its share of the boxes, and the shares are copied together.
    """
    shares = [boxes.shape[0] // b.batch // len(levels) * b.batch] * len(levels)
    with b.scope(name):
        parts = [
            b.gather("roi_align", level, (share, level.shape[1], size, size), boxes, name=f"level{index}")
            for index, (level, share) in enumerate(zip(levels, shares, strict=True))
        ]
        return parts[0] if len(parts) == 1 else b.concatenate(parts, axis=0, name="join")
