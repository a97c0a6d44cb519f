"""Backbones of detectors: a residual network that hands on several of its stages, and a feature pyramid over them.

A detector is trained from an ImageNet network on so few images per GPU that the statistics of batch normalisation are
left as they are, and its stem and first stage are not trained at all. What becomes of scale and shift differs:

    constant   x·scale + shift, both buffers in float32, whatever the data: torchvision
    cast       the same in the precision of the data: detectron2, maskrcnn-benchmark
    trained    a batch norm with fixed statistics whose scale and shift are trained: mmdetection
    frozen     the same, not trained: mmdetection with weights from Caffe

Only the first two keep no copy of a norm's input for the backward pass. Names of layers are torchvision's.

The pyramid (Lin et al. 2017, "Feature pyramid networks for object detection"): every stage is brought to 256 channels,
the coarser one is added to it at twice its size, and a 3x3 convolution makes the level.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from epochcast.describe.capture.zoo.resnet import Normalise, ResidualStyle, batch_norm, stage, stem
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import UnknownName

CHANNELS = 256
MULTIPLE = 32
"""Images are padded to a multiple of the coarsest stride, so that every level halves evenly."""


def constant_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    """x·scale + shift, both constant."""
    with b.scope(name):
        scale, shift = (b.constant(part, (x.shape[1], 1, 1)) for part in ("scale", "shift"))
        return b.add(b.mul(x, scale), shift)


def cast_norm(b: Builder, x: Tensor, name: str) -> Tensor:
    """The same, but scale and shift take the precision of the data."""
    with b.scope(name):
        shape = (x.shape[1], 1, 1)
        scale, shift = (b.op(View("constant"), [], [shape], name=part)[0] for part in ("scale", "shift"))
        return b.add(b.mul(x, scale), shift)


NORMS: Mapping[str, Normalise] = {
    "constant": constant_norm,
    "cast": cast_norm,
    "trained": batch_norm,
    "frozen": batch_norm,
}
HAVE_PARAMETERS = ("trained", "frozen")


@dataclass(frozen=True, slots=True)
class Backbone:
    """A residual network of bottlenecks as a detector trains it; `norm` is one of those above."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    groups: int = 1
    width_per_group: int = 64
    norm: str = "constant"
    strides_first: bool = False

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise UnknownName("norm of a backbone", self.norm, NORMS)

    @property
    def residual(self) -> ResidualStyle:
        """Its blocks."""
        return ResidualStyle(True, self.groups, self.width_per_group, NORMS[self.norm], self.strides_first)

    def stages(self, b: Builder, image: Tensor, *, last: int = 4, dilates_last: bool = False) -> list[Tensor]:
        """C2 … C5 of an image (or up to an earlier stage); a dilated last stage keeps the size of the one before."""
        stages = []
        with b.scope("body"):
            x = stem(b, image, self.residual)
            for number, count in enumerate(self.blocks[:last], 1):
                dilation = 2 if dilates_last and number == last else 1
                x = stage(b, x, self.residual, number, count, dilation=dilation)
                stages.append(x)
        return stages

    def frozen(self, graph: Graph) -> Graph:
        """The graph with everything frozen that is: the stem, the first stage, and norms that are not trained."""
        patterns = ["backbone.body.conv1.*", "backbone.body.layer1.*"]
        if self.norm in HAVE_PARAMETERS:
            patterns += ["backbone.body.bn1.*"]
        if self.norm == "frozen":
            patterns += ["*.layer?.*.bn?.*", "*.layer?.*.downsample.1.*"]
        return graph.frozen(patterns)


def padded_image(b: Builder, input_shape: tuple[int, ...]) -> Tensor:
    """The images of a batch, padded to a common size."""
    channels, *sizes = input_shape
    return b.input("image", (channels, *(-(-size // MULTIPLE) * MULTIPLE for size in sizes)))


def pyramid(b: Builder, stages: Sequence[Tensor]) -> list[Tensor]:
    """One level of 256 channels per stage, the finest first."""
    levels: list[Tensor] = []
    above: Tensor | None = None
    with b.scope("fpn"):
        for index in reversed(range(len(stages))):
            lateral = b.conv(stages[index], CHANNELS, 1, name=f"inner_blocks.{index}.0")
            if above is not None:
                enlarged = b.copy("repeat", above, lateral.shape, name=f"upsample.{index}")
                lateral = b.add(lateral, enlarged, name=f"add.{index}")
            above = lateral
            levels.insert(0, b.conv(lateral, CHANNELS, 3, padding=1, name=f"layer_blocks.{index}.0"))
    return levels


def pooled_level(b: Builder, levels: Sequence[Tensor], coarsest_stage: Tensor) -> list[Tensor]:
    """P6: every second element of P5. Two-stage detectors find the largest objects there."""
    return [*levels, b.max_pool(levels[-1], 1, 2, name="fpn.extra_blocks.pool")]


def two_convolved_levels(b: Builder, levels: Sequence[Tensor], source: Tensor) -> list[Tensor]:
    """P6 and P7 by strided convolutions, of P5 or of C5."""
    with b.scope("fpn.extra_blocks"):
        p6 = b.conv(source, CHANNELS, 3, stride=2, padding=1, name="p6")
        p7 = b.conv(b.relu(p6, name="relu"), CHANNELS, 3, stride=2, padding=1, name="p7")
    return [*levels, p6, p7]


def _convolved_from_p5(b: Builder, levels: Sequence[Tensor], coarsest_stage: Tensor) -> list[Tensor]:
    return two_convolved_levels(b, levels, levels[-1])


EXTRAS: Mapping[str, Callable[[Builder, Sequence[Tensor], Tensor], list[Tensor]]] = {
    "pool": pooled_level,
    "c5": two_convolved_levels,
    "p5": _convolved_from_p5,
}
"""What comes on top of a pyramid, by where it comes from."""


def levels_of(b: Builder, backbone: Backbone, image: Tensor, *, finest: int = 1, extra: str = "pool") -> list[Tensor]:
    """The pyramid over the stages from `finest` on (P2 is 1, P3 is 2), and its extra levels."""
    with b.scope("backbone"):
        stages = backbone.stages(b, image)
        return EXTRAS[extra](b, pyramid(b, stages[finest - 1 :]), stages[-1])
