"""Rows of detection model zoos: which configuration, how many images per GPU, and how large they are.

Images keep their shape: the short side is scaled to s, or less where the long one would exceed L. A batch is padded to
the largest height and width in it. So memory, whose published peak is that of a whole training, is forecast at s x L;
time, whose published value is a mean, at the mean batch:

    height = mean of the largest of n draws of s        width = height · (3/2 − (3/2 − 4/3) / 2ⁿ), at most L

COCO's images are photographs of 4:3 and 3:2 (640x480, 640x427), here taken as equally frequent; the frameworks put
landscapes and portraits in batches of their own. Detectron2 draws s from 640, 672 … 800.

What the tables leave out is from the zoos' own pages (MODEL_ZOO.md of mmdetection 0.6 and 1.0, of detectron2, of
maskrcnn-benchmark) and configurations: SSD trains on 8 images per GPU, mmdetection's C4 detectors on 1; "Fast" of
maskrcnn-benchmark means Faster R-CNN trained end to end; and which PyTorch was used.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epochcast.measure.tables.row_errors import OtherTrainingData, UnknownImageSize

FRAMEWORKS: Mapping[str, str] = {
    "mmdetection_v1": "mmdetection_v1",
    "mmdetection_v3": "mmdetection",
    "detectron2": "detectron2",
    "maskrcnn_benchmark": "maskrcnn_benchmark",
}
"""Sources of detector rows, and the framework whose configurations they name."""
PYTORCH: Mapping[tuple[str, str], tuple[int, int]] = {
    ("mmdetection_v1", "v0.6.0"): (0, 4),
    ("mmdetection_v1", "v1.0rc1"): (1, 1),
    ("detectron2", "2019-2020"): (1, 3),
    ("maskrcnn_benchmark", "1.0 (2018-2019)"): (1, 0),
}
"""The PyTorch version behind a source's own version."""

TIMED_EARLIER: Mapping[tuple[str, str], str] = {
    ("mmdetection_v1", "v0.6.0"): "the table of v0.6.0 was timed with older releases, up to 30 % slower by its notes",
}
"""Tables whose times are not those of the version they name; their memory is."""

OTHER_DATA: Mapping[tuple[str, str], str] = {
    ("detectron2", "mask_rcnn_R_101_FPN_1x"): "LVIS, a thousand classes more than the row says",
    ("detectron2", "mask_rcnn_X_101_32x8d_FPN_1x"): "LVIS, a thousand classes more than the row says",
    ("detectron2", "mask_rcnn_R_50_FPN"): "Cityscapes, other sizes of images than the row says",
    ("detectron2", "faster_rcnn_R_50_C4"): "PASCAL VOC, other sizes of images than the row says",
}
"""Models that the zoo trained on other data than COCO, which the row does not say."""
RESIZED = (3, 800, 1333)
"""A size that no batch has: the limits of the usual scaling, as tables give them."""
NARROW, WIDE = 4 / 3, 3 / 2
SCALE_STEP = 32
_SIZES = re.compile(r"3x\(?(?P<least>\d+)(?:\.\.(?P<most>\d+)\))?x<=(?P<longest>\d+)\b.*")
_SSD_IMAGES, _C4_IMAGES = 8, 1


@dataclass(frozen=True, slots=True)
class DetectorRow:
    """The configuration of a row of a detection zoo; shapes are None where the network has a fixed size."""

    reference: str
    images: int
    mean_shape: tuple[int, ...] | None
    largest_shape: tuple[int, ...] | None


def detector_row(source: str, model: str, images: float, sizes: str) -> DetectorRow:
    """The configuration, images per GPU and their sizes behind a row."""
    if (source, model) in OTHER_DATA:
        raise OtherTrainingData(f"{model}: trained on {OTHER_DATA[source, model]}")
    name = _version_1_name(model) if source == "mmdetection_v1" else model.strip()
    if source == "maskrcnn_benchmark":
        name = re.sub(r"^fast_rcnn", "faster_rcnn", name)
    count = int(images)
    reference = f"{FRAMEWORKS[source]}:{name}"
    if re.match(r"ssd\d+", name):
        return DetectorRow(reference, _SSD_IMAGES, None, None)
    if source == "mmdetection_v1" and "_c4_" in name and not name.startswith("rpn"):
        count = _C4_IMAGES
    match = _SIZES.fullmatch(sizes)
    if match is None:
        raise UnknownImageSize(f"{model}: cannot read image sizes from {sizes!r}")
    least, longest = int(match["least"]), int(match["longest"])
    sides = range(least, int(match["most"] or least) + 1, SCALE_STEP)
    return DetectorRow(reference, count, mean_shape(sides, longest, count), (3, sides[-1], longest))


def mean_shape(short_sides: Sequence[int], longest: int, images: int) -> tuple[int, int, int]:
    """The mean shape of a batch: the formulas above, with every short side equally likely."""
    sides = sorted(short_sides)
    probabilities = [((i + 1) / len(sides)) ** images - (i / len(sides)) ** images for i in range(len(sides))]
    height = sum(side * probability for side, probability in zip(sides, probabilities, strict=True))
    ratio = WIDE - (WIDE - NARROW) / 2**images
    return 3, round(height), round(min(longest, height * ratio))


def _version_1_name(model: str) -> str:
    """Columns of a table, such as "Faster R-CNN|R-50-FPN|caffe|1x", as the name of a configuration; the type of
    Fast R-CNN follows the style.
    """
    method, backbone, *rest = model.split("|")
    if method == "SSD":
        return f"ssd{rest[0]}_{rest[-1]}"
    name = re.sub(r" \(with pre-computed proposals\)", "", method).casefold().replace("r-cnn", "rcnn")
    if "Mask" in rest:
        name = name.replace("fast", "fast_mask")
    body, _, neck = backbone.casefold().rpartition("-")
    not_in_name = {"caffe", "pytorch", "Faster", "Mask"}
    style = "_caffe" if "caffe" in rest else ""
    words = [
        name.replace(" ", "_"),
        body.replace("-", "", 1) + style,
        neck,
        *(w for w in rest if w not in not_in_name),
    ]
    return "_".join(words)
