"""docs/accuracy/accuracy.md and the table of the README, from figures to text."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from studies.accuracy.questions import KNOWLEDGE, QUESTIONS
from studies.accuracy.targets import Target

FEWEST_ROWS = 10
"""A group of fewer rows is no failure to report, but an anecdote."""
MOST_FAILURES = 4
README_BEGIN, README_END = "<!-- accuracy: written by python -m studies accuracy -->", "<!-- end of accuracy -->"
_GPUS = tuple(dict.fromkeys(KNOWLEDGE.values()))

Row = Mapping[str, object]

READING = """## How to read it

Every step is forecast by a model that was not trained on it. Of sources that training reads, the family of the network
or the whole source was left out (GPU *known*), or everything measured on the chip (*not measured*):
`studies/accuracy/left_out.csv`, written by `make model`. Such a step counts in both rows. No training reads the other
sources; the shipped model forecasts them from nothing, as `epochcast evaluate` does. At most 60 steps of a source, GPU,
format and mode count, and 60 of a source and question, so that neither one GPU nor one source decides a figure. The
margin of an interval (`predict/forecast/step_margins.toml`) is fitted without the source that is scored.

- *known*: 8 or more steps of that format, layout and mode were measured on that board. *sister or operators*: such
  steps were measured on another board with the same chip, or single operators in that format. *not measured*: neither.
- *error* is |predicted − measured| ÷ measured. *holds*: measurements inside the interval, which is meant to hold 90 %.
  *width*: high ÷ low of the median interval. *score*: Winkler's interval score of the logarithm; smaller is better.
- *refused*: rows that name a network, device or layout that is not modelled. They count where most rows of their source
  do.
- A net that leaves something out is trained more briefly than the shipped model, which is the mean of three: its errors
  are somewhat larger. Settings of the training were chosen by the errors on these families, so those are somewhat
  kinder than on fresh families. The interval of a launch-bound step is that of an unnamed host; its two ends were set
  on such left-out steps.
"""

LINKS = """## The rest

| file | rows |
|---|---|
| [by_source.csv](by_source.csv) | every source and question, worst first, with predicted ÷ measured |
| [by_device.csv](by_device.csv) | every GPU, by what is known of it |
| [by_group.csv](by_group.csv) | source, GPU, precision, mode and layout, by what was left out |
| [rows.csv](rows.csv) | rows forecast from nothing: predicted ÷ measured and both ends, or why refused |
| [refused.csv](refused.csv) | reasons of refusals, by source |
| [older_targets.csv](older_targets.csv) | targets for single operators, single layers and calibrated GPUs |
| `studies/accuracy/left_out.csv` | every step that was left out, without its measurement |

[What is behind the large errors](known-errors.md).

Other protocols: [other methods on the same steps](peers.md) · [many GPUs](scaling-accuracy.md) · [large
models](large-models-accuracy.md) · [memory](memory-accuracy.md) · [collectives](collectives-accuracy.md) ·
[plans](plan-accuracy.md) · [comparisons](diff-accuracy.md) · [the report's
networks](../explanation/correction-factor.md) · [your own machine](../how-to/this-machine.md) · [what the model was
trained on](model-card.md). `python -m studies accuracy` writes this page from public
measurements, which are not part of the project.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def compose(by_question: pl.DataFrame, by_source: pl.DataFrame, total: Row, all_targets: Sequence[Target]) -> str:
    """The page."""
    return "\n".join(
        [
            "# Accuracy\n",
            statement(by_question, by_source, total),
            "![Predicted against measured seconds of a step, by class of GPU](../pictures/accuracy.png)\n",
            "## By what is asked\n",
            question_table(by_question),
            "## Targets\n",
            target_table(all_targets),
            READING,
            LINKS,
        ]
    )


