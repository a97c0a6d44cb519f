"""What the other studies found: their committed `result.csv`, which they rewrite when they run (before this one)."""

import csv
from dataclasses import fields
from pathlib import Path
from typing import Any

from studies.accuracy.figures import SEPARATOR, Figure
from studies.correction_factor import run as correction
from studies.justus import run as justus

JUSTUS, REPORT = "studies/justus", "studies/correction_factor"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _value(text: str) -> Any:
    if not text:
        return None
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text


def justus_figures(path: Path = justus.RESULT) -> list[justus.Figure]:
    """The figures of `studies/justus`."""
    names = {f.name for f in fields(justus.Figure)}
    return [justus.Figure(**{k: _value(v) for k, v in row.items() if k in names}) for row in _rows(path)]


def report_figures(path: Path = correction.RESULT) -> list[correction.Figure]:
    """The figures of `studies/correction_factor`."""
    return [correction.Figure(**{k: _value(v) for k, v in row.items()}) for row in _rows(path)]


def gated(layers: list[justus.Figure], report: list[correction.Figure]) -> list[Figure]:
    """Their MAPE by group, for the gate."""
    figures = [
        Figure(JUSTUS, SEPARATOR.join((f.split, f.layer, f.device)), f.rows, f.mape, None, None, f.coverage)
        for f in layers
    ]
    summary = correction.summary(report)
    counts = {what: sum(f.what == what for f in report) for what in correction.CLAIMS}
    for what, n in counts.items():
        for name in (what, f"{what}, network left out"):
            figures.append(Figure(REPORT, name, n, summary[name], None, None))
    return figures
