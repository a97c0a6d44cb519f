"""`epochcast demo`: a short tour; it needs no network and takes seconds."""

from typing import TYPE_CHECKING, Any

from epochcast.surfaces.cli.command_line import HELP, Json, app, show
from epochcast.surfaces.cli.guide import to_try
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from epochcast.api import Forecast

MODEL, DATASET, EPOCHS = "resnet50", "imagenet-1k", 90
# (device, precision, batch per GPU); the tour begins with the first.
CHOICES = (("V100", "amp", 64), ("V100", "fp32", 64), ("T4", "amp", 64), ("A100", "amp", 128), ("H100", "amp", 128))


@app.command(epilog="Example: epochcast demo", cls=GroupedCommand, rich_help_panel=HELP)
def demo(as_json: Json = False) -> int:
    """Show a forecast of one job, and of the same job on other hardware."""
    from epochcast import api

    def forecast(device: str, precision: str, batch: int) -> "Forecast":
        return api.forecast(
            MODEL,
            device=device,
            batch=batch,
            precision=precision,
            optimizer="momentum",
            dataset=DATASET,
            epochs=EPOCHS,
        )

    first, *others = (forecast(*choice) for choice in CHOICES)
    body = {"forecast": first.as_dict(), "elsewhere": [answer.as_dict() for answer in others]}

    def view() -> Any:
        from rich.console import Group
        from rich.text import Text

        from epochcast.surfaces import render

        return Group(
            render.forecast(first),
            "",
            render.choices("the same job on other hardware", [first, *others]),
            "Try:",
            Text(to_try(), no_wrap=True, overflow="ignore"),
        )

    show(body, as_json, view)
    return 0
