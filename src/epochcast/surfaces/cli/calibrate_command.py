"""`epochcast calibrate`"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epochcast.surfaces.cli.command_line import MEASURES, Explain, Json, app, show
from epochcast.surfaces.cli.help_groups import GroupedCommand
from epochcast.surfaces.cli.job_flags import PLACE_FLAGS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.measure.fit.calibrate import Calibration

# A kind of kernels, and an op class that has its factor.
_KIND_CLASSES = (
    ("convolutions, on top", "conv"),
    ("grouped convolutions, on top", "conv_grouped"),
    ("other products, on top", "linear"),
    ("everything else, on top", "elementwise"),
)
_EXAMPLE = "Example: epochcast calibrate my_runs.csv --device A100 --save"


@app.command(epilog=_EXAMPLE, cls=GroupedCommand, rich_help_panel=MEASURES)
def calibrate(
    device: Annotated[str, typer.Option(help=PLACE_FLAGS["device"].help)],
    runs: Annotated[Path | None, typer.Argument(help="Measured steps: .parquet, .csv or .jsonl.")] = None,
    gemm_seconds: Annotated[
        str | None,
        typer.Option(help="One product that you measured on the device, like bf16:8192x8192x8192=2.1ms, or 2.1ms."),
    ] = None,
    gemm_size: Annotated[int, typer.Option(help="Rows and columns of that product where it names none.")] = 8192,
    precision: Annotated[
        str | None, typer.Option(help="Use runs in this precision only; the product's, where it names none.")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Use the profile for this device on this host from now on.")
    ] = False,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let rows name file.py:factory, which runs that code.")
    ] = False,
    explain: Explain = False,
    as_json: Json = False,
) -> int:
    """Correct a device's forecasts by a few measured steps, or by one measured matrix product."""
    from datetime import UTC, datetime

    from epochcast.errors import BadInput
    from epochcast.hardware.catalogue import find_device
    from epochcast.hardware.profile import profile_path, save_profile
    from epochcast.measure.fit.calibrate import calibrate as calibrated
    from epochcast.predict.cost.cost_models import find_cost_model
    from epochcast.predict.cost.product import parse_product

    if runs is None and gemm_seconds is None:
        raise BadInput("nothing to calibrate with: give a table of runs, or --gemm-seconds")
    measured_device = find_device(device)
    answer = calibrated(
        [] if runs is None else rows_of(runs),
        measured_device,
        find_cost_model(),
        date=datetime.now(UTC).date().isoformat(),
        gemm=None if gemm_seconds is None else parse_product(gemm_seconds, gemm_size, "--gemm-seconds"),
        precision=precision,
        allow_code=allow_code,
    )
    path = profile_path(measured_device) if save else None
    if path is not None:
        save_profile(answer.profile, path)
    body = {**answer.as_dict(), "saved": None if path is None else str(path)}
    show(body, as_json, lambda: _view(answer, path), explain=explain)
    return 0


def rows_of(path: Path) -> Iterator[dict[str, object]]:
    """The rows of a table of runs, which is read as they are asked for."""
    from epochcast.errors import BadInput
    from epochcast.measure.tables.table_chunks import chunks_of
    from epochcast.measure.tables.table_files import kind_of, with_known_columns

    for number, chunk in enumerate(chunks_of(path)):
        frame = with_known_columns(chunk)
        if number == 0 and (kind := kind_of(frame.columns)) != "runs":
            raise BadInput(f"{path.name} is a table of {kind}; calibrate takes measured runs")
        yield from frame.to_dicts()


def _view(answer: "Calibration", path: Path | None) -> "RenderableType":
    """The corrections tried, what the chosen one changes, and the intervals before and after."""
    from rich.console import Group
    from rich.text import Text

    from epochcast.surfaces import render
    from epochcast.surfaces.render.notes_view import Notes
    from epochcast.units import show_seconds

    rows = [
        (c.name + (" (chosen)" if c is answer.chosen else ""), f"{c.mape:.1%}", f"{c.loo_mape:.1%}")
        for c in answer.corrections
    ]
    corrections = render.table(
        f"{answer.device.name}: {answer.profile.rows} measurements", "correction|>MAPE|>leave-one-out MAPE", rows
    )
    p = answer.profile
    launch = "as before" if p.launch_seconds is None else show_seconds(p.launch_seconds)
    before, after = answer.before_spread, p.step_spread or answer.before_spread
    changes = [
        ("kernels bound by arithmetic", f"× {p.compute_factor:.3f}"),
        ("kernels bound by memory", f"× {p.memory_factor:.3f}"),
        *((kind, f"× {p.class_factor[name]:.3f}") for kind, name in _KIND_CLASSES if name in p.class_factor),
        ("one launch", launch),
        *((f"large products in {math}", f"{part:.0%} of the peak") for math, part in p.gemm_fraction.items()),
        ("90 % interval before", f"{before[0] - 1:+.0%} … {before[1] - 1:+.0%}"),
        ("90 % interval after", f"{after[0] - 1:+.0%} … {after[1] - 1:+.0%}"),
    ]
    pieces: list[RenderableType] = [corrections, render.table("what it changes", "|", changes)]
    pieces += [Text(f"row {f.row_index} ({f.model}) not used: {f.reason}", style="dim") for f in answer.failures[:10]]
    saved = "not saved; use --save to make it this host's profile" if path is None else f"saved: {path}"
    return Group(*pieces, Text(saved), Notes(answer.notes))
