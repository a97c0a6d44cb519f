"""The page of the study: figures against targets, tables by task, then the worst rows with their commands."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from studies.user_runs.scored_runs import OF_A_KIND, TRAININGS, USERS, Ratios, ScoredRun

FAR, WORST_SHOWN, MODELS_SHOWN = 2.0, 12, 4
WIDE = 3.0
"""An interval as wide as this says that the answer is unsure."""
Pick = Callable[[ScoredRun], Ratios | None]
TABLES: Mapping[str, str] = {
    USERS: "What users wrote down (`user_runs`)",
    TRAININGS: "Published fine-tunings (`runs_2026`)",
}


_SWEEPS = (
    f"All rows are read; of the sweeps in `{TRAININGS}`, {OF_A_KIND} of each source, model and task are forecast.",
    "",
)


def time_of(run: ScoredRun) -> Ratios | None:
    """Its step."""
    return run.time


def memory_of(run: ScoredRun) -> Ratios | None:
    """Its peak."""
    return run.memory


@dataclass(frozen=True)
class Figures:
    """Scores of some rows."""

    n: int
    refused: int
    mean: float
    median: float
    holds: float
    width: float

    @classmethod
    def of(cls, runs: Sequence[ScoredRun], pick: Pick) -> "Figures":
        """Of all rows that have what `pick` picks; the refused ones are counted."""
        ratios = [ratio for run in runs if (ratio := pick(run)) is not None]
        refused = sum(bool(run.refused) for run in runs)
        if not ratios:
            return cls(0, refused, *(float("nan"),) * 4)
        errors = [ratio.error for ratio in ratios]
        holds = float(np.mean([ratio.holds for ratio in ratios]))
        width = float(np.median([ratio.width for ratio in ratios]))
        return cls(len(ratios), refused, float(np.mean(errors)), float(np.median(errors)), holds, width)


def asked_fraction(runs: Sequence[ScoredRun]) -> float:
    """The share of rows that are forecast."""
    return sum(not run.refused for run in runs) / len(runs)


def unsaid(runs: Iterable[ScoredRun], factor: float = 3.0) -> list[ScoredRun]:
    """Rows that are wrong by more than `factor` while their interval is narrow and without them."""
    return [
        run for run in runs if run.time and run.time.factor > factor and not run.time.holds and run.time.width < WIDE
    ]


def page(scored: Mapping[str, Sequence[ScoredRun]]) -> str:
    """Markdown."""
    lines = [
        "# What people measured",
        "",
        "Written by `python -m studies user_runs`. Trainings that their users timed and wrote down, in issues, READMEs",
        "and documentation, and published tables of fine-tunings, each asked as the command that its author would",
        "type. Nothing about a row is filled in by hand: what a table does not say is a default of its trainer or is",
        f"refused. Many rows leave out lengths of texts, ranks of adapters or the data loader. {_yolo()}",
        "",
        *(_SWEEPS if TRAININGS in scored else ()),
        *_targets(scored),
    ]
    for name, runs in scored.items():
        lines += [f"## {TABLES[name]}", ""]
        lines += [*_worst(runs), *_refused(runs), *_by_task(runs)]
    lines += [
        "## Read more",
        "",
        "Errors of every row: [user_runs.csv](accuracy/user_runs.csv); every ratio there is forecast ÷ measured. All",
        "scored steps: [Accuracy](accuracy.md). Peaks by what they are made of: [Memory](memory-accuracy.md).",
    ]
    return "\n".join(lines) + "\n"


def _yolo() -> str:
    try:
        return f"YOLO is built by ultralytics {version('ultralytics')}."
    except PackageNotFoundError:
        return "YOLO is refused, as ultralytics is not installed."


def _targets(scored: Mapping[str, Sequence[ScoredRun]]) -> Iterator[str]:
    yield "| figure | target | " + " | ".join(f"`{name}`" for name in scored) + " |"
    yield "|---|---|" + "---|" * len(scored)
    rows: tuple[tuple[str, str, Callable[[Sequence[ScoredRun]], str]], ...] = (
        ("rows", "", lambda runs: f"{len(runs):,}"),
        ("can be asked as they are", "85 %", lambda runs: _percent(asked_fraction(runs))),
        ("time, mean error", "20 %", lambda runs: _percent(Figures.of(runs, time_of).mean)),
        ("time, median error", "12 %", lambda runs: _percent(Figures.of(runs, time_of).median)),
        ("time, inside the 90 % interval", "85–95 %", lambda runs: _percent(Figures.of(runs, time_of).holds)),
        ("wrong by more than 3 × without saying so", "0", lambda runs: str(len(unsaid(runs)))),
        ("memory, median error", "", lambda runs: _percent(Figures.of(runs, memory_of).median)),
        ("memory, inside", "", lambda runs: _percent(Figures.of(runs, memory_of).holds)),
    )
    for figure, target, show in rows:
        yield f"| {figure} | {target} | " + " | ".join(show(runs) for runs in scored.values()) + " |"
    yield ""


def _worst(runs: Sequence[ScoredRun]) -> Iterator[str]:
    far = sorted((run for run in runs if run.time and run.time.factor > FAR), key=_factor, reverse=True)
    if not far:
        yield from (f"No step is wrong by more than {FAR:g} ×.", "")
        return
    yield f"### Steps wrong by more than {FAR:g} ×: {len(far)}"
    yield ""
    yield "| row | source | predicted ÷ measured | interval ÷ measured | command |"
    yield "|---|---|---|---|---|"
    for run in far[:WORST_SHOWN]:
        assert run.time is not None
        ends = f"{run.time.low:.2f} … {run.time.high:.2f}"
        yield f"| {run.row} | {run.source} | {run.time.mid:.2f} | {ends} | `{run.command}` |"
    if len(far) > WORST_SHOWN:
        yield ""
        yield f"The other {len(far) - WORST_SHOWN} are in the file of all rows."
    yield ""


def _factor(run: ScoredRun) -> float:
    return run.time.factor if run.time else 0.0


def _refused(runs: Sequence[ScoredRun]) -> Iterator[str]:
    refused = [run for run in runs if run.refused]
    if not refused:
        return
    yield f"### Not forecast: {len(refused)}"
    yield ""
    yield "| rows | reason | such as |"
    yield "|---|---|---|"
    reasons: dict[str, list[str]] = {}
    for run in refused:
        reasons.setdefault(reason_of(run), []).append(run.model)
    for reason, models in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(list(dict.fromkeys(models))[:MODELS_SHOWN])
        yield f"| {len(models)} | {reason} | {shown} |"
    yield ""


def reason_of(run: ScoredRun) -> str:
    """The error without the model's own name and without what to type instead, so that equal ones are one line."""
    reason = run.refused.replace(f"'{run.model}'", "that name").replace(run.model, "a model")
    return reason.partition(";")[0].partition(" (")[0].replace("|", "/")


