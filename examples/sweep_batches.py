"""A thousand configurations: five devices, four precisions, fifty batch sizes, of one captured model.

The model is built once for each precision, at two batch sizes; every other batch follows by arithmetic.
"""

from itertools import product

import epochcast as ec
from epochcast.api import find_model
from epochcast.describe.graph.precision import find_precision

DEVICES = ("T4", "V100", "A100", "L4", "H100")
PRECISIONS = ("fp32", "tf32", "amp", "amp_bf16")
BATCHES = range(16, 816, 16)


def main() -> None:
    model = find_model("resnet18")
    answers = [
        ec.forecast(model, device=device, batch=batch, precision=precision)
        for device, precision, batch in product(DEVICES, PRECISIONS, BATCHES)
    ]
    print(f"{len(answers):,} configurations, {sum(answer.fits for answer in answers):,} fit")
    per_sample = [answer.flops_per_sample for answer in answers]
    print(f"matrix work per sample, the same in all: {max(per_sample) - min(per_sample) < 1}")
    for precision in ("fp32", "amp"):
        small = [a for a in answers if a.device == "T4" and a.precision == find_precision(precision).name]
        largest = max(answer.batch_per_gpu for answer in small if answer.fits)
        print(f"T4, {precision}: the largest batch of the sweep that is not excluded is {largest}")


if __name__ == "__main__":
    main()
