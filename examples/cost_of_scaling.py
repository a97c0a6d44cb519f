"""The homework's cost plots: ten epochs of ResNet-50 on Fashion-MNIST with 1 to 16 K80s, strong and weak scaling."""

from pathlib import Path
from tempfile import TemporaryDirectory

import epochcast as ec
from epochcast.surfaces import charts


def main() -> None:
    plans = {
        regime: ec.plan(
            "resnet50",
            dataset="fashion-mnist",
            input_shape=(3, 32, 32),
            epochs=10,
            batch=batch,
            batch_policy=policy,
            devices=("K80",),
            clouds=("gcp",),
            gpus=(1, 2, 4, 8, 16),
            nodes=(1, 2, 4, 8, 16),
            boot_seconds=0.0,  # the homework's machines are up
            image_seconds=0.0,
            data_seconds=0.0,
        )
        for regime, policy, batch in (("strong", "fixed", 256), ("weak", "scale", 256))
    }
    print("GPUs      strong: time and cost        weak: time and cost")
    for gpus in (1, 4, 8, 16):
        cells = []
        for plan in plans.values():
            best = min((one for one in plan.candidates if one.offer.gpus == gpus), key=lambda one: one.dollars.mid)
            cells.append(f"{best.total_seconds.mid / 60:8.1f} min  ${best.dollars.mid:6.2f}")
        print(f"{gpus:4}  {cells[0]:>26} {cells[1]:>26}")
    with TemporaryDirectory() as folder:
        plot = Path(folder) / "strong.svg"
        charts.save_chart(charts.plan(plans["strong"].within(objective="cheapest")), plot)
        print(f"cost against time: {plot.name}")


if __name__ == "__main__":
    main()
