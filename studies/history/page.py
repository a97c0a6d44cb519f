"""The page of the study: what is missed first, then every case and every model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.history.curves import Point, curve_section
from studies.history.rows import SOURCES

PAGE = Path(__file__).parents[2] / "docs" / "history-accuracy.md"
MEDIANS = {"batch>": 0.05, "gpus>": 0.08, "power>": 0.10}
"""The median errors that are asked for beyond what was learned from."""
LEAST_COVERAGE = 0.8
PEERS = ("linear", "decision_tree", "random_forest", "boosting", "net")


@dataclass(frozen=True)
class Line:
    """One model on one split of one source; `mape` None where it could not be fitted."""

    source: str
    split: str
    rows: int
    model: str
    tuned: str
    n: int
    mape: float | None
    median_ape: float | None
    p90_ape: float | None
    coverage: float | None


def line_of(row: Mapping[str, str]) -> Line:
    """Of a row of `result.csv`."""

    def number(name: str) -> float | None:
        return float(row[name]) if row[name] else None

    return Line(
        row["source"],
        row["split"],
        int(row["rows"]),
        row["model"],
        row["tuned"],
        int(row["n"]),
        number("mape"),
        number("median_ape"),
        number("p90_ape"),
        number("coverage"),
    )


@dataclass(frozen=True)
class Case:
    """The grey box against the best of its peers, on one split of one source."""

    source: str
    split: str
    ours: Line
    peer: Line
    forecast: Line | None

    @property
    def is_random(self) -> bool:
        """Whether rows were tested that are like those learned from."""
        return self.split == "random"

    @property
    def bound(self) -> float:
        """The MAPE of the best peer at random, half of it beyond what was learned from."""
        return (self.peer.mape or 0.0) * (1.0 if self.is_random else 0.5)

    @property
    def is_reached(self) -> bool:
        """Whether the target is."""
        return (self.ours.mape or 0.0) <= self.bound

    @property
    def told(self) -> str:
        """On one line."""
        verdict = "reached" if self.is_reached else "MISSED"
        best = f"best peer {self.peer.model} {self.peer.mape:7.1%}"
        return f"{self.source:24} {self.split:10} grey box {self.ours.mape:7.1%}  {best}  {verdict}"


def cases(lines: Sequence[Line]) -> list[Case]:
    """Every split of every source on which the grey box and a peer could be fitted."""
    found = []
    for source, split in dict.fromkeys((line.source, line.split) for line in lines):
        here = {line.model: line for line in lines if (line.source, line.split) == (source, split)}
        known = {name: line for name, line in here.items() if line.mape is not None}
        peers = [known[name] for name in PEERS if name in known]
        if "grey_box" in known and peers:
            best = min(peers, key=lambda line: line.mape or 0.0)
            found.append(Case(source, split, known["grey_box"], best, known.get("forecast")))
    return found


def page(lines: Sequence[Line], curves: Sequence[Point]) -> str:
    """The page of the documentation."""
    found = cases(lines)
    pieces = [_INTRODUCTION.format(ran=", ".join(sorted({line.source for line in lines}))), _missed(found)]
    pieces += [
        _SEEN,
        _absent({line.source for line in lines}),
        _table(found),
        _models(lines),
        curve_section(curves),
        _LIMITS,
    ]
    return "\n".join(piece for piece in pieces if piece)


def _missed(found: Sequence[Case]) -> str:
    """What is missed, first."""
    beyond = [case for case in found if not case.is_random]
    at_random = [case for case in found if case.is_random]
    far = [case for case in beyond if not case.is_reached]
    behind = [case for case in beyond if (case.ours.mape or 0.0) > (case.peer.mape or 0.0)]
    wide = [case for case in beyond if (goal := _goal(case)) is not None and (case.ours.median_ape or 0.0) > goal]
    asked = [case for case in beyond if _goal(case) is not None]
    worse = [case for case in found if case.forecast and (case.forecast.mape or 0.0) < (case.ours.mape or 0.0)]
    narrow = [case for case in found if (case.ours.coverage or 0.0) < LEAST_COVERAGE]
    lost = [case for case in at_random if not case.is_reached]
    points = [
        f"- **Half of the best peer** is missed on {len(far)} of {len(beyond)} extrapolations: {_named(far)}.",
        f"- **Worse than the best peer** on {len(behind)} of {len(beyond)} extrapolations: {_named(behind)}.",
        f"- **The median** asked for (batch 5 %, GPUs 8 %, new hardware 10 %) is missed on {len(wide)} of"
        f" {len(asked)}: {_named(wide)}.",
        f"- **At random** the best peer is better on {len(lost)} of {len(at_random)} sources: {_named(lost)}.",
        "- **The forecast times one factor**, which learns next to nothing, is better than the grey box on"
        f" {len(worse)} of {len(found)}: {_named(worse)}.",
        f"- **Intervals** that should hold 90 % of the rows hold less than 80 % on {len(narrow)} of {len(found)}:"
        f" {_named(narrow)}.",
    ]
    return "\n".join(["## What fails", "", *points, ""])


def _named(found: Sequence[Case]) -> str:
    return ", ".join(f"{case.source} `{case.split}`" for case in found) or "none"


def _goal(case: Case) -> float | None:
    """The median error that is asked for."""
    return next((goal for start, goal in MEDIANS.items() if case.split.startswith(start)), None)


def _absent(ran: set[str]) -> str:
    missing = [source for _, source, _ in SOURCES if source not in ran]
    return "Not run yet: " + (", ".join(missing) or "none") + ".\n"


def _table(found: Sequence[Case]) -> str:
    head = [
        "## The grey box against the best peer",
        "",
        "Mean error (MAPE), and in brackets the median. *Asked*: the MAPE of the best peer at random, half of it beyond"
        " what was learned from.",
        "",
        "| source | split | tested | grey box | best peer | forecast × factor | asked | reached | in the interval |",
        "|---|---|---:|---:|---|---:|---:|---|---:|",
    ]
    rows = [
        f"| {case.source} | `{case.split}` | {case.ours.n} of {case.ours.rows} | {_both(case.ours)} |"
        f" {case.peer.model} {_both(case.peer)} | {_both(case.forecast)} | {_percent(case.bound)} |"
        f" {'yes' if case.is_reached else '**no**'} | {_percent(case.ours.coverage)} |"
        for case in found
    ]
    return "\n".join([*head, *rows, ""])


def _models(lines: Sequence[Line]) -> str:
    """The MAPE of every model."""
    names = list(dict.fromkeys(line.model for line in lines))
    head = ["## Every model", "", "MAPE.", ""]
    head += ["| source | split | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
    rows = []
    for source, split in dict.fromkeys((line.source, line.split) for line in lines):
        here = {line.model: line.mape for line in lines if (line.source, line.split) == (source, split)}
        rows.append(f"| {source} | `{split}` | " + " | ".join(_percent(here.get(name)) for name in names) + " |")
    return "\n".join([*head, *rows, ""])


def _both(line: Line | None) -> str:
    return "–" if line is None else f"{_percent(line.mape)} ({_percent(line.median_ape)})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}".replace("%", " %")


_INTRODUCTION = """# How good history is

