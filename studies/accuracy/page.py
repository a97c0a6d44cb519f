"""docs/accuracy.md, from figures to text."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from studies.accuracy.figures import Array, Figure, figure, worst_first
from studies.accuracy.intervals import GivenRuns, ScoredIntervals, verdict
from studies.accuracy.left_out_table import SPLITS, LeftOutTable
from studies.accuracy.published import ADDITIVE, BOOSTING, TRANSFORMERS
from studies.accuracy.targets import Target, nvidia_cells
from studies.accuracy.whole_networks import PEERS
from studies.accuracy.worst import WorstRow
from studies.justus import run as justus

HEAD = """# Accuracy

Written by `make studies` (`studies/accuracy`), from public measurements that are not part of the project. Worst first.
APE is |predicted − measured| / measured, MAPE its mean; bias is the median of predicted / measured − 1; *holds* is how
many of the intervals that are meant to hold 90 % do.

Who was trained on what: by **family**, four nets each leave out a quarter of the families of networks, whatever the
device. By **device**, ten nets each leave out the steps and the timed operators of about three chips of different
generations, on every board that has them, and answer from similar devices; devices with fewer than twelve steps are
not scored so. Families are told apart by name:
a network of the same architecture under another label may have been trained on; where it matters that is said. By
**source**, one net each leaves out everything that a source of measurements timed, as every user is a source of their
own; timm, which has most of the steps, stays. Those models are trained by `make model`, as the shipped one is, and
thrown away; their errors are in `studies/accuracy/left_out.csv`. The **shipped** model is trained on all of them:
where a group below says "in training", its figures say how well it fits, not how well it forecasts.

