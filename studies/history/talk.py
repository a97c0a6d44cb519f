"""The tables of the Politecnico talk (Gianniti et al. 2019) on measured jobs: networks by type and number of GPUs.

As there, what is tested lies beyond what was learned from **of the same network**: its larger batches on the same GPUs,
more GPUs at the same batch, faster devices. (The splits of `run.py` are harder: above one threshold for the whole table
there may be networks that were never seen.) The talk's own model is `stepwise`, one more peer.

All rows of a source with several devices or numbers of GPUs count, up to `MOST_ROWS` drawn with a seed. `talk.csv` has
a line per model for every cell of the tables, and one for all cells together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from epochcast.errors import EpochcastError
from epochcast.measure.evaluate.scores import scores
from epochcast.observe.history.history_compare import Tested
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models.model_table import find_kind
from epochcast.observe.history.roles import ROLES, column_of
from epochcast.observe.history.splits import split_of
from studies.history.lines import append_line, percent, read_lines
from studies.history.rows import Source, known_of
from studies.history.scoring import Scorer

RESULT = Path(__file__).with_name("talk.csv")
COLUMNS = ("source", "beyond", "network", "device", "gpus", "n", "model", "mape", "median_ape", "coverage")
ALL = "all"
MOST_ROWS, LEAST_TESTED = 1000, 10
LEAST_ALONE = 10
"""Rows of a network that a model of its own needs."""
AXES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "batch": ("batch>60%", ("model", "device", "gpus", "precision")),
    "GPUs": ("gpus>50%", ("model", "device", "batch", "precision")),
    "device": ("power>60%", ("model", "precision")),
}
"""By what is tested beyond: the split, and the columns in which its groups are equal."""
THEIRS = "stepwise"
MODELS = ("grey_box", "forecast", THEIRS, "linear", "decision_tree", "random_forest", "boosting", "net")
PEERS = MODELS[2:]
GOALS = {"batch": 0.05, "GPUs": 0.08, "device": 0.10}
# A table of the page has at most so many networks and columns; the file has all.


@dataclass(frozen=True)
class Cell:
    """The errors of a model on a network, a device and a number of GPUs; `network` is `ALL` for all of a source."""

    source: str
    beyond: str
    network: str
    device: str
    gpus: int
    n: int
    model: str
    mape: float
    median_ape: float
    coverage: float | None

    @classmethod
    def of(cls, row: Mapping[str, str]) -> "Cell":
        """Of a row of a file."""
        coverage = float(row["coverage"]) if row["coverage"] else None
        where = (row["source"], row["beyond"], row["network"], row["device"], int(row["gpus"]), int(row["n"]))
        return cls(*where, row["model"], float(row["mape"]), float(row["median_ape"]), coverage)


def read_talk(path: Path = RESULT) -> list[Cell]:
    """All lines of a file."""
    return read_lines(path, Cell.of)


def add_talk(source: Source, folder: Path) -> None:
    """Score a source, unless it is kept, or has one number of GPUs of one device alone."""
    if len(source.rows.select("device", "gpus").unique()) < 2:
        return
    kept = folder / RESULT.name
    done = {(cell.beyond, cell.model) for cell in read_talk(kept) if (cell.source, cell.network) == (source.name, ALL)}
    wanted = [(beyond, model) for beyond in AXES for model in MODELS if (beyond, model) not in done]
    if not wanted:
        return
    scorer = Scorer(source.name, known_of(source, folder / "forecasts", MOST_ROWS).jobs)
    for beyond, model in wanted:
        split = split_named(beyond, scorer.known.jobs)
        if split is not None:
            for cell in _cells(source.name, beyond, model, scorer, split):
                append_line(kept, COLUMNS, cell)
                if cell.network == ALL:
                    print(
                        f"{cell.source:24} {beyond:10} {model:14} {cell.mape:.1%} ({cell.median_ape:.1%})", flush=True
                    )


def split_named(beyond: str, jobs: Jobs) -> str | None:
    """The split of an axis, by the columns that the table has; None where it leaves too little to test."""
    threshold, columns = AXES[beyond]
    present = [one for one in columns if (column_of(one, jobs.columns) if one in ROLES else one in jobs.columns)]
    name = f"{threshold}:{'+'.join(present)}"
    try:
        ((_, test),) = split_of(name, jobs).parts
    except EpochcastError:
        return None
    return name if len(test) >= LEAST_TESTED else None


def _cells(source: str, beyond: str, model: str, scorer: Scorer, split: str) -> Iterator[Cell]:
    """Of every network, device and number of GPUs that is tested; the last line is that of all."""
    tested = scorer.tested(split, model)
    if tested.reason:
        return
    if model == THEIRS:
        tested = _alone(tested, scorer.known, split)
    jobs = scorer.known.jobs.take(tested.rows)
    gpus = np.nan_to_num(jobs.number("gpus"), nan=1.0).astype(np.int64)
    places = list(zip(jobs.category("model").tolist(), jobs.category("device").tolist(), gpus.tolist(), strict=True))
    has_intervals = bool((tested.high > tested.low).any())
    whole = [(ALL, "", 0)] * len(places)
    for each in (places, whole):
        for network, device, count in sorted(set(each)):
            mine = np.array([place == (network, device, count) for place in each])
            found = _scored(tested, mine)
            coverage = found[2] if has_intervals else None
            yield Cell(source, beyond, network, device, count, int(mine.sum()), model, found[0], found[1], coverage)


def _alone(tested: Tested, known: LearningSet, split: str) -> Tested:
    """What models of each network alone predict, where it has enough rows; else what was predicted."""
    ((train, _),) = split_of(split, known.jobs).parts
    words, mid, kind = known.jobs.category("model"), tested.mid.copy(), find_kind(THEIRS)
    for network in np.unique(words[tested.rows]):
        mine, asked = train[words[train] == network], words[tested.rows] == network
        if len(mine) < LEAST_ALONE:
            continue
        try:
            fitted = kind.fit(known.take(mine), kind.grid[0], 0)
        except EpochcastError:
            continue
        mid[asked] = fitted.predict(known.take(tested.rows[asked]).inputs)
    return replace(tested, low=mid, mid=mid, high=mid)


def _scored(tested: Tested, mine: np.ndarray) -> tuple[float, float, float]:
    columns = (tested.measured, tested.low, tested.mid, tested.high)
    found = scores(*(column[mine] for column in columns))
    return float(found.mape or 0.0), float(found.median_ape or 0.0), float(found.coverage or 0.0)


# ---- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """One source beyond one axis: ours, the forecast alone, the talk's model and the best peer."""

    ours: Cell
    forecast: Cell | None
    theirs: Cell | None
    peer: Cell

    @property
    def is_half(self) -> bool:
        """Whether ours has at most half of the error of the best peer."""
        return self.ours.mape <= self.peer.mape / 2

    @property
    def is_near(self) -> bool:
        """Whether the median is what is asked for."""
        return self.ours.median_ape <= GOALS[self.ours.beyond]


