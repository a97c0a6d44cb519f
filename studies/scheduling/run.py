"""Policies on queues: reference totals to a dollar, the default beside peers and the bound, what errors cost.

    python -m studies scheduling        writes docs/schedule.md and studies/scheduling/result.csv; some twenty minutes

The workload files with their reference totals, the cluster's trace and measured runs lie beside the data; the talk's
random instances are drawn.
"""

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from studies.scheduling.parts import Part
from studies.scheduling.quickness import decisions, many_jobs
from studies.scheduling.tables import errors, gavel_jobs, instances, other_files, trace_day
from studies.scheduling.totals import reference_totals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "schedule.md"
RESULT = Path(__file__).with_name("result.csv")
BEGIN, END = "<!-- measured: written by python -m studies scheduling -->\n", "<!-- end of measured -->"

PARTS: Mapping[str, Callable[[Path], Part]] = {
    "references": reference_totals,
    "others": other_files,
    "instances": instances,
    "trace": trace_day,
    "gavel": gavel_jobs,
    "errors": errors,
    "decisions": decisions,
    "many_jobs": many_jobs,
}


def main() -> int:
    data = os.environ.get("EPOCHCAST_DATA")
    if not data or not (Path(data).parent / "workloads" / "reference.json").exists():
        print("no workload files beside the data: nothing is measured")
        return 0
    return write([part(Path(data)) for part in PARTS.values()])


def write(parts: list[Part]) -> int:
    """The page and the table; 1 where something is worse than it may be."""
    rows = [row for part in parts for row in part.rows]
    with RESULT.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["part", "workload", "policy", "value", "of"], *rows])
    text = "\n".join(part.text for part in parts)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.split(BEGIN)[0] + BEGIN + text + END + page.split(END)[1], encoding="utf-8")
    failures = [failure for part in parts for failure in part.failures]
    print(text, *failures, sep="\n")
    return 1 if failures else 0
