"""Homework, problem 2: tf.distribute on 1 to 16 K80s, strong and weak; the three all-reduces of MirroredStrategy.

ResNet-50 on Fashion-MNIST, 10 epochs, batch 256: strong scaling shares it out, weak scaling gives it to every GPU.
Sixteen GPUs sit in two boxes, where MultiWorkerMirroredStrategy takes over.
"""

from itertools import pairwise

import epochcast as ec

JOB = {"device": "K80", "strategy": "mirrored", "dataset": "fashion-mnist", "epochs": 10, "input_shape": (3, 32, 32)}


def main() -> None:
    both = ec.scaling("resnet50", gpus=(1, 2, 4, 8, 16), batch=256, regime="both", link="ethernet_10g", **JOB)
    for series in both.series:
        batches = [row.forecast.batch_per_gpu for row in series.rows]
        best = max(series.rows, key=lambda row: row.forecast.samples_per_second)
        cheapest = min(series.rows, key=lambda row: row.forecast.dollars.mid)
        print(f"{series.regime}: batch per GPU {batches}")
        print(f"  fastest with {best.case.gpus} GPUs, cheapest with {cheapest.case.gpus}")
        print(f"  efficiency never rises: {_falls([row.efficiency for row in series.rows])}")

    names = ("nccl", "hierarchical_copy", "reduce_to_one_device")
    one_box = ec.scaling("resnet50", gpus=(1, 2, 4, 8), batch=256, allreduce=names, **JOB)
    at_eight = sorted((row for row in one_box.rows if row.case.gpus == 8), key=lambda row: row.exposed_comm_seconds)
    print("eight GPUs, fastest first:", ", ".join(row.allreduce for row in at_eight))


def _falls(values: list[float]) -> bool:
    return all(later <= earlier + 1e-9 for earlier, later in pairwise(values))


if __name__ == "__main__":
    main()
