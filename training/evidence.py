"""Writes what the Accuracy page and "why believe this" show, from the results of `studies/accuracy`.

Run by `python -m training.evidence` after the study; both files are ours: errors, not measurements.
"""

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent.parent
LEFT_OUT = HERE / "studies" / "accuracy" / "left_out.csv"
PAGE = HERE / "docs" / "accuracy" / "accuracy.md"
WEB = HERE / "src" / "epochcast" / "surfaces" / "web"
HEADING = "## How far off, at a glance"


def main() -> None:
    """Write both files."""
    groups: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    steps = 0
    with LEFT_OUT.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            steps += 1
            if not row["without_family"]:
                continue
            key = tuple(row[name] for name in ("model", "family", "device", "precision", "mode", "source"))
            groups[key].append((int(float(row["batch"])), float(row["without_family"])))
    with (WEB / "evidence.csv").open("w", encoding="utf-8", newline="") as stream:
        stream.write("# Predicted over measured seconds less one, family left out; by python -m training.evidence.\n")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("model", "family", "device", "precision", "mode", "source", "batch", "rows", "error"))
        for key in sorted(groups):
            batches, ratios = zip(*groups[key], strict=True)
            writer.writerow((*key, round(median(batches)), len(ratios), f"{median(ratios) - 1:.3f}"))
    headings, rows = glance(PAGE.read_text(encoding="utf-8"))
    told = {"steps": steps, "headings": headings, "rows": rows}
    (WEB / "glance.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def glance(text: str) -> tuple[list[str], list[list[str]]]:
    """The first table under its heading."""
    lines = text.partition(HEADING)[2].splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    table: list[list[str]] = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return table[0], table[2:]


if __name__ == "__main__":
    main()
