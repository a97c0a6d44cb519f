"""Learning from past jobs, source by source: peers' models and the grey box on the same rows and splits.

    python -m studies history
    python -m studies.history.run --forecasts FOLDER --source dgxc_benchmarking --quick

Writes `result.csv` beside this file: a line per source, split and model. The peers are re-run as AI Gauge describes
(hyper-parameters by five-fold cross-validation on the mean relative error). Splits are those of the Politecnico talk:
larger batches, more GPUs, faster hardware, deeper networks; beside them five random parts.
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
from studies.history.rows import SOURCES, jobs_of

BY_HAND = True
RESULT = Path(__file__).with_name("result.csv")
PEERS = ("linear", "decision_tree", "random_forest", "boosting", "net")
OTHERS = ("stepwise", "svr", "optimus", "ernest")
OURS = ("grey_box", "forecast")
COLUMNS = ("source", "split", "model", "n", "mape", "median_ape", "p90_ape", "coverage")


def main(arguments: Sequence[str] | None = None) -> int:
    """Score all sources; fails where a target is missed, and says which."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forecasts", type=Path, default=Path(tempfile.gettempdir()) / "epochcast-history-forecasts")
    parser.add_argument("--source", default="")
    parser.add_argument("--quick", action="store_true", help="one set of hyper-parameters, fewer models")
    given = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    data = Path(os.environ["EPOCHCAST_DATA"])
    models = (
        (*OURS, "linear", "decision_tree", "random_forest", "boosting") if given.quick else (*OURS, *PEERS, *OTHERS)
    )
    lines = []
    for table, source, splits in SOURCES:
        if given.source and source != given.source:
            continue
        known = jobs_of(data, given.forecasts, table, source)
        for split in splits:
            try:
                result = compare(known, splits=[split], models=models, is_tuned=not given.quick, workers=2)
            except EpochcastError as error:
                print(f"{source} {split}: {error}", flush=True)
                continue
            for name, tested in result.splits[split].models.items():
                scores = tested.as_dict()
                lines.append({"source": source, "split": split, "model": name, **scores})
            print(f"{source} {split} ({len(known)} rows): {result.splits[split].why}", flush=True)
    _write(lines, whole=not given.source)
    return int(bool(report(lines)))


def report(lines: Sequence[dict[str, object]]) -> list[str]:
    """The targets that are missed, in words."""
    missed = []
    cases = dict.fromkeys((str(line["source"]), str(line["split"])) for line in lines)
    for source, split in cases:
        mine = {
            str(line["model"]): line["mape"] for line in lines if (line["source"], line["split"]) == (source, split)
        }
        ours = mine.get("grey_box")
        peers = {name: value for name, value in mine.items() if name in PEERS and isinstance(value, float)}
        if not isinstance(ours, float) or not peers:
            continue
        best = min(peers, key=lambda name: peers[name])
        bound = peers[best] if split == "random" else peers[best] / 2
        verdict = "reached" if ours <= bound else "MISSED"
        text = f"{source:24} {split:10} grey box {ours:7.1%}  best peer {best} {peers[best]:7.1%}  {verdict}"
        print(text)
        if ours > bound:
            missed.append(text)
    return missed


def _write(lines: Sequence[dict[str, object]], *, whole: bool) -> None:
    """All lines; of one source alone, the others stay as they are."""
    kept: list[dict[str, object]] = []
    if not whole and RESULT.exists():
        sources = {line["source"] for line in lines}
        with RESULT.open(encoding="utf-8") as stream:
            kept = [dict(row) for row in csv.DictReader(stream) if row["source"] not in sources]
    with RESULT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for line in [*kept, *lines]:
            writer.writerow({name: f"{v:.4f}" if isinstance(v := line.get(name), float) else v for name in COLUMNS})


if __name__ == "__main__":
    sys.exit(main())
