"""A thousand configurations: five devices, four precisions, fifty batch sizes, of one captured model.

The model is built once for each precision, at two batch sizes; every other batch follows by arithmetic.
"""

from itertools import product

import epochcast as ec
from epochcast.api import find_model

DEVICES = ("T4", "V100", "A100", "L4", "H100")
PRECISIONS = ("fp32", "tf32", "amp", "amp_bf16")
BATCHES = range(8, 408, 8)


def main() -> None:
    model = find_model("resnet18")
    answers = [
        ec.forecast(model, device=device, batch=batch, precision=precision)
        for device, precision, batch in product(DEVICES, PRECISIONS, BATCHES)
    ]
    print(f"{len(answers):,} configurations, {sum(answer.fits for answer in answers):,} fit")
    per_sample = [answer.trace.flops["matrix"] / answer.batch_per_gpu for answer in answers]
    print(f"matrix work per sample, the same in all: {max(per_sample) - min(per_sample) < 1}")
    steps = {batch: _seconds(model, batch) for batch in BATCHES}
    print("a larger batch never takes a shorter step:", list(steps.values()) == sorted(steps.values()))


def _seconds(model: object, batch: int) -> float:
    return ec.forecast(model, device="V100", batch=batch).step.seconds.mid


if __name__ == "__main__":
    main()
