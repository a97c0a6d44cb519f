"""The targets, our figures, and why one is missed: in numbers that the rows themselves give."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epochcast.measure.evaluate.scored_rows import SECONDS
from epochcast.measure.evaluate.scores import scores
from studies.accuracy.figures import Array
from studies.accuracy.intervals import WANTED, GivenRuns
from studies.accuracy.leaks import has_relative
from studies.accuracy.left_out_table import LeftOutTable
from studies.accuracy.questions import NOT_MEASURED, ONE_NODE, SEVERAL_NODES
from studies.correction_factor import run as correction
from studies.justus import run as justus

MIXED = ("amp_fp16", "amp_bf16", "fp16", "bf16", "tf32")
GPT2_SOURCES = ("modded_nanogpt", "modded_nanogpt_track3")
AMD = "MI"  # the AMD boards among the transformer rows


@dataclass(frozen=True, slots=True)
class Target:
    """`wanted` and `ours` in one unit ("%", or "ms" for an RMSE): the mean, and the median where it is asked.

    `width` is that of the median interval with the most that is wanted, `holds` how many intervals do; both where they
    are asked. A `caveat` says in what the rows are easier than the target's words.
    """

    what: str
    n: int
    wanted: tuple[float, ...]
    ours: tuple[float, ...]
    unit: str = "%"
    why: str = ""
    caveat: str = ""
    width: tuple[float, float] | None = None
    holds: float | None = None

    @property
    def is_met(self) -> bool:
        """Every figure as wanted or better."""
        return self.is_near and self.is_narrow and self.is_held

    @property
    def is_near(self) -> bool:
        """Whether the error is as small as wanted."""
        return all(mine <= most for mine, most in zip(self.ours, self.wanted, strict=True))

    @property
    def is_narrow(self) -> bool:
        """Whether intervals are as narrow as wanted."""
        return self.width is None or self.width[1] <= self.width[0]

    @property
    def is_held(self) -> bool:
        """Whether as many intervals hold as wanted."""
        return self.holds is None or WANTED[0] <= self.holds <= WANTED[1]

    @property
    def verdict(self) -> str:
        """Met, or by how much not."""
        if self.is_met:
            return "met, with a caveat" if self.caveat else "met"
        by = max(mine - most for mine, most in zip(self.ours, self.wanted, strict=True))
        misses = [] if self.is_near else [f"by {by:.1f} points" if self.unit == "%" else f"by {by:.2f} ms"]
        misses += [] if self.is_narrow else ["too wide"]
        misses += [] if self.is_held or self.holds is None else [f"holds {self.holds:.0%}"]
        return f"missed {', '.join(misses)}"


def errors(ratios: Array) -> tuple[float, float]:
    """MAPE and median APE in percent."""
    ape = 100 * np.abs(ratios[np.isfinite(ratios)] - 1)
    return float(ape.mean()), float(np.median(ape))


def step_targets(steps: pl.DataFrame, new_networks: pl.DataFrame) -> list[Target]:
    """Whole steps by what is known of the GPU and by question; `new_networks` are those whose family was left out."""
    unseen = steps.filter(pl.col("gpu") == NOT_MEASURED)
    gpt2 = steps.filter(pl.col("source").is_in(GPT2_SOURCES))
    asked = {question: steps.filter(pl.col("question") == question) for question in (ONE_NODE, SEVERAL_NODES)}
    caveat = f"{gpt2['device'].n_unique()} GPUs are open, most of them in nodes of eight"
    targets = [
        _scored("GPU and format known, network new", new_networks, 12.0, width=1.8),
        _scored("GPU not measured", unseen, 18.0, width=2.5),
        _scored("GPT-2, bf16, compiled", gpt2, 12.0, caveat=caveat),
        _scored(ONE_NODE, asked[ONE_NODE], 12.0),
        _scored(SEVERAL_NODES, asked[SEVERAL_NODES], 15.0),
    ]
    return [target for target in targets if target is not None]


def _scored(
    what: str, steps: pl.DataFrame, wanted: float, *, width: float | None = None, caveat: str = ""
) -> Target | None:
    """A target of the mean error, and of width and coverage of the intervals where a width is wanted."""
    answered = steps.filter("is_forecast")
    if not len(answered):
        return None
    measured, low, mid, high = (answered[name].to_numpy() for name in SECONDS)
    figures = scores(measured, low, mid, high)
    assert figures.mape is not None and figures.width is not None
    target = Target(what, figures.n, (wanted,), (100 * figures.mape,), caveat=caveat)
    return target if width is None else replace(target, width=(width, figures.width), holds=figures.coverage)


def image_targets(table: LeftOutTable) -> list[Target]:
    """RTX 3090, mixed precision, training, the family left out."""
    targets = []
    for layout, wanted in (("nchw", (8.0, 6.0)), ("channels_last", (11.0, 7.0))):
        mine = (table.source == "timm") & (table.device == "RTX 3090") & (table.mode == "training")
        mine &= (table.layout == layout) & np.isfinite(table.ratios["family"])
        if mine.any():
            ratios = table.ratios["family"][mine]
            name = "NCHW" if layout == "nchw" else "channels-last"
            what = f"image networks, RTX 3090, mixed precision, {name}, family never seen"
            why, caveat = carried_by(ratios, table.family[mine]), _relatives(ratios, has_relative(table)[mine])
            targets.append(Target(what, int(mine.sum()), wanted, errors(ratios), why=why, caveat=caveat))
    return targets


def _relatives(ratios: Array, related: NDArray[np.bool_]) -> str:
    """What rows without a relative in the training err by, beside those with one."""
    if not related.any() or related.all():
        return ""
    mape, median = errors(ratios[~related])
    their_mape, their_median = errors(ratios[related])
    return (
        f"{related.mean():.0%} of the rows had a relative under another label in the training: "
        f"{their_mape:.1f} / {their_median:.1f} on them, {mape:.1f} / {median:.1f} on the others"
    )


def carried_by(ratios: Array, families: NDArray[np.str_], most: int = 4) -> str:
    """Which families carry the error, and what is left without them."""
    ape = np.abs(ratios - 1)
    names, place = np.unique(families, return_inverse=True)
    sums = np.bincount(place, weights=ape)
    worst = np.argsort(-(sums - ape.mean() * np.bincount(place)))[:most]
    rest = ~np.isin(place, worst)
    if not rest.any():
        return ""
    mape, median = errors(ratios[rest])
    share, rows = sums[worst].sum() / sums.sum(), 1 - rest.mean()
    return (
        f"{', '.join(names[worst])} carry {share:.0%} of the error on {rows:.0%} of the rows; "
        f"without them {mape:.1f} / {median:.1f}"
    )


def nvidia_cells(table: LeftOutTable) -> NDArray[np.bool_]:
    """The transformer steps on one NVIDIA GPU."""
    is_amd = np.array([name.startswith(AMD) for name in table.device], dtype=np.bool_)
    mine: NDArray[np.bool_] = (table.source == "neusight") & ~is_amd
    return mine


def transformer_targets(table: LeftOutTable) -> list[Target]:
    """The 40 cells: those on GPUs that could be left out, ops included; and all with the GPU known, family left out."""
    mine, targets = nvidia_cells(table), []
    for split, what, wanted in (
        ("device", "GPU left out, its ops too", (8.0, 5.5)),
        ("family", "GPU known, family left out", (8.0, 5.5)),
    ):
        is_scored = mine & np.isfinite(table.ratios[split])
        if is_scored.any():
            ratios = table.ratios[split][is_scored]
            by_device = {
                str(d): errors(ratios[table.device[is_scored] == d])[0] for d in np.unique(table.device[is_scored])
            }
            worst = max(by_device, key=lambda name: by_device[name])
            why = f"the worst of {len(by_device)} GPUs is {worst} with {by_device[worst]:.1f} %"
            name = f"transformers, fp32, {what}"
            targets.append(Target(name, int(is_scored.sum()), wanted, errors(ratios), why=why))
    return targets


def layer_targets(all_figures: Sequence[justus.Figure]) -> list[Target]:
    """Justus' protocol by GPU, and fifty rows of a GPU that was left out."""
    targets = [
        Target(
            f"convolution layers, Justus' protocol, {f.device}",
            f.rows,
            (justus.CLAIM_RMSE_MS[f.device],),
            (f.rmse_ms,),
            "ms",
        )
        for f in all_figures
        if f.split == "random tenth" and f.layer == "conv2d" and f.device != justus.ALL
    ]
    for f in all_figures:
        if f.split == f"GPU left out, {justus.CALIBRATION_ROWS} rows given" and f.layer == "conv2d":
            what = f"convolution layers, {f.device} left out, {justus.CALIBRATION_ROWS} rows given"
            targets.append(Target(what, f.rows, (100 * justus.CLAIM_CALIBRATED_MAPE,), (100 * f.mape,)))
    return targets


