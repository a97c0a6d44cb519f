"""GoogLeNet, Inception v3, and the two inception modules alone.

Szegedy et al. 2015 ("Going deeper with convolutions") and 2016 ("Rethinking the Inception architecture"). The
networks are torchvision's: batch normalisation behind every convolution, and in GoogLeNet 3x3 where the paper has
5x5, a known slip that its weights depend on. Auxiliary heads run in training only; `aux` false drops them and their
parameters.

The modules alone answer the exercise of figure 2 (naive, and with dimension reduction) for 256 channels, with the
widths that Stanford's CS231n uses. Multiply-adds on n positions, and channels that come out:

    naive    n·256·(128 + 3²·192 + 5²·96)                        = n·1,089,536    128 + 192 + 96 + 256 = 672
    reduced  n·(256·(128 + 64 + 64 + 64) + 64·(3²·192 + 5²·96))  = n·346,112      128 + 192 + 96 + 64  = 480

1,116 and 354 million on 32x32, a saving of 68 %. On the lecture's 28x28 that is 854 and 271 million. (Its slide,
lecture 9 of 2017, writes the same six products for the second and totals them at 358 million, which is one 3x3
convolution too many.)
"""

from epochcast.describe.graph.build import Builder, Sizes
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def basic_conv(
    b: Builder, x: Tensor, channels: int, kernel: Sizes, *, stride: int = 1, padding: Sizes = 0, name: str
) -> Tensor:
    """Convolution without bias, batch normalisation, relu."""
    with b.scope(name):
        x = b.conv(x, channels, kernel, stride=stride, padding=padding, bias=False, name="conv")
        return b.relu(b.batch_norm(x, name="bn"), name="relu")


# 1x1, 3x3 reduced, 3x3, 5x5 reduced, 5x5, projected pool: table 1 of the 2015 paper.
GOOGLENET_STAGES = (
    {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64)},
    {
        "4a": (192, 96, 208, 16, 48, 64),
        "4b": (160, 112, 224, 24, 64, 64),
        "4c": (128, 128, 256, 24, 64, 64),
        "4d": (112, 144, 288, 32, 64, 64),
        "4e": (256, 160, 320, 32, 128, 128),
    },
    {"5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)},
)
GOOGLENET_HEADS = {"4a": "aux1", "4d": "aux2"}
GOOGLENET_POOLS = (("maxpool3", 3), ("maxpool4", 2))