How to read the left-out figures: settings of the training (how strongly devices are held together, how sources are
weighed, the size of a batch, the features) were chosen among about ten by the errors on these same family folds, so the
family figures are somewhat kinder than a fresh set of families would be. "Five runs given" draws the five from runs of
one precision, mode, layout and framework; drawn from all runs of a device, as it was first done, they help less.
"""


def percent(value: float | None, signed: bool = False) -> str:
    """12.3 %, or a dash."""
    if value is None:
        return "–"
    return f"{100 * value:+.1f} %" if signed else f"{100 * value:.1f} %"


def pair(mape: float | None, median: float | None) -> str:
    """MAPE / median in percent."""
    return "–" if mape is None or median is None else f"{100 * mape:.1f} / {100 * median:.1f}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def targets(all_targets: Sequence[Target]) -> str:
    """Every target: met, or by how much not, and what carries the error."""
    met = sum(target.is_met for target in all_targets)
    rows = [
        (
            t.what,
            t.n,
            " / ".join(f"{v:g}" for v in t.wanted) + f" {t.unit}",
            " / ".join(f"{v:.1f}" if t.unit == "%" else f"{v:.2f}" for v in t.ours) + f" {t.unit}",
            t.verdict,
            "; ".join(part for part in ("" if t.is_met else t.why, t.caveat) if part),
        )
        for t in sorted(all_targets, key=lambda t: (t.is_met, -_excess(t)))
    ]
    but = sum(bool(target.is_met and target.caveat) for target in all_targets)
    text = f"{met} of {len(all_targets)} are met, {but} of them on rows that are easier than the target says."
    head = ("target", "rows", "wanted", "ours", "", "why missed, what to know")
    return f"## Targets\n\n{text} MAPE / median APE, or RMSE in ms.\n\n" + table(head, rows)


def _excess(target: Target) -> float:
    return max(mine / most for mine, most in zip(target.ours, target.wanted, strict=True))


def splits(left_out: LeftOutTable, inside: Mapping[str, Array]) -> str:
    """One row per source, device, precision, mode and layout; MAPE / median, bias and intervals by split."""
    groups = np.array(left_out.groups())
    rows = []
    for name in np.unique(groups):
        mine = groups == name
        found = [figure(s, str(name), left_out.ratios[s][mine], inside[s][mine]) for s in SPLITS]
        rows.append((max(f.mape or 0.0 for f in found), str(name), int(mine.sum()), found))
    head = ["steps", "what"]
    for split in SPLITS:
        head += [f"{split}: MAPE / median %", "bias", "holds"]
    lines = [
        (n, name, *(cell for f in found for cell in (pair(f.mape, f.median_ape), _bias(f), _share(f.holds))))
        for _, name, n, found in sorted(rows, key=lambda row: (-row[0], row[1]))
    ]
    return "## Steps that were left out of the training\n\n" + table(head, lines)


def _bias(scored: Figure) -> str:
    return percent(scored.bias, signed=True)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f} %"


def coverage(left_out: LeftOutTable, scored: Mapping[str, ScoredIntervals], given: Sequence[GivenRuns]) -> str:
    """How many intervals hold and how wide they are by group of devices, and device by device where they were left
    out.
    """
    unseen = scored["device"].inside
    names = np.unique(left_out.device[np.isfinite(unseen)])
    each = {str(d): float(np.nanmean(unseen[left_out.device == d])) for d in names}
    lines = [
        _held("known device, family left out", scored["family"]),
        _held("known device, source left out", scored["source"]),
        _held("unseen device", scored["device"]),
    ]
    if each:
        mean = float(np.mean(list(each.values())))
        lines.append(("unseen device, every device the same", len(each), percent(mean), verdict(mean), "–", "–"))
    if given:
        mean = float(np.mean([one.holds for one in given]))
        what = "calibrated with five runs, every device the same"
        lines.append((what, len(given), percent(mean), verdict(mean), "–", "–"))
    by_device = sorted(each.items(), key=lambda item: item[1])
    calibrated = {one.device: one for one in given}
    rows = [
        (
            device,
            int(np.isfinite(unseen[left_out.device == device]).sum()),
            _share(holds),
            verdict(holds),
            pair(*_errors(left_out, device)),
            *_calibrated(calibrated.get(device)),
        )
        for device, holds in by_device
    ]
    return (
        "## Intervals\n\nMeant to hold 90 %; 85 to 95 is as wanted. Counted on rows that did not set them: the spread "
        "of a known device comes from the other folds, that of an unseen one from the other chips. After "
        "calibration they are counted by `make model` on the runs that were not given.\n\n"
        + table(("group", "rows or devices", "holds", "", "median high ÷ low", "interval score"), lines)
        + "\n"
        + table(
            (
                "device left out",
                "steps",
                "holds",
                "",
                "MAPE / median %",
                "five runs given",
                "holds then",
            ),
            rows,
        )
    )


def _errors(left_out: LeftOutTable, device: str) -> tuple[float | None, float | None]:
    found = figure("device", device, left_out.ratios["device"][left_out.device == device])
    return found.mape, found.median_ape


def _held(group: str, scored: ScoredIntervals) -> tuple[object, ...]:
    inside = scored.inside[np.isfinite(scored.inside)]
    if not len(inside):
        return (group, 0, "–", "", "–", "–")
    share = float(inside.mean())
    return (group, len(inside), percent(share), verdict(share), f"{scored.median_width:.2f}", f"{scored.score:.2f}")


def _calibrated(one: GivenRuns | None) -> tuple[str, str]:
    return ("–", "–") if one is None else (pair(one.mape, one.median_ape), _share(one.holds))


def peers(left_out: LeftOutTable, ratios: Mapping[str, Array]) -> str:
    """Ours beside the peers, MAPE / median on the same steps; the fitted ones on the same folds."""
    groups = np.array(left_out.groups())
    fitted = ratios["layer_linear"]
    rows = []
    for name in np.unique(groups[np.isfinite(fitted)]):
        mine = (groups == name) & np.isfinite(fitted)
        ours = figure("family", str(name), left_out.ratios["family"][mine])
        theirs = [figure(peer, str(name), ratios[peer][mine]) for peer in PEERS]
        rows.append((ours, theirs))
    rows.sort(key=lambda row: -(row[0].mape or 0.0))
    lines = [
        (f.group, f.n, pair(f.mape, f.median_ape), *(pair(p.mape, p.median_ape) for p in theirs)) for f, theirs in rows
    ]
    published = [
        (f"{name}, {layout}", pair(*values))
        for name, by_layout in (
            ("four coefficients, as published", ADDITIVE),
            ("boosting on totals, as published", BOOSTING),
        )
        for layout, values in by_layout.items()
    ]
    return (
        "## Others on the same steps\n\nMAPE / median %, family left out. `roofline` and `paleo` are as published; "
        "layer_linear (Gianniti et al.), the four coefficients (flops, activations, parameters, constant) and the "
        "Justus-style MLP on raw time are our re-implementations, fitted per group on the same three quarters "
        "of the families where those hold enough steps, and not tuned further.\n\n"
        + table(("what", "steps", "ours", *PEERS), lines)
        + "\nPublished for RTX 3090, mixed precision, family left out (about 830 networks, some of them not ours):\n\n"
        + table(("who", "MAPE / median %"), published)
    )


def transformers(left_out: LeftOutTable, ratios: Mapping[str, Array]) -> str:
    """The cells on one NVIDIA GPU, ours by split beside peers, and what was published for all 80."""
    mine = nvidia_cells(left_out)
    lines = []
    for split in ("device", "family"):
        asked = mine & np.isfinite(left_out.ratios[split])
        ours = figure(split, "", left_out.ratios[split][asked])
        theirs = [figure(peer, "", ratios[peer][asked]) for peer in ("roofline", "paleo")]
        lines.append((f"{split} left out", ours.n, *(pair(f.mape, f.median_ape) for f in (ours, *theirs)), _bias(ours)))
    published = [
        (name, pair(*values["all"]), pair(*values["unseen GPUs"]), "re-run above" if name == "roofline" else "")
        for name, values in TRANSFORMERS.items()
    ]
    return (
        "## Transformers, fp32, one NVIDIA GPU\n\n"
        f"{int(mine.sum())} of NeuSight's 80 cells are open. A GPU counts as left out when neither its steps nor its "
        "timed operators were trained on; GPUs with fewer than twelve steps were not left out.\n\n"
        + table(("split", "cells", "ours", "roofline", "paleo", "our bias"), lines)
        + "\nPublished on all 80 cells (MAPE / median %), 42 of them on GPUs never timed:\n\n"
        + table(("who", "all 80", "unseen GPUs", ""), published)
    )


def shipped(
    title: str, text: str, found: Sequence[Figure], more: Mapping[str, Sequence[Figure]] = MappingProxyType({})
) -> str:
    """The shipped model on one kind of table, peers on the same rows where there are some."""
    others = {name: {f.group: f for f in figures} for name, figures in more.items()}
    rows = [
        (
            f.group,
            f.n,
            f.failed or "",
            pair(f.mape, f.median_ape),
            _bias(f),
            _share(f.holds),
            *(pair(p.mape, p.median_ape) for p in (others[name][f.group] for name in others)),
        )
        for f in worst_first(found)
    ]
    head = ("what", "rows", "failed", "MAPE / median %", "bias", "holds", *others)
    return f"## {title}\n\n{text}\n\n" + table(head, rows)


def failures(by_source: Mapping[str, tuple[int, str]]) -> str:
    """Rows of each source that could not be asked."""
    rows = [(source, n, reason) for source, (n, reason) in by_source.items()]
    return "Rows of the sample that could not be asked:\n\n" + table(("source", "rows", "most frequent reason"), rows)


def layers(all_figures: Sequence[justus.Figure]) -> str:
    """`studies/justus`, worst first within each split."""
    rows = [
        (
            f.split,
            f.layer,
            f.device,
            f.rows,
            percent(f.mape),
            _share(f.coverage),
            f"{f.rmse_ms:.2f}",
            "–" if f.paper_rmse_ms is None else f"{f.paper_rmse_ms:.2f}",
            "–" if f.peer_rmse_ms is None else f"{f.peer_rmse_ms:.2f}",
            percent(f.peer_mape),
        )
        for f in sorted(all_figures, key=lambda f: -f.mape)
    ]
    head = ("split", "layer", "GPU", "rows", "MAPE", "holds", "RMSE ms", "paper", "MLP on raw time, RMSE", "its MAPE")
    return (
        "## Single layers, harder splits\n\nFrom `studies/justus`; the paper is Justus et al. 2018, the MLP is theirs "
        "re-implemented and fitted on the same rows as ours.\n\n" + table(head, rows)
    )


def report(summary: Mapping[str, float]) -> str:
    """`studies/correction_factor`."""
    rows = [(name, percent(value)) for name, value in sorted(summary.items(), key=lambda item: -item[1])]
    return (
        "## The report's networks (`report_runs`)\n\nFrom `studies/correction_factor`; what it means is in "
        "[the correction factor](correction-factor.md).\n\n" + table(("way", "MAPE"), rows)
    )


def worst(worst_rows: Sequence[WorstRow]) -> str:
    """Ten of each source."""
    pieces = [
        "## The worst ten of each source\n\nOne row per network. Reasons are facts of the row (shares of the forecast "
        "by class of op, launches, shapes, layout, what the table says), computed, not judged: they tell what sets the "
        "row apart, not that it is the cause.\n"
    ]
    for source in dict.fromkeys(row.source for row in worst_rows):
        rows = [(r.what, r.where, f"{r.ratio:.2g}", r.reason) for r in worst_rows if r.source == source]
        pieces.append(f"### {source}\n\n" + table(("what", "where", "predicted / measured", "what is known"), rows))
    return "\n".join(pieces)
