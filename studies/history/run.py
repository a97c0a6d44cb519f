"""Learning from past jobs, source by source: peers' models and the grey box on the same rows and splits.

    python -m studies history
    python -m studies.history.run --forecasts FOLDER --source dgxc_benchmarking,bigscience_tr11 --peers

Writes `result.csv` beside this file, a line per source, split and model, and the page of it (`page.py`). The peers are
re-run as AI Gauge describes (hyper-parameters by five-fold cross-validation on the mean relative error). Splits are
those of the Politecnico talk: larger batches, more GPUs, faster hardware, deeper networks; beside them five random
parts.
"""

import argparse
import csv
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from epochcast.errors import EpochcastError
from epochcast.history.compare import compare
from studies.history.curves import add_curve, read_curves
from studies.history.page import PAGE, PEERS, Line, cases, line_of, page
from studies.history.rows import SOURCES, jobs_of

BY_HAND = True
RESULT = Path(__file__).with_name("result.csv")
OTHERS = ("stepwise", "svr", "optimus", "ernest")
OURS = ("grey_box", "forecast")
COLUMNS = ("source", "split", "rows", "model", "tuned", "n", "mape", "median_ape", "p90_ape", "coverage")


def main(arguments: Sequence[str] | None = None) -> int:
    """Score all sources; fails where a target is missed, and says which."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forecasts", type=Path, default=Path(tempfile.gettempdir()) / "epochcast-history-forecasts")
    parser.add_argument("--source", default="", help="these alone, with commas; lines of others stay as they are")
    parser.add_argument("--split", default="", help="these alone, with commas")
    parser.add_argument("--peers", action="store_true", help="the models of AI Gauge and ours, no others")
    parser.add_argument("--quick", action="store_true", help="one set of hyper-parameters")
    parser.add_argument("--curves", action="store_true", help="the learning curves alone (`curves.py`)")
    parser.add_argument("--page", action="store_true", help="write the page of what was found, and run nothing")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    data = Path(os.environ["EPOCHCAST_DATA"])
    models = (*OURS, *PEERS) if given.peers else (*OURS, *PEERS, *OTHERS)
    wanted = set(given.source.split(",")) if given.source else {source for _, source, _ in SOURCES}
    for table, source, splits in SOURCES:
        if source not in wanted or given.page:
            continue
        known = jobs_of(data, given.forecasts, table, source)
        if given.curves or not given.split:
            add_curve(source, known)
        for split in [name for name in splits if _is_asked(name, given)]:
            try:
                result = compare(known, splits=[split], models=models, is_tuned=not given.quick, workers=given.workers)
            except EpochcastError as error:
                print(f"{source} {split}: {error}", flush=True)
                continue
            told: dict[str, object] = {
                "source": source,
                "split": split,
                "rows": len(known),
                "tuned": "no" if given.quick else "yes",
            }
            tested = result.splits[split].models
            _write([{**told, "model": name, **one.as_dict()} for name, one in tested.items()])
            print(f"{source} {split} ({len(known)} rows): {result.splits[split].why}", flush=True)
    lines = read()
    PAGE.write_text(page(lines, read_curves()), encoding="utf-8")
    return int(bool(report(lines)))


def _is_asked(split: str, given: argparse.Namespace) -> bool:
    return not given.curves and (not given.split or split in given.split.split(","))


def report(lines: Sequence[Line]) -> list[str]:
    """Prints every case; the targets that are missed, in words."""
    missed = []
    for case in cases(lines):
        print(case.told)
        if not case.is_reached:
            missed.append(case.told)
    return missed


def read() -> list[Line]:
    """All lines of the result."""
    if not RESULT.exists():
        return []
    with RESULT.open(encoding="utf-8") as stream:
        return [line_of(row) for row in csv.DictReader(stream)]


def _order(line: dict[str, object]) -> tuple[int, int]:
    """Sources and splits as they are listed."""
    places = {source: (place, splits) for place, (_, source, splits) in enumerate(SOURCES)}
    place, splits = places[str(line["source"])]
    return place, splits.index(str(line["split"]))


def _write(found: Sequence[dict[str, object]]) -> None:
    """Lines of one source and split; all others stay as they are."""
    new = {(str(line["source"]), str(line["split"])) for line in found}
    kept: list[dict[str, object]] = []
    if RESULT.exists():
        with RESULT.open(encoding="utf-8") as stream:
            kept = [dict(row) for row in csv.DictReader(stream) if (row["source"], row["split"]) not in new]
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for line in sorted([*kept, *found], key=_order):
            writer.writerow({name: f"{v:.4f}" if isinstance(v := line.get(name), float) else v for name in COLUMNS})


if __name__ == "__main__":
    sys.exit(main())
