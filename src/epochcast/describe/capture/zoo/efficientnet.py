"""EfficientNet: Tan & Le 2019. One baseline network (B0), scaled in width, depth and input size together.

B1 to B4 have 1.0, 1.1, 1.2, 1.4 times the channels and 1.1, 1.2, 1.4, 1.8 times the blocks, rounded to multiples of
eight and up. Names are torchvision's, and so are the input sizes, those its published weights are evaluated at (B2:
288; the paper: 260).
"""

from math import ceil

from epochcast.describe.capture.zoo.mobilenet import conv_norm, divisible, squeeze_excite
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import Tensor

# Expansion, kernel, stride of the first, channels, blocks: table 1 of the paper.
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


def efficientnet(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    width: float = 1.0,
    depth: float = 1.0,
    classes: int = 1000,
) -> Graph:
    """B0 scaled by `width` and `depth`."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = conv_norm(b, x, divisible(32 * width), 3, stride=2, activation="silu", name="features.0")
    for stage, (expansion, kernel, first_stride, channels, blocks) in enumerate(STAGES, start=1):
        for index in range(ceil(blocks * depth)):
            with b.scope(f"features.{stage}.{index}"):
                x = _mbconv(b, x, expansion, kernel, 1 if index else first_stride, divisible(channels * width))
    x = conv_norm(b, x, 4 * x.shape[1], 1, activation="silu", name=f"features.{len(STAGES) + 1}")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    x = b.dropout(x, name="classifier.0")
    return b.finish(b.linear(x, classes, name="classifier.1"))


def _mbconv(b: Builder, x: Tensor, expansion: int, kernel: int, stride: int, channels: int) -> Tensor:
    """Expand, filter depthwise, squeeze and excite (to a quarter of the block's input), project."""
    y, layer, expanded = x, 0, x.shape[1] * expansion
    if expansion != 1:
        y = conv_norm(b, y, expanded, 1, activation="silu", name="block.0")
        layer = 1
    y = conv_norm(b, y, expanded, kernel, stride=stride, groups=expanded, activation="silu", name=f"block.{layer}")
    y = squeeze_excite(b, y, max(1, x.shape[1] // 4), "silu", "sigmoid", name=f"block.{layer + 1}")
    y = conv_norm(b, y, channels, 1, name=f"block.{layer + 2}")
    return b.add(_stochastic_depth(b, y), x, name="add") if y.shape == x.shape else y


def _stochastic_depth(b: Builder, x: Tensor) -> Tensor:
    """Huang et al. 2016: in training a sample's branch is dropped at random, a product with one number per sample.

    The two tiny kernels that draw the numbers are not listed.
    """
    noise = (x.shape[0], *(1 for _ in x.shape[1:]))
    return b.op(Elementwise("stochastic_depth"), [x], [x.shape, noise], name="stochastic_depth")[0]
