"""The Keras networks of Wattanasirichaigoon & Ranglani 2020, "Complexity Estimation of Deep Learning Models".

All are stacks of one shape: convolution, relu, 2x2 max pool; then dense layers. The report trains them in TensorFlow
on MNIST, CIFAR-10 and Patch Camelyon. A closing softmax is part of the loss here, as Keras folds it into its cross
entropy.
"""

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def mnist_cnn(batch: int, input_shape: tuple[int, ...] = (1, 28, 28), *, name: str, convolutions: int = 3) -> Graph:
    """28² → 26² → 13² → 11² → 5² (→ 3² → 1²), 32 channels throughout; three convolutions are printed in the report.

    Three: 320 + 2·9,248 + 4,224 + 1,290 = 24,330 parameters. Two: 320 + 9,248 + 102,528 + 1,290 = 113,386.
    """
    b = Builder(name, batch)
    x = _stack(b, b.input("image", input_shape), (32,) * convolutions)
    return b.finish(_dense(b, x, (128, 10)))


def cifar10_cnn(batch: int, input_shape: tuple[int, ...] = (3, 32, 32), *, name: str) -> Graph:
    """32² → 30² → 15² → 13² → 6² → 4² → 2²; 288,746 parameters.

    1,792 + 36,928 + 18,464 in convolutions, 66,048 + 131,328 + 32,896 + 1,290 in products.
    """
    b = Builder(name, batch)
    x = _stack(b, b.input("image", input_shape), (64, 64, 32))
    return b.finish(_dense(b, x, (512, 256, 128, 10)))


def patch_camelyon_cnn(batch: int, input_shape: tuple[int, ...] = (3, 96, 96), *, name: str) -> Graph:
    """96² halved six times; one output through a sigmoid, binary cross entropy. 19,941,381 parameters, 79.8 MB.

    7,168 + 590,080 + 1,180,160 + 2,359,808 + 4,719,616 + 9,438,208 in convolutions,
    1,053,700 + 526,848 + 65,664 + 129 in products. (1,028 units, not 1,024: so the report.)
    """
    b = Builder(name, batch)
    x = _stack(b, b.input("image", input_shape), (256, 256, 512, 512, 1024, 1024), padding=1)
    x = _dense(b, x, (1028, 512, 128, 1))
    return b.finish(b.elementwise("sigmoid", x, name="sigmoid"), loss="bce")


def _stack(b: Builder, x: Tensor, channels: tuple[int, ...], padding: int = 0) -> Tensor:
    for layer, width in enumerate(channels, start=1):
        x = b.relu(b.conv(x, width, 3, padding=padding, name=f"conv{layer}"), name=f"relu{layer}")
        x = b.max_pool(x, 2, 2, name=f"pool{layer}")
    return b.flatten(x)


def _dense(b: Builder, x: Tensor, widths: tuple[int, ...]) -> Tensor:
    for layer, width in enumerate(widths, start=1):
        x = b.linear(x, width, name=f"fc{layer}")
        if layer < len(widths):
            x = b.relu(x, name=f"fc{layer}.relu")
    return x
