"""The page of the study: what is missed first, then every case and every model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.history.curves import Point, curve_section
from studies.history.independent import BY_FAMILY
from studies.history.lines import Line, Used, percent
from studies.history.parts import Partial, parts_section
from studies.history.rows import DEVELOPED_ON, LEAST_ROWS, MOST_ROWS
from studies.history.talk import AXES, GOALS, Cell, talk_section

FOLDER = Path(__file__).parents[2] / "docs" / "accuracy"
PAGE = FOLDER / "history-accuracy.md"
MEDIANS = {threshold.partition(">")[0] + ">": GOALS[name] for name, (threshold, _) in AXES.items()}
"""The median errors that are asked for beyond what was learned from."""
LEAST_COVERAGE = 0.8
PEERS = ("linear", "decision_tree", "random_forest", "boosting", "net")


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
    def goal(self) -> float | None:
        """The median error that is asked for."""
        return next((goal for start, goal in MEDIANS.items() if self.split.startswith(start)), None)

    @property
    def is_unseen(self) -> bool:
        """Whether nobody looked at this source while the grey box was made."""
        return self.source not in DEVELOPED_ON

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


def pages(
    lines: Sequence[Line],
    used: Sequence[Used],
    curves: Sequence[Point] = (),
    parts: Sequence[Partial] = (),
    talk: Sequence[Cell] = (),
) -> dict[Path, str]:
    """The pages of the documentation."""
    found, ran = cases(lines), {line.source for line in lines}
    not_run = [one.source for one in used if not one.reason and one.source not in ran]
    pieces = {
        PAGE: [_INTRODUCTION, _missed(found, not_run), _targets(found), _seen(used), _table(found), _LIMITS],
        FOLDER / "history-learning.md": [_LEARNING, talk_section(talk), curve_section(curves), parts_section(parts)],
        FOLDER / "history-models.md": [_MODELS, _models(lines), _sources(used, ran)],
    }
    return {path: "\n".join(piece for piece in mine if piece) for path, mine in pieces.items()}


def _missed(found: Sequence[Case], not_run: Sequence[str]) -> str:
    """What is missed, first."""
    beyond = [case for case in found if not case.is_random]
    at_random = [case for case in found if case.is_random]
    far = [case for case in beyond if not case.is_reached]
    behind = [case for case in beyond if (case.ours.mape or 0.0) > (case.peer.mape or 0.0)]
    asked = [case for case in beyond if case.goal is not None]
    wide = [case for case in asked if (case.ours.median_ape or 0.0) > (case.goal or 0.0)]
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
        f"- **Not run yet**, though they have enough rows: {', '.join(not_run) or 'none'}.",
    ]
    return "\n".join(["## What fails", "", *points, ""])


def _named(found: Sequence[Case]) -> str:
    return ", ".join(f"{case.source} `{case.split}`" for case in found) or "none"


def _targets(found: Sequence[Case]) -> str:
    """How many targets are reached, on sources that were looked at and on those that were not."""
    lines = [
        "## The targets",
        "",
        "| target | sources it was chosen on | other sources |",
        "|---|---:|---:|",
    ]
    random, beyond = [c for c in found if c.is_random], [c for c in found if not c.is_random]
    rows: list[tuple[str, list[Case], Callable[[Case], bool]]] = [
        ("random: less than the best peer", random, lambda c: c.is_reached),
        ("beyond: at most half of the best peer", beyond, lambda c: c.is_reached),
        ("beyond: less than the best peer", beyond, lambda c: (c.ours.mape or 0.0) <= (c.peer.mape or 0.0)),
    ]
    for start, goal in MEDIANS.items():
        mine = [c for c in beyond if c.split.startswith(start)]
        rows.append((f"`{start}60%` or 50%: median {goal:.0%}".replace("%", " %"), mine, _is_near))
    for name, mine, is_reached in rows:
        halves = [[c for c in mine if c.is_unseen is is_unseen] for is_unseen in (False, True)]
        cells = [f"{sum(is_reached(c) for c in half)} of {len(half)}" for half in halves]
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join([*lines, ""])


def _is_near(case: Case) -> bool:
    return (case.ours.median_ape or 0.0) <= (case.goal or 0.0)


def _seen(used: Sequence[Used]) -> str:
    """Which sources the cost model was trained on, and which were looked at."""
    ran = [one for one in used if not one.reason]
    trained = [one.source for one in ran if one.is_trained and one.source not in BY_FAMILY]
    family = [one.source for one in ran if one.is_trained and one.source in BY_FAMILY]
    others = [one.source for one in ran if not one.is_trained]
    return _SEEN.format(
        trained=", ".join(trained) or "none",
        family=", ".join(family) or "none",
        others=", ".join(others) or "none",
        looked=", ".join(DEVELOPED_ON),
    )


def _table(found: Sequence[Case]) -> str:
    head = [
        "## The grey box against the best peer",
        "",
        "Mean error (MAPE), and in brackets the median. *Asked*: the MAPE of the best peer at random, half of it beyond"
        " what was learned from. † marks sources that were looked at while the grey box was made.",
        "",
        "| source | split | tested | grey box | best peer | forecast × factor | asked | reached | in the interval |",
        "|---|---|---:|---:|---|---:|---:|---|---:|",
    ]
    rows = [
        f"| {case.source}{'' if case.is_unseen else ' †'} | `{case.split}` | {case.ours.n} of {case.ours.rows} |"
        f" {_both(case.ours)} | {case.peer.model} {_both(case.peer)} | {_both(case.forecast)} |"
        f" {percent(case.bound)} | {'yes' if case.is_reached else '**no**'} | {percent(case.ours.coverage)} |"
        for case in found
    ]
    return "\n".join([*head, *rows, ""])


def _models(lines: Sequence[Line]) -> str:
    """The MAPE of every model."""
    names = list(dict.fromkeys(line.model for line in lines))
    head = [
        "## Every model",
        "",
        "MAPE; a dash where a model could not be fitted, or was not run (`result.csv` says why).",
        "",
    ]
    head += ["| source | split | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
    rows = []
    for source, split in dict.fromkeys((line.source, line.split) for line in lines):
        here = {line.model: line.mape for line in lines if (line.source, line.split) == (source, split)}
        rows.append(f"| {source} | `{split}` | " + " | ".join(percent(here.get(name)) for name in names) + " |")
    return "\n".join([*head, *rows, ""])


def _sources(used: Sequence[Used], ran: set[str]) -> str:
    """What was used of every source, and why not."""
    head = [
        "## Sources",
        "",
        f"Rows whose quality is ok and whose step was timed; of more than {MOST_ROWS}, so many drawn at random (seed"
        f" 0). A source with fewer than {LEAST_ROWS} is not run. *Left out*: rows whose job no net left out, or whose"
        " time cannot be read.",
        "",
        "| table | source | timed | used | with a forecast | left out | |",
        "|---|---|---:|---:|---:|---:|---|",
    ]
    rows = [
        f"| {one.table} | {one.source} | {one.timed} | {one.rows} | {one.forecast} | {one.left_out} |"
        f" {_why(one, ran)} |"
        for one in used
    ]
    return "\n".join([*head, *rows, ""])


def _why(one: Used, ran: set[str]) -> str:
    return one.reason or ("" if one.source in ran else "**not run yet**")


def _both(line: Line | None) -> str:
    return "–" if line is None else f"{percent(line.mape)} ({percent(line.median_ape)})"


_INTRODUCTION = """# How good history is

