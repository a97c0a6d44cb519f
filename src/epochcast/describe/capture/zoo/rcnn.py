"""Two-stage detectors: Faster R-CNN (Ren et al. 2015), Mask R-CNN (He et al. 2017), Cascade R-CNN (Cai & Vasconcelos
2018), and their parts alone, as they are trained: sampled anchors and boxes, losses included.

`neck` is where features come from: a feature pyramid (`fpn`), the fourth stage, with the fifth run over every region
(`c4`), or a fifth stage that is dilated instead of strided (`dc5`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from epochcast.describe.capture.zoo.proposals import (
    PROPOSALS,
    looped,
    region_features,
    region_proposals,
    sampled_boxes,
)
from epochcast.describe.capture.zoo.pyramid import Backbone, levels_of, padded_image
from epochcast.describe.capture.zoo.region_heads import (
    MASK_LOOP,
    MASK_TARGETS,
    POSITIVE_BOXES,
    SAMPLED_BOXES,
    box_head,
    box_losses,
    keypoint_losses,
    mask_losses,
)
from epochcast.describe.capture.zoo.resnet import stage
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import UnknownName

NECKS = ("fpn", "c4", "dc5")
PYRAMID_ANCHORS = 3
"""Shapes of a level, which has one scale."""
SINGLE_ANCHORS = 15
"""Five scales and three shapes where there is one level."""
NOTES = (f"{SAMPLED_BOXES} boxes are sampled per image, {POSITIVE_BOXES} of them positive",)


@dataclass(frozen=True, slots=True)
class Heads:
    """What is predicted of regions. A cascade refines boxes that many times; `masks` are predicted once ("one") or by
    each of its stages ("every"), their targets cropped on the device where `crops_masks`, or drawn by Python on the
    host where `draws_masks`. `classes` count the background.
    """

    cascade: int = 1
    boxes: bool = True
    masks: str = ""
    crops_masks: bool = False
    draws_masks: bool = False
    keypoints: bool = False
    classes: int = 91
    boxes_per_class: bool = True

    def has_masks(self, number: int) -> bool:
        """Whether a stage of the cascade predicts masks."""
        return self.masks == "every" or (self.masks == "one" and number == self.cascade - 1)


def rcnn(
    batch: int,
    input_shape: tuple[int, ...] = (3, 800, 1333),
    *,
    name: str,
    backbone: Backbone,
    heads: Heads,
    neck: str = "fpn",
    proposes: bool = True,
    relu: str = "relu",
) -> Graph:
    """`proposes` false is Fast R-CNN, whose proposals come with the data; heads without boxes leave the proposal
    network alone. `relu` is the function of the heads.
    """
    if neck not in NECKS:
        raise UnknownName("neck", neck, NECKS)
    b = Builder(name, batch, relu)
    image = padded_image(b, input_shape)
    levels = _levels(b, backbone, image, neck)
    losses: list[Tensor] = []
    if proposes:
        anchors = PYRAMID_ANCHORS if neck == "fpn" else SINGLE_ANCHORS
        losses, proposals = region_proposals(b, levels, anchors=anchors)
    else:
        proposals = b.input("proposals", (PROPOSALS, 4))
    if heads.boxes:
        for number in range(heads.cascade):
            with b.scope("roi_heads" if heads.cascade == 1 else f"roi_heads.{number}"):
                losses += _regions(b, levels[:4], proposals, backbone, neck, heads, number, image)
    return backbone.frozen(b.finish(losses, loss="none", notes=NOTES if heads.boxes else ()))


def _levels(b: Builder, backbone: Backbone, image: Tensor, neck: str) -> list[Tensor]:
    """P2 … P6, or the one level of a network without a pyramid."""
    if neck == "fpn":
        return levels_of(b, backbone, image)
    with b.scope("backbone"):
        last, is_dilated = (3, False) if neck == "c4" else (4, True)
        return backbone.stages(b, image, last=last, dilates_last=is_dilated)[-1:]


def _regions(
    b: Builder,
    levels: Sequence[Tensor],
    proposals: Tensor,
    backbone: Backbone,
    neck: str,
    heads: Heads,
    number: int,
    image: Tensor,
) -> list[Tensor]:
    """The losses of one stage of the heads."""
    boxes = sampled_boxes(b, proposals, SAMPLED_BOXES)
    positive = b.gather("index", boxes, (b.batch * POSITIVE_BOXES, 4), name="positive")
    is_late = neck == "c4"
    features = region_features(b, levels, boxes, 14 if is_late else 7, "box_roi_pool")
    if is_late:
        with b.scope("res5"):
            features = stage(b, features, backbone.residual, 4, backbone.blocks[3])
        x = b.flatten(b.adaptive_average_pool(features, name="avgpool"))
    else:
        x = box_head(b, features)
    classes = heads.classes
    losses = box_losses(b, x, classes=classes, boxes=classes if heads.boxes_per_class else 1)
    if heads.has_masks(number):
        if is_late:
            mask_features = b.gather("index", features, (positive.shape[0], *features.shape[1:]), name="mask_features")
        else:
            mask_features = region_features(b, levels, positive, 14, "mask_roi_pool")
        looped(b, MASK_LOOP, proposals, "masks_of_each_image")
        if heads.draws_masks:
            looped(b, MASK_TARGETS, proposals, "mask_targets")
        full_size = image if heads.crops_masks else None
        losses += mask_losses(b, mask_features, classes=classes, convolutions=0 if is_late else 4, image=full_size)
    if heads.keypoints:
        losses += keypoint_losses(b, region_features(b, levels, positive, 14, "keypoint_roi_pool"))
    return losses
