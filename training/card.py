"""The model card: what the shipped model was trained on, and its errors on what was left out."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from epochcast.predict.cost.spreads import Spreads
from training.examples import Example
from training.left_out import GIVEN_RUNS, MANY_OPS, Given, LeftOut, OpScore
from training.material import Material

_HEAD = """# The learned cost model

Written by `make model`. Formula and assumptions are in [cost models](../explanation/cost-models.md). The measurements
are public and are not part of the project; `EPOCHCAST_DATA` names where they lie.

APE is |predicted - measured| / measured of a whole step. Every figure here is for a network or a device that the
model behind it had **not** been trained on: four nets each leave out a quarter of the families; ten nets each leave out
about three chips of different generations, with every board that has them and their op measurements, and answer for
them from similar devices. The shipped ensemble is then trained on everything.
"""


def model_card(
    material: Material,
    left_out: LeftOut,
    spreads: Spreads,
    without: Sequence[str],
) -> str:
    """The page."""
    sources = sorted({e.source for e in material.examples})
    rows = {s: sum(e.source == s for e in material.examples) for s in sources}
    networks = len({e.model for e in material.examples})
    pieces = [
        _HEAD,
        f"Trained on {datetime.now(UTC).date().isoformat()}: {len(material.ops.weight):,} timed operators, "
        f"{len(material.nets):,} timed steps of {networks:,} networks on {len(material.names.devices.names)} devices "
        f"({', '.join(f'{s} {n:,}' for s, n in rows.items())}). "
        f"{len(material.failures)} networks of the tables could not be captured.\n",
        "## Families never seen, device known\n",
        _table(material, left_out.family, _group),
        "## Sources never seen, their devices as far as others timed them\n",
        _table(material, left_out.source, _group),
        "## Devices never seen\n",
        _table(material, left_out.device, lambda e: (e.device.name, e.recipe.precision_label, e.recipe.mode)),
        f"## Devices never seen, {GIVEN_RUNS} runs given to `epochcast calibrate`\n",
        _given(left_out.given),
        "## Intervals\n",
        "Standard deviations of log(predicted/measured) by part. The variances of a step's parts add, those of kernels "
        "weighted by the squares of their shares of the time; the 90 % interval is z below and above times the root.\n",
        _parts(spreads),
        f"Devices without a profile, because similar devices forecast them better: {', '.join(without) or 'none'}.\n",
        "## Single operators\n",
        _ops(left_out.ops),
        "## The ten worst\n",
        _worst(material, left_out.family),
    ]
    return "\n".join(pieces)


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


def _ops(scores: Sequence[OpScore]) -> str:
    """Large ops: device left out, and a tenth of the rows left out with the device known."""
    lines = ["| rows | what | MAPE | median APE | bias |", "|---|---|---|---|---|"]
    for score in sorted(scores, key=lambda s: (s.group, s.math, s.device, s.split)):
        if len(score.log_errors) < MANY_OPS // 50:
            continue
        ape, what = np.abs(np.exp(score.log_errors) - 1), (score.group, score.math, score.device, score.split)
        bias = float(np.exp(np.median(score.log_errors)) - 1)
        lines.append(f"| {len(ape)} | {' · '.join(what)} | {ape.mean():.1%} | {np.median(ape):.1%} | {bias:+.1%} |")
    return "\n".join(lines) + "\n"


def _group(example: Example) -> tuple[str, ...]:
    layout = "channels-last" if example.setting.channels_last else "NCHW"
    return (example.source, example.device.name, example.recipe.precision_label, example.recipe.mode, layout)


def _table(material: Material, residuals: NDArray[np.float64], key: Callable[[Example], tuple[str, ...]]) -> str:
    groups: dict[tuple[str, ...], list[float]] = {}
    for example, residual in zip(material.examples, residuals, strict=True):
        if np.isfinite(residual):
            groups.setdefault(key(example), []).append(float(residual))
    lines = ["| rows | what | MAPE | median APE | bias |", "|---|---|---|---|---|"]
    for name, values in sorted(groups.items(), key=lambda item: -len(item[1])):
        ape = np.abs(np.exp(values) - 1)
        bias = float(np.exp(np.median(values)) - 1)
        lines.append(f"| {len(values)} | {' · '.join(name)} | {ape.mean():.1%} | {np.median(ape):.1%} | {bias:+.1%} |")
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
