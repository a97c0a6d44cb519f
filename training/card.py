"""The model card: what the shipped model was trained on, and its errors on what was left out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from epochcast.predict.cost.spreads import Spreads
from training.examples import Example
from training.left_out import GIVEN_RUNS, MANY_OPS, Given, LeftOut, OpScore
from training.material import Material

MOST_ROWS = 12
"""So many groups of a table are on the page, those with the most rows; the file beside it has all."""

_HEAD = """# The learned cost model

Written by `make model`. Formula and assumptions are in [cost models](../explanation/cost-models.md). The measurements
are public and are not part of the project; `EPOCHCAST_DATA` names where they lie.

APE is |predicted - measured| / measured of a whole step. Every figure here is for a network or a device that the
model behind it had **not** been trained on: four nets each leave out a quarter of the families; ten nets each leave out
about three chips of different generations, with every board that has them and their op measurements, and answer for
them from similar devices. The shipped ensemble is then trained on everything. Tables have the groups with the most
rows; [model-card.csv](model-card.csv) has all.
"""


@dataclass(frozen=True, slots=True)
class GroupErrors:
    """Errors of one group of steps or operators: a row of a table and of the file."""

    what: str
    n: int
    mape: float
    median_ape: float
    bias: float

    @classmethod
    def of(cls, name: Iterable[str], log_errors: NDArray[np.float64]) -> "GroupErrors":
        """From the logarithms of predicted/measured."""
        ape = np.abs(np.exp(log_errors) - 1)
        bias = float(np.exp(np.median(log_errors)) - 1)
        return cls(" · ".join(name), len(ape), float(ape.mean()), float(np.median(ape)), bias)


def model_card(
    material: Material,
    left_out: LeftOut,
    spreads: Spreads,
    without: Sequence[str],
) -> tuple[str, str]:
    """The page, and the file with every group."""
    sources = sorted({e.source for e in material.examples})
    rows = {s: sum(e.source == s for e in material.examples) for s in sources}
    networks = len({e.model for e in material.examples})
    tables = {
        "Families never seen, device known": _groups(material, left_out.family, _group),
        "Sources never seen, their devices as far as others timed them": _groups(material, left_out.source, _group),
        "Devices never seen": _groups(
            material, left_out.device, lambda e: (e.device.name, e.recipe.precision_label, e.recipe.mode)
        ),
    }
    operators = _operators(left_out.ops)
    pieces = [
        _HEAD,
        f"Trained on {datetime.now(UTC).date().isoformat()}: {len(material.ops.weight):,} timed operators, "
        f"{len(material.nets):,} timed steps of {networks:,} networks on {len(material.names.devices.names)} devices "
        f"({', '.join(f'{s} {n:,}' for s, n in rows.items())}). "
        f"{len(material.failures)} networks of the tables could not be captured.\n",
        *(_table(title, groups) for title, groups in tables.items()),
        f"## Devices never seen, {GIVEN_RUNS} runs given to `epochcast calibrate`\n",
        _given(left_out.given),
        "## Intervals\n",
        "Standard deviations of log(predicted/measured) by part. The variances of a step's parts add, those of kernels "
        "weighted by the squares of their shares of the time; the 90 % interval is z below and above times the root.\n",
        _parts(spreads),
        f"Devices without a profile, because similar devices forecast them better: {', '.join(without) or 'none'}.\n",
        _table("Single operators", operators),
        "## The ten worst\n",
        _worst(material, left_out.family),
    ]
    return "\n".join(pieces), _csv({**tables, "Single operators": operators})


def _parts(spreads: Spreads) -> str:
    lines = ["| part | standard deviation |", "|---|---|"]
    for kind, variances in (
        ("GPU", spreads.devices),
        ("framework", spreads.frameworks),
        ("kernels", spreads.kernels),
    ):
        lines += [f"| {kind}: {part} | {variance**0.5:.3f} |" for part, variance in variances.items()]
    lines += ["", "| group | z below | z above |", "|---|---|---|"]
    lines += [f"| {group} | {below:.2f} | {above:.2f} |" for group, (below, above) in spreads.scales.items()]
    return "\n".join(lines) + "\n"


def _operators(scores: Sequence[OpScore]) -> list[GroupErrors]:
    """Large ops: device left out, and a tenth of the rows left out with the device known."""
    return [
        GroupErrors.of((score.group, score.math, score.device, score.split), score.log_errors)
        for score in sorted(scores, key=lambda s: (s.group, s.math, s.device, s.split))
        if len(score.log_errors) >= MANY_OPS // 50
    ]


def _group(example: Example) -> tuple[str, ...]:
    layout = "channels-last" if example.setting.channels_last else "NCHW"
    return (example.source, example.device.name, example.recipe.precision_label, example.recipe.mode, layout)


def _groups(
    material: Material, residuals: NDArray[np.float64], key: Callable[[Example], tuple[str, ...]]
) -> list[GroupErrors]:
    groups: dict[tuple[str, ...], list[float]] = {}
    for example, residual in zip(material.examples, residuals, strict=True):
        if np.isfinite(residual):
            groups.setdefault(key(example), []).append(float(residual))
    return [GroupErrors.of(name, np.array(values)) for name, values in groups.items()]


def _table(title: str, groups: Sequence[GroupErrors]) -> str:
    """The largest groups, under their title."""
    lines = [f"## {title}", "", "| rows | what | MAPE | median APE | bias |", "|---|---|---|---|---|"]
    for one in sorted(groups, key=lambda group: -group.n)[:MOST_ROWS]:
        lines.append(f"| {one.n} | {one.what} | {one.mape:.1%} | {one.median_ape:.1%} | {one.bias:+.1%} |")
    if len(groups) > MOST_ROWS:
        lines += ["", f"{len(groups) - MOST_ROWS} more in [model-card.csv](model-card.csv)."]
    return "\n".join(lines) + "\n"


def _csv(tables: Mapping[str, Sequence[GroupErrors]]) -> str:
    """Every group, largest first."""
    lines = ["table,rows,what,mape,median_ape,bias"]
    for title, groups in tables.items():
        for one in sorted(groups, key=lambda group: -group.n):
            figures = f"{one.mape:.4f},{one.median_ape:.4f},{one.bias:.4f}"
            lines.append(f'"{title}",{one.n},"{one.what}",{figures}')
    return "\n".join(lines) + "\n"


def _given(given: list[Given]) -> str:
    lines = ["| device | errors | MAPE | median APE | intervals that hold |", "|---|---|---|---|---|"]
    for one in given:
        ape = np.abs(np.exp(one.log_errors) - 1)
        if len(ape):
            lines.append(f"| {one.device} | {len(ape)} | {ape.mean():.1%} | {np.median(ape):.1%} | {one.covered:.0%} |")
    return "\n".join(lines) + "\n"


def _worst(material: Material, residuals: NDArray[np.float64]) -> str:
    order: list[int] = np.argsort(-np.abs(np.nan_to_num(residuals)))[:60].tolist()
    lines = ["| network | where | predicted / measured |", "|---|---|---|"]
    seen: set[str] = set()
    for place in order:
        e = material.examples[place]
        if e.model in seen or len(seen) == 10:
            continue
        seen.add(e.model)
        lines.append(f"| {e.model} | {' · '.join(_group(e))} | {np.exp(residuals[place]):.2f} |")
    return "\n".join(lines) + "\n"
