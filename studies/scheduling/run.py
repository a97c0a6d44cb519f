"""Policies on queues: reference totals to a dollar, the default beside peers and the bound, what errors cost.

    python -m studies scheduling                    writes its page of docs/accuracy and result.csv; an hour of one core
    python -m studies.scheduling.run errors trace   only these parts; the others stay as they were

The workload files with their reference totals, the cluster's trace and measured runs lie beside the data; the talk's
random instances are drawn.
"""

import csv
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from studies.scheduling.hindsight import hindsight
from studies.scheduling.parts import Part, Row
from studies.scheduling.quickness import decisions, many_jobs
from studies.scheduling.tables import errors, gavel_jobs, instances, other_files, trace_day
from studies.scheduling.totals import reference_totals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy" / "schedule-accuracy.md"
RESULT = Path(__file__).with_name("result.csv")
SECTION = "### "
BEGIN, END = "<!-- measured: written by python -m studies scheduling -->\n", "<!-- end of measured -->"

# By name: the title of its section, and what measures it.
PARTS: Mapping[str, tuple[str, Callable[[Path], Part]]] = {
    "references": ("Against reference totals", reference_totals),
    "hindsight": ("What keeping could save", hindsight),
    "others": ("Other workloads of the kind", other_files),
    "instances": ("The talk's random instances", instances),
    "trace": ("A day of a real cluster", trace_day),
    "gavel": ("Jobs in the manner of Gavel", gavel_jobs),
    "errors": ("What errors of forecasts cost", errors),
    "decisions": ("How long a decision takes", decisions),
    "many_jobs": ("A hundred thousand jobs", many_jobs),
}


def main() -> int:
    """Every part, or those that are named."""
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        print(f"no part called {unknown[0]!r}; known: {', '.join(PARTS)}")
        return 2
    data = os.environ.get("EPOCHCAST_DATA")
    if not data or not (Path(data).parent / "workloads" / "reference.json").exists():
        print("no workload files beside the data: nothing is measured")
        return 0
    failures = []
    for name in chosen:
        began = time.monotonic()
        title, measure = PARTS[name]
        part = measure(Path(data))
        write_rows(part)
        PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), title, part.text), encoding="utf-8")
        print(f"{name}, {time.monotonic() - began:.0f} s", part.text, *part.failures, sep="\n", flush=True)
        failures += part.failures
    return 1 if failures else 0


def write_rows(part: Part) -> None:
    """A part into the table, instead of what was there of it: a run that is cut off loses the rest."""
    with RESULT.open(newline="", encoding="utf-8") as file:
        rows: list[Row] = [list(row) for row in list(csv.reader(file))[1:]]
    mine = {str(row[0]) for row in part.rows}
    kept = [row for row in rows if row[0] not in mine] + part.rows
    order = {str(row[0]): place for place, row in reversed(list(enumerate([*rows, *part.rows])))}
    with RESULT.open("w", newline="", encoding="utf-8") as file:
        in_order = sorted(kept, key=lambda row: order[str(row[0])])
        csv.writer(file).writerows([["part", "workload", "policy", "value", "of"], *in_order])


def with_section(page: str, title: str, text: str) -> str:
    """The page with a section of this text, in the order of the parts; sections that are of no part are dropped."""
    before, rest = page.split(BEGIN)
    found = dict(section.split("\n", 1) for section in rest.split(END)[0].split(SECTION) if section.strip())
    found[title] = f"\n{text.strip()}\n\n"
    titles = [title for title, _ in PARTS.values() if title in found]
    sections = "".join(f"{SECTION}{title}\n{found[title]}" for title in titles)
    return before + BEGIN + sections + END + rest.split(END)[1]


if __name__ == "__main__":
    sys.exit(main())