Written by `studies/history` (`python -m studies history`; `result.csv` there has every figure). The rows of one
source are the past jobs, the target is the time of a step. Peers are {peers} as AI Gauge describes them:
hyper-parameters by cross-validation in five parts on the mean relative error, chosen anew on what each split learns
from. The grey box and its peers have the same rows, columns and splits. Run for this page: {{ran}}.
""".format(peers=", ".join(PEERS))
_SEEN = """## What the forecast may have seen

The grey box begins with the forecast of the shipped cost model. Peers begin with nothing. That is its point, and it
is also an advantage that must be named: some rows that are "not seen" here were seen by the cost model.

- **kernelbench_level3, lambda_tensorflow**: 352 and 95 of their single-GPU steps are in the training of the shipped
  cost model ([model card](model-card.md)). Their figures say how well forecast and history fit together, not how well
  they do on a new source.
- **dgxc_benchmarking, bigscience_tr11**: no seconds of a kernel or a wire were fitted on them. That NVIDIA's recipes
  interleave their stages was assumed after a look at the errors of dgxc_benchmarking ([large
  models](large-models.md)).

The priors of the grey box, and the numbers along which its trends go on (`TRENDS`), were chosen by trials on some of
these tables. So its figures here are those of a design that has seen them; peers have their authors' designs.
"""
_LIMITS = """## What this does not say

- Nothing of the sources that were not run, of `epoch_seconds`, `total_seconds` or `peak_bytes`.
- Splits are one draw (seed 0). Differences of a few tenths of the error may be chance where fewer than 100 rows were
  tested.
- `batch>60%` and the like test above that share of a column's different values. `power` is the peak of the data
  sheet.
"""
