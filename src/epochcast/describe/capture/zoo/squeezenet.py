"""SqueezeNet: Iandola et al. 2016. A fire module squeezes by 1x1 convolutions, expands by 1x1 and 3x3, joins the two.

Version 1.1 (the authors' later release) pools earlier and needs 2.4 times fewer operations. Names are torchvision's.
"""

from collections.abc import Mapping

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor

POOL = 0
STEMS: Mapping[str, tuple[int, int]] = {"1.0": (96, 7), "1.1": (64, 3)}
"""Channels and kernel of the first convolution."""
FIRES: Mapping[str, tuple[int, ...]] = {
    "1.0": (POOL, 16, 16, 32, POOL, 32, 48, 48, 64, POOL, 64),
    "1.1": (POOL, 16, 16, POOL, 32, 32, POOL, 48, 48, 64, 64),
}
"""Squeezed channels of every fire module, and the pools between them; each expansion is four times as wide."""


def squeezenet(
    batch: int, input_shape: tuple[int, ...] = (3, 224, 224), *, name: str, version: str = "1.0", classes: int = 1000
) -> Graph:
    """The network of a `version`; the classifier is a convolution, averaged over positions."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    channels, kernel = STEMS[version]
    with b.scope("features"):
        x = b.relu(b.conv(x, channels, kernel, stride=2, name="0"), name="1")
        for layer, squeezed in enumerate(FIRES[version], start=2):
            if squeezed == POOL:
                x = b.max_pool(x, 3, 2, ceil_mode=True, name=f"{layer}")
                continue
            with b.scope(f"{layer}"):
                x = _fire(b, x, squeezed)
    with b.scope("classifier"):
        x = b.relu(b.conv(b.dropout(x, name="0"), classes, 1, name="1"), name="2")
        x = b.adaptive_average_pool(x, name="3")
    return b.finish(b.flatten(x))


def _fire(b: Builder, x: Tensor, squeezed: int) -> Tensor:
    x = b.relu(b.conv(x, squeezed, 1, name="squeeze"), name="squeeze_activation")
    pointwise = b.relu(b.conv(x, 4 * squeezed, 1, name="expand1x1"), name="expand1x1_activation")
    threes = b.relu(b.conv(x, 4 * squeezed, 3, padding=1, name="expand3x3"), name="expand3x3_activation")
    return b.concatenate([pointwise, threes])
