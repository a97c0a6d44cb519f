"""A reviewer's questions: what does this change cost, how sure is that, which layers did it, and may it be merged?"""

import epochcast as ec


def main() -> None:
    change = ec.diff(
        "resnet50", "resnet101", device="A100", batch=64, precision="amp", dataset="imagenet-1k", epochs=90
    )
    assert change.dollars is not None
    for what, ratio in (("step", change.step_seconds), ("cost", change.dollars), ("memory", change.peak_bytes)):
        print(f"{what}: {ratio.mid - 1:+.0%} ({ratio.low - 1:+.0%} to {ratio.high - 1:+.0%})")
    first = max(change.layers, key=lambda layer: layer.seconds_change)
    print(f"most of it: {first.name.split('.')[0]}")
    try:
        ec.testing.assert_forecast(
            "resnet101", device="A100", batch=64, precision="amp", dataset="imagenet-1k", epochs=90, max_dollars=50
        )
    except AssertionError as refused:
        print(refused)


if __name__ == "__main__":
    main()