def googlenet(
    batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, aux: bool = True, classes: int = 1000
) -> Graph:
    """Nine inception modules; with `aux` two further classifiers, behind 4a and 4d."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = basic_conv(b, x, 64, 7, stride=2, padding=3, name="conv1")
    x = b.max_pool(x, 3, 2, ceil_mode=True, name="maxpool1")
    x = basic_conv(b, x, 64, 1, name="conv2")
    x = basic_conv(b, x, 192, 3, padding=1, name="conv3")
    x = b.max_pool(x, 3, 2, ceil_mode=True, name="maxpool2")
    heads = []
    for stage, modules in enumerate(GOOGLENET_STAGES):
        for label, widths in modules.items():
            with b.scope(f"inception{label}"):
                x = _inception(b, x, widths)
            if aux and label in GOOGLENET_HEADS:
                with b.scope(GOOGLENET_HEADS[label]):
                    heads.append(_googlenet_head(b, x, classes))
        if stage < len(GOOGLENET_POOLS):
            pool, window = GOOGLENET_POOLS[stage]
            x = b.max_pool(x, window, 2, ceil_mode=True, name=pool)
    x = b.dropout(b.flatten(b.adaptive_average_pool(x, name="avgpool")), name="dropout")
    return b.finish([b.linear(x, classes, name="fc"), *reversed(heads)])


def _inception(b: Builder, x: Tensor, widths: tuple[int, ...]) -> Tensor:
    pointwise, threes_reduced, threes, fives_reduced, fives, pooled = widths
    first = basic_conv(b, x, pointwise, 1, name="branch1")
    second = basic_conv(b, x, threes_reduced, 1, name="branch2.0")
    second = basic_conv(b, second, threes, 3, padding=1, name="branch2.1")
    third = basic_conv(b, x, fives_reduced, 1, name="branch3.0")
    third = basic_conv(b, third, fives, 3, padding=1, name="branch3.1")
    fourth = b.max_pool(x, 3, 1, 1, ceil_mode=True, name="branch4.0")
    fourth = basic_conv(b, fourth, pooled, 1, name="branch4.1")
    return b.concatenate([first, second, third, fourth])


def _googlenet_head(b: Builder, x: Tensor, classes: int) -> Tensor:
    x = b.adaptive_average_pool(x, 4, name="avgpool")
    x = b.flatten(basic_conv(b, x, 128, 1, name="conv"))
    x = b.dropout(b.relu(b.linear(x, 1024, name="fc1"), name="relu"), name="dropout")
    return b.linear(x, classes, name="fc2")


def inception_v3(
    batch: int, input_shape: tuple[int, ...] = (3, 299, 299), *, name: str, aux: bool = True, classes: int = 1000
) -> Graph:
    """Eleven modules of five shapes (the paper's figures 5 to 7 and 10); with `aux` one further classifier."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    x = basic_conv(b, x, 32, 3, stride=2, name="Conv2d_1a_3x3")
    x = basic_conv(b, x, 32, 3, name="Conv2d_2a_3x3")
    x = basic_conv(b, x, 64, 3, padding=1, name="Conv2d_2b_3x3")
    x = b.max_pool(x, 3, 2, name="maxpool1")
    x = basic_conv(b, x, 80, 1, name="Conv2d_3b_1x1")
    x = basic_conv(b, x, 192, 3, name="Conv2d_4a_3x3")
    x = b.max_pool(x, 3, 2, name="maxpool2")
    for label, pooled in (("5b", 32), ("5c", 64), ("5d", 64)):
        with b.scope(f"Mixed_{label}"):
            x = _module_a(b, x, pooled)
    with b.scope("Mixed_6a"):
        x = _module_b(b, x)
    for label, inner in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        with b.scope(f"Mixed_{label}"):
            x = _module_c(b, x, inner)
    heads = []
    if aux:
        with b.scope("AuxLogits"):
            heads.append(_inception_v3_head(b, x, classes))
    with b.scope("Mixed_7a"):
        x = _module_d(b, x)
    for label in ("7b", "7c"):
        with b.scope(f"Mixed_{label}"):
            x = _module_e(b, x)
    x = b.flatten(b.dropout(b.adaptive_average_pool(x, name="avgpool"), name="dropout"))
    return b.finish([b.linear(x, classes, name="fc"), *heads])


Steps = tuple[tuple[int, tuple[int, int]], ...]
"""Channels and kernel of the convolutions of a branch; all keep the size."""


def _branch(b: Builder, x: Tensor, name: str, steps: Steps, first: int = 1) -> Tensor:
    for index, (channels, (height, width)) in enumerate(steps, start=first):
        padding = (height // 2, width // 2)
        x = basic_conv(b, x, channels, (height, width), padding=padding, name=f"{name}_{index}")
    return x


def _pooled(b: Builder, x: Tensor, channels: int) -> Tensor:
    return basic_conv(b, b.average_pool(x, 3, 1, 1, name="average_pool"), channels, 1, name="branch_pool")


def _module_a(b: Builder, x: Tensor, pooled: int) -> Tensor:
    pointwise = basic_conv(b, x, 64, 1, name="branch1x1")
    fives = _branch(b, x, "branch5x5", ((48, (1, 1)), (64, (5, 5))))
    threes = _branch(b, x, "branch3x3dbl", ((64, (1, 1)), (96, (3, 3)), (96, (3, 3))))
    return b.concatenate([pointwise, fives, threes, _pooled(b, x, pooled)])


def _module_b(b: Builder, x: Tensor) -> Tensor:
    threes = basic_conv(b, x, 384, 3, stride=2, name="branch3x3")
    double = _branch(b, x, "branch3x3dbl", ((64, (1, 1)), (96, (3, 3))))
    double = basic_conv(b, double, 96, 3, stride=2, name="branch3x3dbl_3")
    return b.concatenate([threes, double, b.max_pool(x, 3, 2, name="max_pool")])


def _module_c(b: Builder, x: Tensor, inner: int) -> Tensor:
    row, column = (1, 7), (7, 1)
    pointwise = basic_conv(b, x, 192, 1, name="branch1x1")
    sevens = _branch(b, x, "branch7x7", ((inner, (1, 1)), (inner, row), (192, column)))
    steps = ((inner, (1, 1)), (inner, column), (inner, row), (inner, column), (192, row))
    return b.concatenate([pointwise, sevens, _branch(b, x, "branch7x7dbl", steps), _pooled(b, x, 192)])


def _module_d(b: Builder, x: Tensor) -> Tensor:
    threes = _branch(b, x, "branch3x3", ((192, (1, 1)),))
    threes = basic_conv(b, threes, 320, 3, stride=2, name="branch3x3_2")
    sevens = _branch(b, x, "branch7x7x3", ((192, (1, 1)), (192, (1, 7)), (192, (7, 1))))
    sevens = basic_conv(b, sevens, 192, 3, stride=2, name="branch7x7x3_4")
    return b.concatenate([threes, sevens, b.max_pool(x, 3, 2, name="max_pool")])


def _module_e(b: Builder, x: Tensor) -> Tensor:
    pointwise = basic_conv(b, x, 320, 1, name="branch1x1")
    threes = _forked(b, _branch(b, x, "branch3x3", ((384, (1, 1)),)), "branch3x3_2")
    double = _branch(b, x, "branch3x3dbl", ((448, (1, 1)), (384, (3, 3))))
    double = _forked(b, double, "branch3x3dbl_3")
    return b.concatenate([pointwise, threes, double, _pooled(b, x, 192)])


def _forked(b: Builder, x: Tensor, name: str) -> Tensor:
    row = basic_conv(b, x, 384, (1, 3), padding=(0, 1), name=f"{name}a")
    column = basic_conv(b, x, 384, (3, 1), padding=(1, 0), name=f"{name}b")
    return b.concatenate([row, column], name=f"{name}_join")


def _inception_v3_head(b: Builder, x: Tensor, classes: int) -> Tensor:
    x = b.average_pool(x, 5, 3, name="average_pool")
    x = basic_conv(b, x, 128, 1, name="conv0")
    x = basic_conv(b, x, 768, 5, name="conv1")
    return b.linear(b.flatten(b.adaptive_average_pool(x, name="avgpool")), classes, name="fc")


def inception_naive(batch: int, input_shape: tuple[int, ...] = (256, 32, 32), *, name: str) -> Graph:
    """Figure 2(a): 1x1, 3x3 and 5x5 convolutions and a pool, side by side. No loss: the gradient comes from above."""
    b = Builder(name, batch)
    x = b.input("features", input_shape)
    pointwise = _rectified(b, x, 128, 1, "conv1x1")
    threes = _rectified(b, x, 192, 3, "conv3x3")
    fives = _rectified(b, x, 96, 5, "conv5x5")
    return b.finish(b.concatenate([pointwise, threes, fives, b.max_pool(x, 3, 1, 1, name="pool")]), loss="none")


def inception_reduced(batch: int, input_shape: tuple[int, ...] = (256, 32, 32), *, name: str) -> Graph:
    """Figure 2(b): 64 channels in front of the 3x3 and 5x5 convolutions and behind the pool."""
    b = Builder(name, batch)
    x = b.input("features", input_shape)
    pointwise = _rectified(b, x, 128, 1, "conv1x1")
    threes = _rectified(b, _rectified(b, x, 64, 1, "reduce3x3"), 192, 3, "conv3x3")
    fives = _rectified(b, _rectified(b, x, 64, 1, "reduce5x5"), 96, 5, "conv5x5")
    pooled = _rectified(b, b.max_pool(x, 3, 1, 1, name="pool"), 64, 1, "project")
    return b.finish(b.concatenate([pointwise, threes, fives, pooled]), loss="none")


def _rectified(b: Builder, x: Tensor, channels: int, kernel: int, name: str) -> Tensor:
    return b.relu(b.conv(x, channels, kernel, padding=kernel // 2, name=name), name=f"{name}.relu")
