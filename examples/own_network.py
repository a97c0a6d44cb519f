"""A network of one's own, written with the Builder: no framework needed.

`Builder` checks shapes as it goes; loss, backward pass and update are derived.
"""

import epochcast as ec
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor


def small_resnet(batch: int) -> Graph:
    """A stem, three residual blocks and a classifier on 32x32 images."""
    b = Builder("small_resnet", batch)
    x = b.relu(b.conv(b.input("image", (3, 32, 32)), 32, 3, padding=1, name="stem"), name="stem.relu")
    for index in range(3):
        with b.scope(f"block{index}"):
            x = residual(b, x)
    x = b.flatten(b.adaptive_average_pool(x, name="pool"))
    return b.finish(b.linear(x, 10, name="head"))


def residual(b: Builder, x: Tensor) -> Tensor:
    inner = b.relu(b.batch_norm(b.conv(x, 32, 3, padding=1, bias=False, name="conv1"), name="norm1"), name="relu1")
    inner = b.batch_norm(b.conv(inner, 32, 3, padding=1, bias=False, name="conv2"), name="norm2")
    return b.relu(b.add(inner, x, name="add"), name="relu2")


def main() -> None:
    model = BuiltModel("small_resnet", small_resnet)
    for row in ec.inspect(model).brief().layers:
        shape = "x".join(map(str, row.output_shape))
        print(f"{row.name:14} {shape:9} {row.parameters:7,} parameters {row.forward_flops:11,} flops")
    answer = ec.forecast(model, device="T4", batch=256, optimizer="adam", dataset="cifar10", epochs=30)
    need = f"about {answer.peak_bytes.mid / 2**30:.1f} GiB"
    print(f"{answer.steps_per_epoch} steps per epoch; {need}, fits: {answer.fits}")


if __name__ == "__main__":
    main()