def statement(by_question: pl.DataFrame, by_source: pl.DataFrame, total: Row) -> str:
    """Failures first."""
    many = pl.col("n") >= FEWEST_ROWS
    worst = by_question.filter(many).sort("mape", descending=True).head(MOST_FAILURES).to_dicts()
    missing = by_source.filter(many).sort("coverage").head(MOST_FAILURES).to_dicts()
    far = "; ".join(
        f"{r['question']}, GPU {r['gpu']}: {_percent(r['mape'])} (holds {_percent(r['coverage'])})" for r in worst
    )
    few = "; ".join(f"{r['source']}, {r['question']}: {_percent(r['coverage'])} of {r['n']}" for r in missing)
    return (
        f"**Where forecasts are furthest off**, mean error: {far}.\n\n"
        f"**Where intervals hold least**: {few}.\n\n"
        f"Over all {total['n']:,} steps of {total['sources']} sources on {total['devices']} GPUs the error is "
        f"{_percent(total['mape'])} in the mean and {_percent(total['median_ape'])} in the median, the 90 % intervals "
        f"hold {_percent(total['coverage'])} and are {total['width']:.1f}× wide. {total['failed']} of "
        f"{total['n'] + total['failed']:,} rows are refused.\n"  # type: ignore[operator]
    )


def question_table(by_question: pl.DataFrame) -> str:
    """Every question and state of knowledge that has rows."""
    cells = {(row["question"], row["gpu"]): row for row in by_question.to_dicts()}
    head = ("question", "GPU", "rows", "refused", "error mean / median", "holds", "width", "score")
    rows = [
        (
            question,
            gpu,
            row["n"],
            row["failed"],
            _errors(row),
            _percent(row["coverage"]),
            _times(row["width"]),
            "–" if row["interval_score"] is None else f"{row['interval_score']:.1f}",
        )
        for question in QUESTIONS
        for gpu in _GPUS
        if (row := cells.get((question, gpu)))
    ]
    return table(head, rows)


def readme_table(by_question: pl.DataFrame) -> str:
    """The README's: a row for each question, with what is known of the GPU at its ends; nothing of too few steps."""
    cells = {(row["question"], row["gpu"]): row for row in by_question.to_dicts() if row["n"] >= FEWEST_ROWS}
    ends = (_GPUS[0], _GPUS[-1])
    rows = [
        (question, *(_figures(cells.get((question, gpu))) for gpu in ends))
        for question in QUESTIONS
        if any((question, gpu) in cells for gpu in ends)
    ]
    head = ("question", *(f"GPU {gpu}: error, interval holds, width" for gpu in ends))
    return f"{README_BEGIN}\n{table(head, rows)}{README_END}\n"


def _figures(row: Row | None) -> str:
    """Errors in mean and median, coverage and width of the interval, and of how many steps."""
    if row is None:
        return "–"
    return f"{_errors(row)}, {_percent(row['coverage'])}, {_times(row['width'])} ({row['n']:,} steps)"


def with_readme_table(readme: str, by_question: pl.DataFrame) -> str:
    """The README with the table of today."""
    before, _, rest = readme.partition(README_BEGIN)
    _, _, after = rest.partition(f"{README_END}\n")
    return before + readme_table(by_question) + after


def target_table(all_targets: Sequence[Target]) -> str:
    """Every target: met, or by how much not, and what carries the error."""
    met = sum(target.is_met for target in all_targets)
    rows = [
        (
            t.what,
            t.n,
            _wanted(t),
            _ours(t),
            t.verdict,
            "; ".join(part for part in ("" if t.is_met else t.why, t.caveat) if part),
        )
        for t in sorted(all_targets, key=lambda t: t.is_met)
    ]
    head = ("steps", "rows", "wanted", "ours", "", "to know")
    text = f"{met} of {len(all_targets)} are met. Mean error, or mean / median; width and coverage where asked."
    return f"{text}\n\n{table(head, rows)}"


def _wanted(target: Target) -> str:
    errors = " / ".join(f"{value:g}" for value in target.wanted)
    return f"{errors} {target.unit}" + ("" if target.width is None else f", {target.width[0]:g}×, 85–95 %")


def _ours(target: Target) -> str:
    errors = " / ".join(f"{value:.1f}" if target.unit == "%" else f"{value:.2f}" for value in target.ours)
    intervals = "" if target.width is None else f", {target.width[1]:.1f}×, {_percent(target.holds)}"
    return f"{errors} {target.unit}{intervals}"


def _errors(row: Row) -> str:
    return "–" if row["mape"] is None else f"{_percent(row['mape'])} / {_percent(row['median_ape'])}"


def _percent(value: object) -> str:
    return f"{100 * value:.0f} %" if isinstance(value, float) else "–"


def _times(value: object) -> str:
    return f"{value:.1f}×" if isinstance(value, float) else "–"
