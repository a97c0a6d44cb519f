"""`epochcast models`, `devices`, `instances`, `datasets`: what is known by name."""

from typing import Annotated, Any

import typer

from epochcast.cli.app import Json, app, show


@app.command(epilog="Example: epochcast models --counts")
def models(
    counts: Annotated[
        bool, typer.Option("--counts", help="Build each one and count its parameters and flops.")
    ] = False,
    as_json: Json = False,
) -> int:
    """The built-in zoo."""
    from epochcast.capture.zoo import ZOO
    from epochcast.render import table
    from epochcast.units import show_count

    rows: list[dict[str, Any]] = []
    for name in sorted(ZOO):
        row: dict[str, Any] = {"name": name, "title": ZOO[name].title}
        if counts:
            from epochcast.api import inspect

            seen = inspect(name)
            row |= {"parameters": seen.parameters, "forward_flops_per_sample": seen.forward_flops_per_sample}
            row |= {"input_shape": list(seen.input_shape)}
        rows.append(row)
    columns = [("model", "left"), ("what it is", "left")]
    cells = [[r["name"], r["title"]] for r in rows]
    if counts:
        columns += [("input", "left"), ("parameters", "right"), ("forward", "right")]
        for cell, row in zip(cells, rows, strict=True):
            shape = "×".join(map(str, row["input_shape"]))
            cell += [shape, f"{row['parameters']:,}", show_count(row["forward_flops_per_sample"], "FLOP")]
    show({"models": rows}, as_json, table("models", columns, cells))
    return 0


@app.command(epilog="Example: epochcast devices --json")
def devices(as_json: Json = False) -> int:
    """Devices with their data sheets."""
    from dataclasses import asdict

    from epochcast import render
    from epochcast.hardware.catalogue import devices as all_devices

    rows = all_devices()
    show({"devices": [asdict(d) for d in rows]}, as_json, render.devices(rows))
    return 0


@app.command(epilog="Example: epochcast instances")
def instances(as_json: Json = False) -> int:
    """Cloud instances and their list prices."""
    from dataclasses import asdict

    from epochcast.hardware.catalogue import instances as all_instances
    from epochcast.render import table
    from epochcast.units import show_bytes, show_dollars

    rows = all_instances()
    columns = [("instance", "left"), ("cloud", "left"), ("device", "left"), ("GPUs", "right"), ("per hour", "right")]
    columns += [("CPUs", "right"), ("memory", "right"), ("priced on", "left")]
    cells = [
        [i.name, i.cloud, i.device, str(i.gpus), show_dollars(i.dollars_per_hour), str(i.cpus or "?")]
        + [show_bytes(i.host_memory_bytes) if i.host_memory_bytes else "?", str(i.priced_on)]
        for i in rows
    ]
    body = [{**asdict(i), "priced_on": str(i.priced_on)} for i in rows]
    show(
        {"instances": body},
        as_json,
        table("instances", columns, cells, caption="on-demand list prices of the day named"),
    )
    return 0


@app.command(epilog="Example: epochcast datasets")
def datasets(as_json: Json = False) -> int:
    """Data sets whose samples are counted."""
    from dataclasses import asdict

    from epochcast.hardware.catalogue import datasets as all_datasets
    from epochcast.render import table
    from epochcast.units import show_bytes

    rows = all_datasets()
    columns = [
        ("data set", "left"),
        ("task", "left"),
        ("training", "right"),
        ("validation", "right"),
        ("sample", "left"),
        ("each", "right"),
    ]
    cells = [
        [d.name, d.task, f"{d.training_samples:,}", f"{d.validation_samples:,}"]
        + ["×".join(map(str, d.sample_shape)), show_bytes(d.bytes_per_sample)]
        for d in rows
    ]
    show({"datasets": [asdict(d) for d in rows]}, as_json, table("data sets", columns, cells))
    return 0
