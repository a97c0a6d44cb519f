"""`epochcast demo`: the tour, offline, in seconds."""

import sys

from epochcast.cli.app import Json, app, show


@app.command(epilog="Example: epochcast demo")
def demo(as_json: Json = False) -> int:
    """A tour: what a job takes, on what, and what a second choice would change."""
    from epochcast import api, render
    from epochcast.units import show_bytes, show_dollars, show_seconds

    job = {"dataset": "imagenet-1k", "epochs": 90}
    first = api.forecast("resnet50", device="V100", batch=64, precision="amp", optimizer="momentum", **job)  # type: ignore[arg-type]
    choices = [
        ("T4", "amp", 64),
        ("V100", "fp32", 64),
        ("V100", "amp", 64),
        ("A100", "amp", 128),
        ("H100", "amp", 128),
    ]
    rows = []
    for device, precision, batch in choices:
        answer = api.forecast(
            "resnet50",
            device=device,
            batch=batch,
            precision=precision,
            optimizer="momentum",
            dataset="imagenet-1k",
            epochs=90,
        )
        assert answer.total_seconds is not None
        cost = show_dollars(answer.dollars.mid) if answer.dollars else "?"
        rows.append(
            [
                answer.placement.device.name,
                precision,
                str(batch),
                f"{answer.samples_per_second:,.0f}",
                f"{show_seconds(answer.total_seconds.low)} … {show_seconds(answer.total_seconds.high)}",
                show_bytes(answer.memory.peak_bytes),
                cost,
            ]
        )
    columns = [
        ("device", "left"),
        ("precision", "left"),
        ("batch", "right"),
        ("samples/s", "right"),
        ("job, 90 % interval", "left"),
    ]
    columns += [("memory ≥", "right"), ("dollars", "right")]
    if as_json:
        show({"forecast": first.as_dict()}, as_json)
        return 0
    show({}, False, render.forecast(first, explain=False))
    show({}, False, render.table("the same job elsewhere", columns, rows))
    sys.stdout.write(
        "next:\n"
        "  epochcast forecast resnet50 --device A100 --batch 128 --precision amp --dataset imagenet-1k --epochs 90 --explain\n"
        "  epochcast inspect vgg19 --no-bias        what a model is made of\n"
        "  epochcast models | devices | instances   what is known by name\n"
        "  epochcast forecast --help                every option\n"
    )
    return 0
