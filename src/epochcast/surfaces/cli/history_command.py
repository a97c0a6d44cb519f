"""`epochcast history`: learning from jobs that have already run."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.surfaces.cli.command_line import (
    MEASURES,
    Explain,
    Json,
    check_plots,
    command_group,
    save_plot,
    show,
    wrote,
)
from epochcast.surfaces.cli.database_options import Database
from epochcast.surfaces.cli.help_groups import GroupedCommand

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epochcast.observe.history.history_compare import HistoryComparison
    from epochcast.observe.history.history_verbs import HistoryPrediction
    from epochcast.observe.history.learning_set import LearningSet
    from epochcast.observe.history.model_file import HistoryModel

history_app = command_group(
    "history",
    MEASURES,
    no_args_is_help=True,
    epilog="Example: epochcast history compare jobs.csv --target epoch_seconds --split random,batch>64",
    help="Learn from jobs that have already run: fit, predict, compare.",
)

STORE = "store"
MOST_SHOWN = 40

Jobs = Annotated[str, typer.Argument(help="Past jobs: .csv, .parquet or .jsonl; or the word store.")]
Target = Annotated[str, typer.Option(help="epoch_seconds, total_seconds, step_seconds or peak_bytes.")]
Columns = Annotated[str | None, typer.Option(help="Learn from these columns alone, like model,device,batch.")]
Ignored = Annotated[str | None, typer.Option("--ignore", help="Columns not to learn from.")]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
Workers = Annotated[int, typer.Option(help="Fits at the same time; 0: one per core.")]
AllowCode = Annotated[bool, typer.Option("--allow-code", help="Let rows name file.py:factory, which runs that code.")]


@history_app.command(
    cls=GroupedCommand, epilog="Example: epochcast history fit jobs.csv --target epoch_seconds --out history.json"
)
def fit(
    jobs: Jobs,
    target: Target,
    out: Annotated[Path, typer.Option(help="Write the model here, as JSON.")],
    kind: Annotated[str, typer.Option("--with", help="The model; `history compare` lists them.")] = "grey_box",
    columns: Columns = None,
    ignore: Ignored = None,
    seed: Seed = 0,
    workers: Workers = 0,
    allow_code: AllowCode = False,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Learn from past jobs and write the model to a file."""
    from epochcast.observe.history import history_verbs as verbs
    from epochcast.surfaces.cli.evaluate_command import progress_bar

    with progress_bar("learning") as progress:
        model = verbs.fit(
            _table(jobs, database),
            target,
            model=kind,
            settings=verbs.HistorySettings(
                columns=_listed(columns),
                ignored=_listed(ignore),
                seed=seed,
                workers=workers or os.cpu_count() or 1,
                allow_code=allow_code,
                progress=progress,
            ),
        )
    model.save(out)
    wrote(out)
    show(_fitted(model, out), as_json, lambda: _fit_view(model))
    return 0


@history_app.command(
    cls=GroupedCommand, epilog="Example: epochcast history predict new_jobs.csv --model history.json --out answers.csv"
)
def predict(
    jobs: Jobs,
    model: Annotated[Path, typer.Option(help="A file of `epochcast history fit`.")],
    out: Annotated[Path | None, typer.Option(help="Also write a row for each job: .csv, .parquet, .jsonl.")] = None,
    explain: Annotated[
        str | None, typer.Option(help="Which columns moved these rows, like 0 or 0,3; rows count from 0.")
    ] = None,
    allow_code: AllowCode = False,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """What the model says of jobs that have not run yet, with intervals."""
    from epochcast.observe.history import history_verbs as verbs
    from epochcast.observe.history.model_file import read_model
    from epochcast.surfaces.cli.evaluate_command import progress_bar

    fitted = read_model(model)
    with progress_bar("predicting") as progress:
        answer = verbs.predict(
            fitted, _table(jobs, database), explain=_rows(explain), allow_code=allow_code, progress=progress
        )
    if out is not None:
        from epochcast.measure.tables.table_chunks import polars
        from epochcast.measure.tables.table_files import write_table

        p = answer.predictions
        write_table(polars().DataFrame({"low": p.low, "mid": p.mid, "high": p.high}), out)
        wrote(out)
    for warning in () if as_json else answer.warnings:
        sys.stderr.write(f"epochcast: {warning}\n")
    show(answer.as_dict(), as_json, lambda: _predict_view(answer))
    return 0


@history_app.command(
    cls=GroupedCommand,
    epilog="Example: epochcast history compare jobs.csv --target epoch_seconds --split random,batch>64,without:device",
)
def compare(
    jobs: Jobs,
    target: Target,
    split: Annotated[
        str | None,
        typer.Option(
            help="random[:5], holdout[:0.2], time[:COLUMN], batch>64, gpus>4, power>80%, batch>60%:model+device,"
            " without:device, deeper; several with commas. By default random, and the extrapolations that the table"
            " allows."
        ),
    ] = None,
    kinds: Annotated[
        str | None, typer.Option("--models", "--with", help="Models to compare, like grey_box,boosting.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One set of hyper-parameters instead of the best.")] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write charts: predicted against measured, learning curve, effects (.html).")
    ] = None,
    columns: Columns = None,
    ignore: Ignored = None,
    seed: Seed = 0,
    workers: Workers = 0,
    allow_code: AllowCode = False,
    database: Database = None,
    explain: Explain = False,
    as_json: Json = False,
) -> int:
    """Which model predicts best, on rows that it has not seen: error and coverage of every model on every split."""
    from epochcast.observe.history import history_verbs as verbs
    from epochcast.observe.history.history_compare import compare as compared
    from epochcast.surfaces.cli.evaluate_command import progress_bar

    check_plots(report)
    with progress_bar("comparing models") as progress:
        settings = verbs.HistorySettings(
            columns=_listed(columns),
            ignored=_listed(ignore),
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            allow_code=allow_code,
            progress=progress,
        )
        learning_set, models = verbs.comparable(_table(jobs, database), target, _listed(kinds), settings)
        answer = compared(
            learning_set,
            splits=_listed(split),
            models=models,
            is_tuned=not quick,
            seed=seed,
            workers=settings.workers,
            progress=progress,
        )
    if report is not None:
        _write_report(learning_set, answer, report, seed)
    show(answer.as_dict(), as_json, lambda: _compare_view(answer), explain=explain)
    return 0


