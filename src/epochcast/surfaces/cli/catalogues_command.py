"""`epochcast models`, `devices`, `datasets`, `links`, `topologies`: the catalogues."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import NAMES, Json, Wide, app, show
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from epochcast.hardware.device import Device


@app.command(epilog="Example: epochcast models --counts", cls=GroupedCommand, rich_help_panel=NAMES)
def models(
    counts: Annotated[
        bool, typer.Option("--counts", help="Build each one and count its parameters and flops.")
    ] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List built-in models and known Hugging Face models."""
    from epochcast.describe.capture.hub import HUB
    from epochcast.describe.capture.zoo import ZOO, zoo_model

    rows: list[dict[str, Any]] = [{"name": name, "title": ZOO[name].title} for name in sorted(ZOO)]
    if counts:
        from epochcast.describe.capture.inspection import matrix_flops

        for row in _progress(rows, "counting"):
            graph = zoo_model(row["name"]).graph(1)
            row["input_shape"] = list(graph.inputs[0].shape[1:])
            row["parameters"] = graph.parameter_count
            row["forward_flops_per_sample"] = matrix_flops(graph)
    hub_rows = [
        {
            "id": name,
            "model": hub_model.reference or None,
            "parameters": hub_model.parameters,
            "aliases": list(hub_model.aliases),
        }
        for name, hub_model in HUB.items()
    ]

    def view() -> Any:
        from rich.console import Group

        from epochcast.surfaces import render

        return Group(render.models(rows), render.hub_models(hub_rows))

    show({"models": rows, "hub": hub_rows}, as_json, view, wide=wide)
    return 0


@app.command(epilog="Example: epochcast devices 'RTX 4090' --toml", cls=GroupedCommand, rich_help_panel=NAMES)
def devices(
    names: Annotated[
        list[str] | None, typer.Argument(help="Only these, by name; or data sheets of your own (.toml).")
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="The first as a data sheet, to change and to give as --device FILE.toml.")
    ] = False,
    wide: Wide = False,
    as_json: Json = False,
) -> int:
    """List devices with their data sheets."""
    from dataclasses import asdict

    from epochcast.errors import BadInput
    from epochcast.hardware.catalogue import devices as all_devices
    from epochcast.hardware.catalogue import find_device

    rows = tuple(find_device(name) for name in names) if names else all_devices()
    if toml and not names:
        raise BadInput("--toml needs the name of a device")

    def view() -> Any:
        from epochcast.surfaces import render

        return _sheet(rows[0]) if toml else render.devices(rows)

    show({"devices": [asdict(row) for row in rows]}, as_json, view, wide=wide)
    return 0


def _sheet(device: "Device") -> Any:
    from rich.text import Text

    from epochcast.hardware.data_sheet import data_sheet_text

    return Text(data_sheet_text(device).rstrip("\n"))


@app.command(epilog="Example: epochcast datasets", cls=GroupedCommand, rich_help_panel=NAMES)
def datasets(wide: Wide = False, as_json: Json = False) -> int:
    """List datasets and their sizes."""
    from dataclasses import asdict

    from epochcast.describe.datasets import datasets as all_datasets

    rows = all_datasets()

    def view() -> Any:
        from epochcast.surfaces import render

        return render.datasets(rows)

    show({"datasets": [asdict(row) for row in rows]}, as_json, view, wide=wide)
    return 0


@app.command(epilog="Example: epochcast links", cls=GroupedCommand, rich_help_panel=NAMES)
def links(as_json: Json = False) -> int:
    """List links between GPUs and between nodes."""
    from dataclasses import asdict

    from epochcast.hardware.catalogue import links as all_links

    rows = all_links()

    def view() -> Any:
        from epochcast.surfaces import render

        return render.links(rows)

    show({"links": [asdict(row) for row in rows]}, as_json, view)
    return 0


@app.command(epilog="Example: epochcast topologies", cls=GroupedCommand, rich_help_panel=NAMES)
def topologies(wide: Wide = False, as_json: Json = False) -> int:
    """List machine topologies: GPUs and the links between them."""
    from dataclasses import asdict

    from epochcast.hardware.topology import topologies as all_topologies

    rows = all_topologies()

    def view() -> Any:
        from epochcast.surfaces import render

        return render.topologies(rows)

    keys = ("of", "count", "link")
    machines = [
        {**asdict(row), "levels": [dict(zip(keys, level, strict=True)) for level in row.levels]} for row in rows
    ]
    show({"topologies": machines}, as_json, view, wide=wide)
    return 0


def _progress(rows: list[dict[str, Any]], title: str) -> Any:
    """The rows, with a progress bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(rows, title, console=console, transient=True, disable=not console.is_terminal)