Written by `studies/history` (`python -m studies history`; `result.csv` there has every figure). The rows of one
source are the past jobs, the target is the time of a step. Peers are {peers}. Their hyper-parameters are chosen as
AI Gauge describes it, by cross-validation in five parts on the mean relative error, once for a source, on four fifths
of its rows; which ones are tried is ours (`observe/history/models/model_table.py`). The grey box and its peers have the
same rows, columns and splits. [Every model and source](history-models.md); [networks by device, numbers of past jobs,
parts of a job](history-learning.md).
""".format(peers=", ".join(PEERS))
_LEARNING = """# How much history is needed

Written by `studies/history`. Networks that were seen, at larger batches, on more GPUs and on faster devices; the number
of past jobs; jobs of which a part has run. [How good history is](history-accuracy.md).
"""
_MODELS = """# History: every model, every source

Written by `studies/history`. [How good history is](history-accuracy.md).
"""
_SEEN = """## What the forecast has not seen

The grey box begins with a forecast, peers begin with nothing. That is its point; but then the forecast must not know
the rows that are tested.

- **{trained}**: the shipped cost model was trained on single-GPU steps of these ([model card](model-card.md)). Their
  forecasts here are those of nets that left out everything the source timed (`studies/accuracy/left_out.csv`); what
  several GPUs add is the shipped forecast of it. Whoever uses epochcast has a source of their own, so these are the
  figures to expect.
- **{family}**: most of all steps are of this source, so the net left out the family of each network instead.
- **{others}**: no seconds of a kernel or a wire were fitted on these. That NVIDIA's recipes interleave their stages was
  assumed after a look at the errors of dgxc_benchmarking ([large models](large-models-accuracy.md)).

The form of the grey box (which corrections, how they are mixed, the priors) was chosen by trials on {looked}. Their
figures are those of a design that has seen them: it was chosen by errors on the rows that are tested here, and two
(jcjohnson, nvidia_dle) were added after a first run missed the target at random on them. Figures of the other four had
been printed by that run, too; nothing was chosen by them. Hyper-parameters and shares are never chosen on rows that are
tested. That pairs of network and device count as new was added after intervals had held 0 to 40 % on four of the talk's
tables, and the widths of what could not be tried come from these splits: coverage there is not an independent test.
Tried on those that were looked at, and not better beyond what was learned from by more
than chance: shares of each correction by what it earns with the largest batches, GPUs, devices or networks kept back;
a regression on the parts of the forecast (computation, exchange, a constant, the batch); the Gaussian process on
computation alone, or held at the ends of what was seen. Trends along the forecast, the batch or the exchange made the
Gaussian process err more by a sixth (geometric mean over 22 cases). Shares that are earned at random make errors at
random smaller by a sixth, over ten sources.
"""
_LIMITS = """## What this does not say

- Nothing of `epoch_seconds`, `total_seconds` (but for jobs from a part of them) or `peak_bytes`.
- Splits are one draw (seed 0). Differences of a few tenths of the error may be chance where fewer than 100 rows
  were tested.
- `batch>60%` and the like test above that share of a column's different values. `power` is the peak of the data
  sheet.
- The grey box knows of a network what its name says, by the forecast. Peers know its name alone, and what columns say.
  Where the same networks are in all rows, that is no disadvantage.
"""
