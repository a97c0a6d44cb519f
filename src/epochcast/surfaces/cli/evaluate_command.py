"""`epochcast evaluate`"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import MEASURES, Explain, Json, app, check_plots, save_plot, show, wrote
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.measure.evaluate.evaluate import Evaluation
    from epochcast.measure.evaluate.memory_evaluation import MemoryEvaluation
    from epochcast.measure.evaluate.predicted import Progress
    from epochcast.measure.evaluate.refusals import RefusedRows
    from epochcast.measure.evaluate.scores import MemoryScores, Scores

_EXAMPLE = "Example: epochcast evaluate runs.parquet --by device,family --out rows.csv --plot errors.png"
# This many groups and reasons are shown in a terminal; --json has them all.
MOST_SHOWN = 40


@app.command(epilog=_EXAMPLE, cls=GroupedCommand, rich_help_panel=MEASURES)
def evaluate(
    runs: Annotated[Path, typer.Argument(help="Measured runs, ops or layers: .parquet, .csv or .jsonl.")],
    by: Annotated[str | None, typer.Option(help="Columns to group by, like device,family.")] = None,
    given_single: Annotated[
        bool, typer.Option("--given-single", help="Use the measured single-GPU rows; forecast only what more GPUs add.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write predicted and measured seconds of every row: .csv, .parquet, .jsonl.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw predicted against measured: .png, .svg, .html.")] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Score with this calibration (`epochcast calibrate`) or model (`epochcast fit`) of a device."
        ),
    ] = None,
    with_doubtful: Annotated[
        bool, typer.Option("--with-doubtful", help="Also rows whose quality says that they are not to be trusted.")
    ] = False,
    cost_model: Annotated[str | None, typer.Option(help="Another cost model than the default, like roofline.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that capture models; 0: one per core.")] = 0,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Let rows name file.py:factory, which runs that code.")
    ] = False,
    explain: Explain = False,
    as_json: Json = False,
) -> int:
    """Compare predictions with measurements: errors, and coverage, width and score of the intervals."""
    from epochcast.errors import BadInput
    from epochcast.measure.evaluate.evaluate import evaluate as evaluated
    from epochcast.measure.tables.table_files import ENDINGS, check_folder
    from epochcast.predict.cost.cost_models import find_cost_model

    if out is not None:
        if out.suffix.lower() not in ENDINGS:
            raise BadInput(f"cannot write {out.name}; known endings: {', '.join(ENDINGS)}")
        check_folder(out)
    check_plots(plot)
    with progress_bar("forecasting rows") as progress:
        answer = evaluated(
            runs,
            by=[name.strip() for name in by.split(",") if name.strip()] if by else (),
            given_single=given_single,
            with_doubtful=with_doubtful,
            profile=profile,
            cost_model=None if cost_model is None else find_cost_model(cost_model),
            allow_code=allow_code,
            workers=workers or os.cpu_count() or 1,
            progress=progress,
        )
    if out is not None:
        answer.save(out)
        wrote(out)
    save_plot(plot, lambda charts: _chart(charts, answer, runs.name))
    show(answer.as_dict(), as_json, lambda: _view(answer, runs.name), explain=explain)
    return 0


def _chart(charts: Any, answer: "Evaluation", name: str) -> Any:
    p = answer.predicted
    families = [family for family, is_forecast in zip(p.labels["family"], p.is_forecast, strict=True) if is_forecast]
    return charts.predicted_against_measured(
        p.measured_seconds[p.is_forecast].tolist(), p.mid_seconds[p.is_forecast].tolist(), families, name
    )


def _view(answer: "Evaluation", name: str) -> "RenderableType":
    """The errors over all rows and by group, and why rows failed."""
    from rich.console import Group

    from epochcast.surfaces import render
    from epochcast.surfaces.render.notes_view import Notes

    total = answer.scores
    headings = ">rows|>failed|>MAPE|>median|>90th percentile|>RMSE|>in interval|>width|>score"
    pieces: list[RenderableType] = [
        render.table(f"{name}: {answer.kind}, predicted against measured", headings, [_cells(total)])
    ]
    groups = list(answer.groups().items())
    if groups:
        caption = f"{len(groups) - MOST_SHOWN} more groups with --json" if len(groups) > MOST_SHOWN else None
        rows = [(key, *_cells(scores)) for key, scores in groups[:MOST_SHOWN]]
        by = f"by {', '.join(answer.by)}"
        pieces.append(render.table(by, f"group|{headings}", rows, caption, drop=("RMSE", "90th percentile", "failed")))
    memory = answer.memory
    if memory is not None:
        pieces.append(memory_table(memory, answer.by))
    refusals = answer.refusals
    if refusals:
        caption = f"{len(refusals) - MOST_SHOWN} more reasons with --json" if len(refusals) > MOST_SHOWN else None
        rows = [(f"{r.rows:,}", r.reason, ", ".join(r.examples), _cure(r)) for r in refusals[:MOST_SHOWN]]
        pieces.append(render.table("not forecast", ">rows|reason|such as|what would help", rows, caption=caption))
    pieces.append(Notes(tuple(f"{rows:,} {_rows(rows)}: {note}" for note, rows in answer.notes.items())))
    return Group(*pieces)


def memory_table(memory: "MemoryEvaluation", by: Sequence[str]) -> "RenderableType":
    """Measured peaks by the number that was read, then by group; and what verdicts were wrong."""
    from epochcast.surfaces import render

    rows = [("all", *_memory_cells(memory.scores))] if len(memory.kinds) != 1 else []
    rows += [(kind, *_memory_cells(scores)) for kind, scores in memory.kinds.items()]
    rows += [(group, *_memory_cells(scores)) for group, scores in list(memory.groups.items())[:MOST_SHOWN]]
    counts = memory.verdicts
    caption = (
        f"{counts.ran:,} that ran: {counts.ran_does_not_fit:,} forecast not to fit, {counts.ran_tight:,} tight"
        f"; {counts.ran_out:,} that ran out of memory: {counts.ran_out_fits:,} forecast to fit, "
        f"{counts.ran_out_tight:,} tight"
    )
    title = "peak memory" + (f", also by {', '.join(by)}" if by else "")
    headings = "number read|>rows|>MAPE|>median|>90th percentile|>bias|>in interval|>width|>score"
    return render.table(title, headings, rows, caption, drop=("90th percentile", "score"))


def _memory_cells(scores: "MemoryScores") -> tuple[str, ...]:
    shares = (scores.mape, scores.median_ape, scores.p90_ape)
    return (
        f"{scores.n:,}",
        *map(_share, shares),
        "–" if scores.bias is None else f"{scores.bias:+.1%}",
        _share(scores.coverage),
        *_interval_cells(scores),
    )


def _interval_cells(scores: "Scores | MemoryScores") -> tuple[str, str]:
    """Width and score of intervals."""
    width, score = scores.width, scores.interval_score
    return "–" if width is None else f"{width:.2f} ×", "–" if score is None else f"{score:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _cure(refusal: "RefusedRows") -> str:
    """In the words of the command."""
    return f"--{refusal.option.replace('_', '-')}" if refusal.option else refusal.cure.replace("`", "")


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _cells(scores: "Scores") -> tuple[str, ...]:
    from epochcast.units import show_seconds

    rmse = "–" if scores.rmse_seconds is None else show_seconds(scores.rmse_seconds)
    return (
        f"{scores.n:,}",
        f"{scores.failed:,}",
        _share(scores.mape),
        _share(scores.median_ape),
        _share(scores.p90_ape),
        rmse,
        _share(scores.coverage),
        *_interval_cells(scores),
    )


@contextmanager
def progress_bar(title: str) -> Iterator["Progress | None"]:
    """A progress bar on stderr; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