def _write_report(learning_set: "LearningSet", answer: "HistoryComparison", path: Path, seed: int) -> None:
    from epochcast.observe.history.learning_curve import column_effects, learning_curve

    best = next((result.best for result in answer.splits.values() if result.best), None)
    compared = next(iter(answer.splits.values())).models
    shown = [name for name in ("grey_box", "forecast", "boosting", "random_forest", "ridge") if name in compared]
    curve = learning_curve(learning_set, list(dict.fromkeys([*shown, *([best] if best else [])])), seed)
    effects = column_effects(learning_set, best, seed) if best else {}
    save_plot(path, lambda charts: charts.history_report(answer, curve, effects, best or "no model"))


def _table(jobs: str, database: str | None) -> Any:
    """A path, or the runs of the store."""
    if jobs != STORE or Path(jobs).exists():
        return Path(jobs)
    from epochcast.errors import BadInput
    from epochcast.observe.history.job_table_reader import runs_of_store
    from epochcast.observe.store.store_opening import existing_store

    store = existing_store(database)
    if store is None:
        raise BadInput("there is no store yet; `epochcast track` makes one")
    with store:
        return runs_of_store(store)


def _rows(text: str | None) -> list[int]:
    from epochcast.errors import BadInput

    words = _listed(text)
    if not all(word.isdecimal() for word in words):
        raise BadInput(f"--explain takes numbers of rows, like 0,3; got {text!r}")
    return [int(word) for word in words]


def _listed(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()] if text else []


def _fitted(model: "HistoryModel", out: Path) -> dict[str, Any]:
    return {
        "target": model.target_name,
        "model": model.fitted.name,
        "rows": model.rows,
        "features": list(model.features),
        "options": dict(model.options),
        "error": model.error,
        "written": str(out),
    }


def _fit_view(model: "HistoryModel") -> "RenderableType":
    error = f"{model.error:.1%}".replace("%", " %")
    return (
        f"{model.fitted.name} of {model.target_name}, learned from {model.rows:,} jobs and {len(model.features)}"
        f" columns; mean error on jobs it had not seen: {error}"
    )


def _predict_view(answer: "HistoryPrediction") -> "RenderableType":
    from rich.console import Group

    from epochcast.surfaces import render
    from epochcast.units import show_bytes, show_seconds

    shown = show_bytes if answer.target_name.endswith("_bytes") else show_seconds
    p = answer.predictions
    rows = [
        (str(place), shown(p.mid[place]), f"{shown(p.low[place])} … {shown(p.high[place])}", ", ".join(p.news[place]))
        for place in range(min(len(p.mid), MOST_SHOWN))
    ]
    caption = f"{len(p.mid) - MOST_SHOWN} more rows with --json" if len(p.mid) > MOST_SHOWN else None
    title = f"{answer.target_name} by {answer.model}"
    pieces = [render.table(title, ">row|>predicted|90 % of cases|new about it", rows, caption)]
    for row, why in (answer.explanations or {}).items():
        moved = [(name, f"× {factor:.3g}") for name, factor in why.factors.items()]
        about = f"row {row}: what moved it from the usual {shown(why.usual)} to {shown(why.predicted)}"
        pieces.append(render.table(about, "column|>factor", moved))
    return Group(*pieces)


def _compare_view(answer: "HistoryComparison") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from epochcast.surfaces import render
    from epochcast.surfaces.render.notes_view import Notes

    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.1%}"

    pieces: list[RenderableType] = []
    for name, result in answer.splits.items():
        rows: list[tuple[str, ...]] = []
        for model, tested in result.models.items():
            s = tested.scores
            cells = (f"{s.n:,}", share(s.mape), share(s.median_ape), share(s.p90_ape), share(s.coverage))
            rows.append((model, *cells, tested.reason or ""))
        headings = "model|>tested|>MAPE|>median|>90th percentile|>in interval"
        if any(row[-1] for row in rows):
            headings += "|not fitted because"
        else:
            rows = [row[:-1] for row in rows]
        drop = ("90th percentile",)
        title = f"{answer.target_name}, split {name}"
        pieces += [render.table(title, headings, rows, drop=drop), Text(f"best: {result.why}")]
    return Group(*pieces, Notes(answer.notes))
