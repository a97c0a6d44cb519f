"""What is predicted of every region: its class and box, its mask, its keypoints; each with its loss.

Boxes: two products of 1,024 over 7x7 features (Lin et al. 2017). Masks: four 3x3 convolutions over 14x14 features, a
transposed one to 28x28 (He et al. 2017). Keypoints: eight convolutions of 512 channels, heatmaps of 56x56. Masks and
keypoints are predicted of positive boxes only; as many are counted as a trainer samples at most.
"""

from epochcast.describe.capture.zoo.detection_losses import binary_cross_entropy, box_loss, cross_entropy
from epochcast.describe.capture.zoo.proposals import OBJECTS
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Copy, Gather, HostLoop
from epochcast.describe.graph.tensor import DType, Tensor

SAMPLED_BOXES = 512
POSITIVE_BOXES = 128
"""At most a quarter of the sampled."""
KEYPOINTS = 17
MASK_LOOP = HostLoop(once=75 + 10)
"""248 - 157 kernels more than without masks, of which 18 are ops of the graph, and as many more reads."""
MASK_TARGETS = HostLoop(work="mask_targets")
"""Polygons of every positive box, cropped and drawn by the host."""


def box_head(b: Builder, features: Tensor, *, width: int = 1024) -> Tensor:
    """Two products over the flattened features of every box."""
    x = b.flatten(features)
    with b.scope("box_head"):
        x = b.relu(b.linear(x, width, name="fc6"), name="relu6")
        return b.relu(b.linear(x, width, name="fc7"), name="relu7")


def box_losses(b: Builder, x: Tensor, *, classes: int, boxes: int) -> list[Tensor]:
    """Class scores and `boxes` boxes of every region (one per class, or one for all), and their losses."""
    with b.scope("box_predictor"):
        scores = b.linear(x, classes, name="cls_score")
        deltas = b.linear(x, 4 * boxes, name="bbox_pred")
        positive = b.gather("index", deltas, (b.batch * POSITIVE_BOXES, 4), name="positive")
        return [cross_entropy(b, scores, "loss_classifier"), box_loss(b, positive, "loss_box_reg")]


def mask_losses(
    b: Builder, x: Tensor, *, classes: int, convolutions: int = 4, image: Tensor | None = None
) -> list[Tensor]:
    """A mask per class of every positive region; the target's class has the loss. With an image, targets are cropped on
    the device out of masks of its size.
    """
    for index in range(convolutions):
        x = b.relu(b.conv(x, 256, 3, padding=1, name=f"mask_head.{index}.0"), name=f"mask_head.{index}.1")
    with b.scope("mask_predictor"):
        x = b.relu(b.conv_transposed(x, 256, 2, stride=2, name="conv5_mask"), name="relu")
        x = b.conv(x, classes, 1, name="mask_fcn_logits")
        logits = b.gather("index", x, (x.shape[0], *x.shape[2:]), name="own_class")
        targets = None if image is None else _cropped_targets(b, logits, image)
        return [binary_cross_entropy(b, logits, "loss_mask", targets)]


def _cropped_targets(b: Builder, like: Tensor, image: Tensor) -> Tensor:
    """One mask of the image's size for every positive box, as bytes and as numbers, of one image after the other."""
    shape = (POSITIVE_BOXES, *image.shape[2:])
    masks = b.constant("masks", (OBJECTS, *image.shape[2:]), DType.UINT8)
    masks_of_boxes = b.op(Gather("index"), [masks], [shape], dtypes=[DType.UINT8], name="masks_of_boxes")[0]
    wide = b.op(Copy("cast"), [masks_of_boxes], [shape], dtypes=[like.dtype], name="masks_as_numbers")[0]
    return b.gather("roi_align", wide, like.shape, name="mask_targets")


def keypoint_losses(b: Builder, x: Tensor) -> list[Tensor]:
    """A heatmap per keypoint of every positive region; each is a classification of its 56x56 positions."""
    for index in range(8):
        x = b.relu(
            b.conv(x, 512, 3, padding=1, name=f"keypoint_head.{2 * index}"), name=f"keypoint_head.{2 * index + 1}"
        )
    with b.scope("keypoint_predictor"):
        x = b.conv_transposed(x, KEYPOINTS, 4, stride=2, padding=1, name="kps_score_lowres")
        size = 2 * x.shape[2]
        x = b.copy("repeat", x, (*x.shape[:2], size, size), name="upsample")
        return [cross_entropy(b, b.view(x, (x.shape[0] * KEYPOINTS, size * size)), "loss_keypoint")]
