"""`epochcast fit`"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epochcast.surfaces.cli.command_line import MEASURES, Json, app, show
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.measure.fit.local_fit import FittedDevice

_EXAMPLE = "Example: epochcast fit measurements.jsonl --out my_machine.json"


@app.command(epilog=_EXAMPLE, cls=GroupedCommand, rich_help_panel=MEASURES)
def fit(
    measurements: Annotated[
        list[Path] | None, typer.Argument(help="Files of `epochcast bench`: ops, models, collectives.")
    ] = None,
    shared: Annotated[
        Path | None,
        typer.Option(
            help="Folder of `epochcast share` files: alone, profiles of their GPUs; with measurements, further steps "
            "of this machine."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the profile here; --device local looks for it in its own place.")
    ] = None,
    no_save: Annotated[
        bool, typer.Option("--no-save", help="Write --out only; `--device local` does not change.")
    ] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let measured steps be of file.py:factory, which runs that code.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Fit a cost model to measurements of this machine. `forecast --device local` then uses it."""
    if not measurements:
        return _fit_shared(shared, out, no_save, as_json)
    import sys

    from epochcast import api
    from epochcast.errors import BadInput
    from epochcast.measure.fit.local_fit import device_of_model
    from epochcast.predict.cost.local_file import local_path, save_local
    from epochcast.surfaces.cli.evaluate_command import progress_bar

    if no_save and out is None:
        raise BadInput("--no-save without --out would write nothing")
    with progress_bar("fitting") as progress:
        answer = api.fit(
            measurements,
            progress=None if progress is None else lambda part: progress(int(100 * part), 100),
            allow_code=allow_code,
            shared=shared,
        )
    for warning in answer.warnings:
        sys.stderr.write(f"epochcast: {warning}\n")
    written = [] if out is None else [out]
    if not no_save:
        written.append(local_path(device_of_model(answer.model)))
    for path in written:
        save_local(answer.model, path)
    body = {**answer.as_dict(), "written": [str(path) for path in written]}
    show(body, as_json, lambda: _view(answer, written))
    return 0


def _fit_shared(folder: Path | None, out: Path | None, no_save: bool, as_json: bool) -> int:
    """Profiles of the GPUs of shared runs, used from now on unless not saved."""
    from datetime import UTC, datetime

    from epochcast.errors import BadInput
    from epochcast.hardware.profile import profile_path, save_profile
    from epochcast.measure.fit.shared_fit import fit_shared
    from epochcast.predict.cost.cost_models import find_cost_model

    if folder is None:
        raise BadInput("Missing argument 'MEASUREMENTS...' (or --shared FOLDER); see: epochcast fit --help")
    if out is not None:
        raise BadInput("--out is of measurements; profiles of shared runs are kept by device")
    answer = fit_shared(folder, find_cost_model(), date=datetime.now(UTC).date().isoformat())
    written = []
    for each in () if no_save else answer.profiles:
        written.append(profile_path(each.device))
        save_profile(each.profile, written[-1])

    def view() -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        from epochcast.surfaces import render

        rows = [
            (
                each.device.name,
                str(each.profile.rows),
                each.chosen.name,
                f"{each.before.mape:.0%}",
                f"{each.mape.after:.0%}",
            )
            for each in answer.profiles
        ]
        table = render.table("profiles of shared runs", "device|>runs|correction|>error before|>after", rows)
        lines = [f"not used: {reason}" for reason in answer.unused] + [f"written: {path}" for path in written]
        return Group(table, *(Text(line) for line in lines))

    show({**answer.as_dict(), "written": [str(path) for path in written]}, as_json, view)
    return 0


def _view(answer: "FittedDevice", written: list[Path]) -> "RenderableType":
    """The fitted speeds, and the errors on measurements that were left out of the fit."""
    from rich.console import Group
    from rich.text import Text

    from epochcast.surfaces import render
    from epochcast.units import show_seconds

    rows = [
        (
            f"{name or 'all others'}" + (f", {size} bytes" if size not in (0, 4) else ""),
            str(len(group.points)),
            show_seconds(group.line.launch_seconds),
            f"{1e-9 / group.line.seconds_per_flop:,.1f}",
            f"{1e-9 / group.line.seconds_per_byte:,.1f}",
        )
        for (name, size), group in answer.model.groups.items()
    ]
    table = render.table(answer.model.device, "op class|>ops|>one call|>Gflop/s|>GB/s", rows)
    lines = [f"ops left out: median error {answer.op_error:.0%}"]
    if answer.step_error is not None:
        lines.append(f"steps of a network left out: mean error {answer.step_error:.0%}")
    if answer.model.link is not None:
        link = answer.model.link
        lines.append(f"link: {show_seconds(link.latency_seconds)} and {link.bandwidth_bytes_per_second / 1e9:.2f} GB/s")
    lines += [f"not used: {reason}" for reason in answer.unused[:10]]
    lines += [f"written: {path}" for path in written]
    return Group(table, *(Text(line) for line in lines))
