"""Detectors that predict at every position at once: RetinaNet (Lin et al. 2017, "Focal loss for dense object
detection") and FCOS (Tian et al. 2019), as they are trained, losses included.

Both run two towers of four 3x3 convolutions over P3 … P7, shared by all levels.
"""

from collections.abc import Callable, Mapping, Sequence

from epochcast.describe.capture.zoo.detection_losses import binary_cross_entropy, box_loss, focal_loss, fused_focal_loss
from epochcast.describe.capture.zoo.proposals import OBJECTS, flat, overlaps
from epochcast.describe.capture.zoo.pyramid import Backbone, levels_of, padded_image
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

TOWER = 4
ANCHORS = 9
"""Three scales and three shapes."""
POSITIVES_PER_OBJECT = 16
"""Positions whose box is trained, for every object: a handful of anchors overlap it by half. An assumption; the loss
of boxes is a thousandth of that of classes.
"""
FOCAL_LOSSES: Mapping[bool, Callable[[Builder, Tensor, str], Tensor]] = {True: fused_focal_loss, False: focal_loss}


def _tower(b: Builder, x: Tensor, norm_groups: int) -> Tensor:
    """Four convolutions, with group normalisation behind each where wanted."""
    step = 3 if norm_groups else 2
    for index in range(0, TOWER * step, step):
        x = b.conv(x, x.shape[1], 3, padding=1, name=f"conv.{index}" if norm_groups else f"conv.{index // 2}.0")
        if norm_groups:
            x = b.norm(x, "group", x.shape[1], name=f"conv.{index + 1}")
        x = b.relu(x, name=f"relu.{index}")
    return x


def _everywhere(
    b: Builder, levels: Sequence[Tensor], outputs: Mapping[str, tuple[int, int]], norms: int
) -> list[Tensor]:
    """A tower over every level and its outputs, by name as (anchors, values), each joined to (N, positions, values)."""
    parts_of: dict[str, list[Tensor]] = {name: [] for name in outputs}
    for index, level in enumerate(levels):
        x = _tower(b, level, norms)
        for name, (anchors, values) in outputs.items():
            y = b.conv(x, anchors * values, 3, padding=1, name=name)
            parts_of[name].append(flat(b, y, values, f"{name}.flat{index}"))
    return [b.concatenate(parts, name=f"{name}.join") for name, parts in parts_of.items()]


def retinanet(
    batch: int,
    input_shape: tuple[int, ...] = (3, 800, 1333),
    *,
    name: str,
    backbone: Backbone,
    classes: int = 91,
    extra: str = "p5",
    fuses_loss: bool = False,
    relu: str = "relu",
) -> Graph:
    """Nine anchors at every position, a sigmoid per class."""
    b = Builder(name, batch, relu)
    levels = levels_of(b, backbone, padded_image(b, input_shape), finest=2, extra=extra)
    with b.scope("head.classification_head"):
        scores = _everywhere(b, levels, {"cls_logits": (ANCHORS, classes)}, 0)[0]
    with b.scope("head.regression_head"):
        deltas = _everywhere(b, levels, {"bbox_reg": (ANCHORS, 4)}, 0)[0]
    overlaps(b, scores.shape[1])
    positive = b.gather("index", deltas, (batch, OBJECTS * POSITIVES_PER_OBJECT, 4), name="positive")
    losses = [FOCAL_LOSSES[fuses_loss](b, scores, "loss_classification"), box_loss(b, positive, "loss_bbox_regression")]
    return backbone.frozen(b.finish(losses, loss="none"))


def fcos(
    batch: int,
    input_shape: tuple[int, ...] = (3, 800, 1333),
    *,
    name: str,
    backbone: Backbone,
    classes: int = 91,
    extra: str = "p5",
    fuses_loss: bool = False,
    relu: str = "relu",
    norm_groups: int = 32,
) -> Graph:
    """One box at every position, a sigmoid per class, and how near the middle of an object the position is."""
    b = Builder(name, batch, relu)
    levels = levels_of(b, backbone, padded_image(b, input_shape), finest=2, extra=extra)
    with b.scope("head.classification_head"):
        scores = _everywhere(b, levels, {"cls_logits": (1, classes)}, norm_groups)[0]
    with b.scope("head.regression_head"):
        outputs = {"bbox_reg": (1, 4), "bbox_ctrness": (1, 1)}
        deltas, centres = _everywhere(b, levels, outputs, norm_groups)
    overlaps(b, scores.shape[1])
    count = OBJECTS * POSITIVES_PER_OBJECT
    boxes = b.gather("index", deltas, (batch, count, 4), name="positive")
    middles = b.gather("index", centres, (batch, count), name="positive_centres")
    losses = [
        FOCAL_LOSSES[fuses_loss](b, scores, "loss_classification"),
        box_loss(b, boxes, "loss_bbox_regression"),
        binary_cross_entropy(b, middles, "loss_bbox_ctrness"),
    ]
    return backbone.frozen(b.finish(losses, loss="none"))
