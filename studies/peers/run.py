"""Other methods on the steps of `studies/accuracy/left_out.csv`; `python -m studies peers` writes accuracy/peers.md.

Captures every network of the training data, unless the training left its captures in the scratch folder.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from studies.accuracy.figures import Array, Figure, figure
from studies.accuracy.left_out_table import LeftOutTable, read_left_out
from studies.accuracy.page import table
from studies.accuracy.targets import nvidia_cells
from studies.peers.published import ADDITIVE, BOOSTING, TRANSFORMERS
from studies.peers.whole_networks import PEERS, UNFITTED, peer_ratios
from training.files import data_folder
from training.material import measured_steps

PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "peers.md"


def main() -> int:
    """Capture, ask the peers, write the page."""
    left_out = read_left_out()
    steps, _ = measured_steps(data_folder())
    left_out.check(steps)
    PAGE.write_text(compose(left_out, peer_ratios(steps, left_out)), encoding="utf-8")
    return 0


def compose(left_out: LeftOutTable, ratios: Mapping[str, Array]) -> str:
    """The page."""
    return f"{_HEAD}\n{image_networks(left_out, ratios)}\n{transformers(left_out, ratios)}"


def image_networks(left_out: LeftOutTable, ratios: Mapping[str, Array]) -> str:
    """Ours beside the peers, mean / median on the same steps; the fitted ones on the same folds."""
    groups = np.array(left_out.groups())
    fitted = ratios["layer_linear"]
    rows = []
    for name in np.unique(groups[np.isfinite(fitted)]):
        mine = (groups == name) & np.isfinite(fitted)
        ours = figure("family", str(name), left_out.ratios["family"][mine])
        theirs = [figure(peer, str(name), ratios[peer][mine]) for peer in PEERS]
        rows.append((ours, theirs))
    rows.sort(key=lambda row: -(row[0].mape or 0.0))
    lines = [(f.group, f.n, _pair(f), *(_pair(p) for p in theirs)) for f, theirs in rows]
    published = [
        (f"{name}, {layout}", _percents(*values))
        for name, by_layout in (
            ("four coefficients, as published", ADDITIVE),
            ("boosting on totals, as published", BOOSTING),
        )
        for layout, values in by_layout.items()
    ]
    return (
        "## Image networks\n\n"
        + table(("steps", "rows", "ours", *PEERS), lines)
        + "\nPublished for RTX 3090, mixed precision, family left out (about 830 networks, some of them not ours):\n\n"
        + table(("method", "error mean / median %"), published)
    )


def transformers(left_out: LeftOutTable, ratios: Mapping[str, Array]) -> str:
    """The cells on one NVIDIA GPU, ours by split beside peers, and what was published for all 80."""
    mine = nvidia_cells(left_out)
    lines = []
    for split in ("device", "family"):
        asked = mine & np.isfinite(left_out.ratios[split])
        ours = figure(split, "", left_out.ratios[split][asked])
        theirs = [figure(peer, "", ratios[peer][asked]) for peer in UNFITTED]
        lines.append((f"{split} left out", ours.n, *(_pair(f) for f in (ours, *theirs))))
    published = [
        (name, _percents(*values["all"]), _percents(*values["unseen GPUs"])) for name, values in TRANSFORMERS.items()
    ]
    return (
        "## Transformers, fp32, one NVIDIA GPU\n\n"
        f"{int(mine.sum())} of NeuSight's 80 cells are open. A GPU counts as left out when neither its steps nor its "
        "timed operators were trained on. GPUs with fewer than twelve steps were not left out.\n\n"
        + table(("split", "cells", "ours", *UNFITTED), lines)
        + "\nPublished on all 80 cells (error mean / median %), 42 of them on GPUs never timed:\n\n"
        + table(("method", "all 80", "unseen GPUs"), published)
    )


def _pair(scored: Figure) -> str:
    return "–" if scored.mape is None or scored.median_ape is None else _percents(scored.mape, scored.median_ape)


def _percents(mean: float, median: float) -> str:
    return f"{100 * mean:.1f} / {100 * median:.1f}"


_HEAD = """# Other methods on the same steps

Written by `python -m studies peers`. Error mean / median in percent, the family of the network left out. `roofline` and
`paleo` are as published. `layer_linear` (Gianniti et al.), the four coefficients (flops, activations, parameters,
constant) and the Justus-style MLP on raw time are our re-implementations, fitted per group on the same three quarters
of the families where those hold enough steps, and not tuned further. Ours on all steps: [accuracy](accuracy.md).
"""


if __name__ == "__main__":
    raise SystemExit(main())
