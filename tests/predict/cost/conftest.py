"""Small traces and a device with round numbers, for hand-worked costs."""

from collections.abc import Callable

import pytest

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace, trace_from
from epochcast.hardware.device import Device

Step = Callable[..., Trace]


def round_device(
    generation: str = "volta", *, flops_per_second: float = 1e12, bytes_per_second: float = 1e11
) -> Device:
    return Device(
        name="round",
        vendor="NVIDIA",
        kind="gpu",
        generation=generation,
        year=2020,
        compute_units=10,
        clock_hertz=1e9,
        peak_flops_per_second={"fp32": flops_per_second, "fp16": 4 * flops_per_second},
        memory_bytes=2**33,
        memory_bytes_per_second=bytes_per_second,
        l2_bytes=None,
        launch_seconds=None,
        interconnect="pcie3",
        host_link="pcie3",
        tensor_cores=True,
        source="made up for tests",
        verified=False,
    )


def every_class(batch: int) -> Graph:
    """A network with most op classes in it, an opaque op among them."""
    b = Builder("every_class", batch)
    x = b.input("image", (3, 32, 32))
    x = b.relu(b.batch_norm(b.conv(x, 16, 3, padding=1, bias=False, name="conv"), name="bn"), name="relu")
    x = b.conv(x, 16, 3, padding=1, groups=16, name="depthwise")
    x = b.conv(x, 32, 3, stride=2, padding=1, groups=4, name="grouped")
    x = b.max_pool(b.conv(x, 64, 1, name="pointwise"), 3, 2, name="pool")
    x = b.conv_transposed(x, 32, 2, stride=2, name="up")
    x = b.opaque("fancy", [x], [x.shape], name="fancy")[0]
    tokens = b.layer_norm(b.view(x, (batch, x.shape[2] * x.shape[3], 32)), name="ln")
    heads = b.view(tokens, (batch, 4, tokens.shape[1], 8))
    tokens = b.view(b.attention(heads, heads, heads, name="attention"), tokens.shape)
    tokens = b.dropout(b.recurrent(tokens, 16, name="lstm"), name="dropout")
    return b.finish(b.linear(b.flatten(tokens), 10, name="fc"))


def conv_net(batch: int) -> Graph:
    """conv 3x3, ReLU, 2x2 pool, fully connected, on 8x8 images."""
    b = Builder("conv_net", batch)
    x = b.relu(b.conv(b.input("image", (3, 8, 8)), 4, 3, padding=1, bias=False, name="conv1"), name="relu1")
    x = b.relu(b.conv(x, 8, 3, padding=1, bias=False, name="conv2"), name="relu2")
    x = b.flatten(b.max_pool(x, 2, name="pool"))
    return b.finish(b.linear(x, 10, bias=False, name="fc"))


NETWORKS = {"every_class": every_class, "conv_net": conv_net}


@pytest.fixture(scope="session")
def device() -> Device:
    """1 Tflop/s in fp32, 4 on its tensor cores, 100 GB/s."""
    return round_device()


@pytest.fixture(scope="session")
def make_device() -> Callable[..., Device]:
    """The same with another generation, `flops_per_second` or `bytes_per_second`."""
    return round_device


@pytest.fixture(scope="session")
def step() -> Step:
    """`step(network, batch, **recipe)`: one training step of "every_class" or "conv_net"."""

    def make(network: str = "every_class", batch: int = 4, **recipe: str) -> Trace:
        return trace_from(NETWORKS[network], Recipe(batch, **recipe)).rebatch(batch)  # type: ignore[arg-type]

    return make