def device_targets(table: LeftOutTable, given: Sequence[GivenRuns]) -> list[Target]:
    """Whole networks on devices that were left out: as they are, and after five runs. Every device counts the same."""
    ratios, targets = table.ratios["device"], []
    scored = np.isfinite(ratios) & np.isin(table.precision, MIXED) & (table.source != "neusight")
    if scored.any():
        names = np.unique(table.device[scored])
        each = {str(name): errors(ratios[scored & (table.device == name)])[0] for name in names}
        mean = float(np.mean(list(each.values())))
        why = f"{_over(each, 15.0)}; over all rows {errors(ratios[scored])[0]:.1f} %"
        what = f"image networks in AMP, fp16, bf16 or tf32, GPU with no profile, mean over {len(names)} GPUs"
        targets.append(Target(what, int(scored.sum()), (15.0,), (mean,), why=why))
    if given:
        each = {one.device: 100 * one.mape for one in given}
        what = f"all networks and formats, GPU with no profile, five runs given, mean over {len(given)} GPUs"
        n = sum(one.n for one in given)
        rows = 100 * sum(one.mape * one.n for one in given) / n
        why = f"{_over(each, 10.0)}; over all rows {rows:.1f} %"
        targets.append(Target(what, n, (10.0,), (float(np.mean(list(each.values()))),), why=why))
    return targets


def _over(each: dict[str, float], most: float, what: str = "GPUs") -> str:
    above = sorted((name for name, value in each.items() if value > most), key=lambda name: -each[name])
    named = ", ".join(f"{name} {each[name]:.0f} %" for name in above[:4])
    return f"{len(above)} of {len(each)} {what} are above {most:.0f} %" + (f": {named}" if above else "")


def report_targets(all_figures: Sequence[correction.Figure]) -> list[Target]:
    """The report's networks, with the network's own runs left out of what was fitted."""
    summary, targets = correction.summary(all_figures), []
    for strategy, wanted in (("single", 6.0), ("mirrored", 5.0)):
        what = f"forecast, {strategy}"
        n = sum(f.what == what for f in all_figures)
        ours = 100 * summary[f"{what}, network left out"]
        each = {
            network: 100 * summary[f"{what}, {network} left out"]
            for network in sorted({f.network for f in all_figures if f.what == what})
        }
        name = f"the report's networks, P100, {strategy}, network left out"
        with_own = f"with their own runs among the fitted ones {100 * summary[what]:.1f} %"
        targets.append(Target(name, n, (wanted,), (ours,), why=f"{with_own}; {_over(each, wanted, 'networks')}"))
    return targets