def _by_task(runs: Sequence[ScoredRun]) -> Iterator[str]:
    yield "### By task"
    yield ""
    yield "Errors are mean / median; width is high ÷ low of the interval."
    yield ""
    yield "| task | rows | refused | time: n | error | holds | width | memory: n | error | holds | width |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    tasks = sorted({run.task for run in runs})
    groups = [(task, [run for run in runs if run.task == task]) for task in tasks]
    groups.sort(key=lambda group: -_mean(Figures.of(group[1], time_of)))
    for task, members in [*groups, ("**all**", list(runs))]:
        time, memory = Figures.of(members, time_of), Figures.of(members, memory_of)
        yield f"| {task} | {len(members)} | {time.refused} | {_cells(time)} | {_cells(memory)} |"
    yield ""


def _mean(figures: Figures) -> float:
    return figures.mean if figures.n else -1.0


def _cells(figures: Figures) -> str:
    if not figures.n:
        return "0 | – | – | –"
    error = f"{_percent(figures.mean)} / {_percent(figures.median)}"
    return f"{figures.n} | {error} | {_percent(figures.holds)} | {figures.width:.1f} ×"


def _percent(fraction: float) -> str:
    return "–" if np.isnan(fraction) else f"{fraction:.0%}".replace("%", " %")