def summaries(cells: Sequence[Cell]) -> list[Summary]:
    """Every axis of every source on which ours and a peer could be fitted."""
    found = []
    whole = [cell for cell in cells if cell.network == ALL]
    for beyond in AXES:
        for source in dict.fromkeys(cell.source for cell in whole):
            here = {cell.model: cell for cell in whole if (cell.source, cell.beyond) == (source, beyond)}
            peers = [here[name] for name in PEERS if name in here]
            if "grey_box" in here and peers:
                best = min(peers, key=lambda cell: cell.mape)
                found.append(Summary(here["grey_box"], here.get("forecast"), here.get(THEIRS), best))
    return found


def talk_section(cells: Sequence[Cell]) -> str:
    """For the page; empty where nothing was run."""
    found = summaries(cells)
    if not found:
        return ""
    counts = {beyond: [one for one in found if one.ours.beyond == beyond] for beyond in AXES}
    told = ", ".join(
        f"{beyond} {sum(one.is_near for one in mine)} of {len(mine)} ({GOALS[beyond]:.0%})".replace("%", " %")
        for beyond, mine in counts.items()
    )
    lines = [
        "## The tables of the talk",
        "",
        "Gianniti et al. (2019) ask for larger batches, more GPUs and faster devices *of networks that they have seen*."
        " The same here: of every network on every device (and number of GPUs, or batch) the largest are tested, and"
        f" everything else of the source is learned from; up to {MOST_ROWS:,} rows of a source. *Stepwise* is their"
        " model (linear, with inverses and products, chosen by Draper and Smith's selection), fitted to each network"
        f" alone, as they do, or to the whole table where a network has fewer than {LEAST_ALONE} rows to learn from."
        " They report 0.4 to 28 % for batches, 5 to 25 % for GPUs, 5 to 18 % for devices.",
        "",
        f"The median that is asked for is reached by: {told}. At most half of the best peer's mean error:"
        f" {sum(one.is_half for one in found)} of {len(found)}; less than the best peer:"
        f" {sum(one.ours.mape < one.peer.mape for one in found)} of {len(found)}.",
        "",
        "| beyond | source | tested | grey box | forecast × factor | stepwise | best peer | in the interval |",
        "|---|---|---:|---:|---:|---:|---|---:|",
    ]
    for one in found:
        ours = one.ours
        verdict = "" if one.is_near else " **over**"
        lines.append(
            f"| {ours.beyond} | {ours.source} | {ours.n} | {_both(ours)}{verdict} | {_both(one.forecast)} |"
            f" {_both(one.theirs)} | {one.peer.model} {_both(one.peer)} | {percent(ours.coverage)} |"
        )
    lines += [
        "",
        "Mean error, and in brackets the median; **over**: the median is above what is asked for."
        " `studies/history/talk.csv` has every network by device and number of GPUs.",
        "",
    ]
    return "\n".join(lines)


def _both(cell: Cell | None) -> str:
    return "–" if cell is None else f"{percent(cell.mape)} ({percent(cell.median_ape)})"


def ordered(cells: Sequence[Cell], names: Sequence[str]) -> list[Cell]:
    """As the file beside this has them; of a cell that was written twice, by a run that was cut off, the last."""
    mine = {(c.source, c.beyond, c.network, c.device, c.gpus, c.model): c for c in cells if c.source in names}
    return sorted(
        mine.values(), key=lambda c: (names.index(c.source), list(AXES).index(c.beyond), MODELS.index(c.model))
    )
