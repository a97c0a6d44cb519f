"""Homework, problem 2.6: two boxes of eight K80s, MultiWorkerMirroredStrategy with AUTO, RING and NCCL."""

import epochcast as ec


def main() -> None:
    answer = ec.scaling(
        "resnet50",
        device="K80",
        gpus=(16,),
        gpus_per_node=8,
        batch=64,
        strategy="multi_worker_mirrored",
        allreduce=("auto", "ring", "nccl"),
        link="ethernet_10g",
        dataset="fashion-mnist",
        epochs=10,
        input_shape=(3, 32, 32),
    )
    best = max(row.forecast.samples_per_second for row in answer.rows)
    for row in answer.rows:
        is_best = row.forecast.samples_per_second > 0.999 * best
        print(f"{row.allreduce}: {row.case.nodes} boxes, batch {row.forecast.global_batch}, best throughput: {is_best}")


if __name__ == "__main__":
    main()
