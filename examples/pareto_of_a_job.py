"""AI Gauge's offline question (Dube et al. 2019): the configurations for a new job that no other beats in both time and
cost, before anything runs.
"""

import epochcast as ec


def main() -> None:
    answer = ec.plan(
        "resnet50",
        dataset="imagenet-1k",
        epochs=90,
        batch=1024,
        precision="amp",
        clouds=("aws", "azure", "gcp"),
        gpus=(1, 2, 4, 8, 16),
    )
    print(f"{answer.considered} configurations, {len(answer.frontier)} on the frontier")
    for one in answer.frontier:
        hours, dollars = one.total_seconds.mid / 3600, one.dollars.mid
        print(f"{one.offer.name:22} {one.offer.gpus:2} × {one.offer.device.name:30} {hours:5.1f} h  ${dollars:.0f}")
    knee = answer.within(objective="knee").chosen
    assert knee is not None
    print(f"the knee: {knee.offer.name}")


if __name__ == "__main__":
    main()
