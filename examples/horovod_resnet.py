"""Homework, problem 1: Horovod on 1 to 16 GPUs, two boxes at the end. ResNet-50, synthetic data, 25 epochs.

Horovod scales weakly: every GPU keeps its batch of 64, so that 16 of them take 1,024 images a step.
"""

import epochcast as ec
from epochcast.decide.scaling import Scaling


def main() -> None:
    answer = ec.scaling(
        "resnet50",
        device="V100",
        topology="p3.16xlarge",
        gpus=(1, 2, 4, 8, 16),
        batch=64,
        strategy="horovod",
        dataset="imagenet-1k",
        epochs=25,
    )
    print("GPUs  effective batch  faster than before  efficiency above 80 %")
    for row, before in zip(answer.rows, (None, *answer.rows), strict=False):
        is_faster = before is not None and row.forecast.samples_per_second > before.forecast.samples_per_second
        print(f"{row.case.gpus:4}  {row.forecast.global_batch:15}  {is_faster!s:18}  {row.efficiency > 0.8}")
    print("weak scaling:", _is_weak(answer))


def _is_weak(answer: Scaling) -> bool:
    return len({row.forecast.batch_per_gpu for row in answer.rows}) == 1


if __name__ == "__main__":
    main()
