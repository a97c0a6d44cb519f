"""Learning from past jobs, source by source: peers' models and the grey box on the same rows and splits.

    python -m studies history                                       all; goes on where it was stopped
    python -m studies.history.run --source dgxc_benchmarking,pollux_osdi21 --again grey_box

Every source of `runs`, `runs_more` and `llm_runs` with enough rows (`rows.py`). The peers are re-run as AI Gauge
describes (hyper-parameters by five-fold cross-validation on the mean relative error). Splits are those of the
Politecnico talk: larger batches, more GPUs, faster hardware, deeper networks; beside them five random parts.

Forecasts and results are kept in a folder while they are found (EPOCHCAST_HISTORY_STUDY, or a temporary one). What was
found is written beside this file: `result.csv`, a line per source, split and model; `sources.csv`, what was used of
each source; `talk.csv`, the tables of the talk (`talk.py`); `curve.csv`, errors by the number of past jobs
(`curves.py`); `partial.csv`, jobs from a part of them (`parts.py`). The pages are `docs/accuracy/history-*.md`.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.splits import default_splits
from studies.history.curves import COLUMNS as CURVE_COLUMNS
from studies.history.curves import RESULT as CURVES
from studies.history.curves import add_curve, read_curves
from studies.history.lines import (
    COLUMNS,
    RESULT,
    SOURCES,
    SOURCES_COLUMNS,
    Line,
    Used,
    append_line,
    line_of,
    read_lines,
    write_lines,
)
from studies.history.page import PEERS, cases, pages
from studies.history.parts import add_parts, read_parts
from studies.history.rows import Source, known_of, sources
from studies.history.scoring import OURS, Scorer
from studies.history.talk import COLUMNS as TALK_COLUMNS
from studies.history.talk import RESULT as TALK
from studies.history.talk import add_talk, ordered, read_talk

BY_HAND = True
OTHERS = ("ridge", "nnls", "svr", "optimus", "ernest", "stepwise")
ALL = (*OURS, *PEERS, *OTHERS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Score all sources; fails where a target is missed, and says which."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=_folder(), help="where forecasts and results are kept")
    parser.add_argument("--source", default="", help="these alone, with commas")
    parser.add_argument("--models", default="", help="these alone, with commas")
    parser.add_argument("--again", default="", help="forget what is kept of these models, with commas")
    parser.add_argument("--page", action="store_true", help="write what is kept and the page of it, and run nothing")
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    if not given.page:
        _run(given)
    _collect(given.folder)
    lines, used = read_lines(RESULT, line_of), read_lines(SOURCES, Used.of)
    for path, text in pages(lines, used, read_curves(), read_parts(), read_talk()).items():
        path.write_text(text, encoding="utf-8")
    return int(bool(report(lines)))


def _folder() -> Path:
    return Path(os.environ.get("EPOCHCAST_HISTORY_STUDY") or Path(tempfile.gettempdir()) / "epochcast-history-study")


def _run(given: argparse.Namespace) -> None:
    wanted = set(given.source.split(",")) if given.source else None
    asked = [s for s in sources(Path(os.environ["EPOCHCAST_DATA"])) if wanted is None or s.name in wanted]
    kept = given.folder / RESULT.name
    if given.again:
        again = given.again.split(",")
        write_lines(kept, COLUMNS, [line for line in read_lines(kept, line_of) if line.model not in again])
    learned = [_known(source, given.folder) for source in asked]
    if wanted is None:
        write_lines(SOURCES, SOURCES_COLUMNS, [used for used, _ in learned])
    models = given.models.split(",") if given.models else ALL
    # The models of the targets first, so that a run that is stopped has them of all sources.
    for group in ([m for m in models if m not in OTHERS], [m for m in models if m in OTHERS]):
        for used, known in learned:
            if known is not None:
                _score(used.source, known, group, kept)
    for source, (used, known) in zip(asked, learned, strict=True):
        if known is not None and not given.models:
            add_talk(source, given.folder)
            add_curve(used.source, known, given.folder / CURVES.name)
    if wanted is None:
        add_parts()


def _collect(folder: Path) -> None:
    """What is kept, beside this file."""
    names = [used.source for used in read_lines(SOURCES, Used.of)]
    if (folder / RESULT.name).exists():
        write_lines(RESULT, COLUMNS, _ordered(read_lines(folder / RESULT.name, line_of), names))
    if (folder / CURVES.name).exists():
        points = [point for point in read_curves(folder / CURVES.name) if point.source in names]
        write_lines(CURVES, CURVE_COLUMNS, sorted(points, key=lambda point: names.index(point.source)))
    if (folder / TALK.name).exists():
        write_lines(TALK, TALK_COLUMNS, ordered(read_talk(folder / TALK.name), names))


def _known(source: Source, folder: Path) -> tuple[Used, LearningSet | None]:
    """What is used of a source, and its rows."""
    if source.reason:
        return Used(source.table, source.name, len(source.rows), 0, 0, 0, source.is_trained, source.reason), None
    found = known_of(source, folder / "forecasts")
    print(f"{source.name}: {len(found.jobs)} rows, {found.forecast} of them forecast", flush=True)
    counts = (len(source.rows), len(found.jobs), found.forecast, found.left_out)
    return Used(source.table, source.name, *counts, source.is_trained, ""), found.jobs


def _score(source: str, known: LearningSet, models: Sequence[str], kept: Path) -> None:
    """Every model on every split that is not kept yet."""
    scorer = Scorer(source, known)
    for split in default_splits(known.jobs):
        done = {line.model for line in read_lines(kept, line_of) if (line.source, line.split) == (source, split)}
        for model in [name for name in models if name not in done]:
            line = scorer.line(split, model)
            append_line(kept, COLUMNS, line)
            print(line.told, flush=True)


def _ordered(lines: Sequence[Line], names: Sequence[str]) -> list[Line]:
    splits = list(dict.fromkeys(line.split for line in lines))
    mine = [line for line in lines if line.source in names]
    return sorted(mine, key=lambda line: (names.index(line.source), splits.index(line.split), ALL.index(line.model)))


def report(lines: Sequence[Line]) -> list[str]:
    """Prints every case; the targets that are missed, in words."""
    missed = []
    for case in cases(lines):
        print(case.told)
        if not case.is_reached:
            missed.append(case.told)
    return missed


if __name__ == "__main__":
    sys.exit(main())
