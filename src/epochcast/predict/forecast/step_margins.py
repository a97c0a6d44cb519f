"""The last step of an interval: its ends move out until 90 % of measured training steps lie inside, by group.

    log(mid/low) = √(log²(mid/low₀) + below²)        log(high/mid) = √(log²(high₀/mid) + above²)

The parts of an interval (kernels, launches, communication) are fitted where each shows alone. How people really run a
network (settings that nobody wrote down, a trainer's own code, other jobs on the same network) shows only in whole
steps of sources that no training reads. It errs independently of the parts, so its variance adds to theirs. Steps are
grouped by what they are made of and by the GPUs they run on; transformers on several GPUs also by whether such steps
were measured on that GPU (`measured` in `predict.cost.spreads`). Elsewhere that did not help: the interval score of
sources that were left out chose. A group whose parts hold 90 % as they are gets no margin.
`python -m studies.accuracy.run --margins` fits `step_margins.toml`.

A step that the user measured or calibrated has an interval of its own, and forward passes keep the one they have. Of a
step whose launches were measured, the margin is that of the share that does not wait for them.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import exp, hypot, log
from typing import NamedTuple

from epochcast.base import catalogue_rows as rows
from epochcast.base.caching import remembered
from epochcast.describe.graph.trace import Trace
from epochcast.interval import Interval
from epochcast.predict.cost.software_setting import SoftwareSetting
from epochcast.predict.cost.spreads import MEASURED, evidence, mostly_products, trains
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import SETUP, StepForecast

FILE = "step_margins.toml"
NVIDIA = "NVIDIA"
OTHER_VENDORS = "other vendors"
ADAPTERS, PRODUCTS, CONVOLUTIONS = "adapters", "products", "convolutions"
PLACES = ("one GPU", "one node", "several nodes")
KNOWN = "GPU known"
# A model that trains less than this share of its parameters is tuned by adapters, or by its last layers.
_TUNED = 0.5


class StepMargin(NamedTuple):
    """What is added to the logarithms of mid/low and high/mid, as a square to their squares."""

    below: float
    above: float


NO_MARGIN = StepMargin(0.0, 0.0)


def group_name(vendor: str, work: str, gpus: int, nodes: int, *, is_known: bool) -> str:
    """The group of a training step: its work at one of PLACES, or that of other vendors."""
    if vendor != NVIDIA:
        return OTHER_VENDORS
    group = f"{work}, {PLACES[(gpus > 1) + (nodes > 1)]}"
    return f"{group}, {KNOWN}" if is_known and work == PRODUCTS and gpus > 1 else group


def step_group(trace: Trace, placement: Placement, setting: SoftwareSetting) -> str | None:
    """The group of a step; None for a forward pass."""
    if not trains(trace.columns):
        return None
    total, trained = trace.parameter_counts
    if trained < _TUNED * total:
        work = ADAPTERS
    else:
        work = PRODUCTS if mostly_products(trace.columns) else CONVOLUTIONS
    device = placement.device
    is_known = evidence(trace.columns, device, setting) == MEASURED
    return group_name(device.vendor, work, placement.gpus, placement.nodes, is_known=is_known)


def step_margin(group: str | None) -> StepMargin:
    """The shipped margin of a group."""
    return NO_MARGIN if group is None else _margins().get(group, NO_MARGIN)


def with_margin(step: StepForecast, trace: Trace, placement: Placement, setting: SoftwareSetting) -> StepForecast:
    """The step with the margin of its group; a measured or calibrated one as it is."""
    if not step.costs.variances or step.costs.is_calibrated:
        return step
    margin = step_margin(step_group(trace, placement, setting))
    if margin == NO_MARGIN:
        return step
    if placement.is_host_measured:
        share = 1 - step.parts.host / step.seconds.mid
        margin = StepMargin(share * margin.below, share * margin.above)
    variances = {**step.variances, SETUP: ((margin.below + margin.above) / 2) ** 2}
    return replace(step, seconds=widened(step.seconds, margin), variances=variances)


def widened(seconds: Interval, margin: StepMargin) -> Interval:
    """The interval with a margin."""
    low, mid, high = seconds.low, seconds.mid, seconds.high
    if not low > 0:
        return seconds
    below, above = hypot(log(mid / low), margin.below), hypot(log(high / mid), margin.above)
    return replace(seconds, low=mid * exp(-below), high=mid * exp(above))


@remembered(1)
def _margins() -> Mapping[str, StepMargin]:
    document = rows.parse(rows.shipped(FILE, __file__), FILE)
    return dict(rows.read(document, "group", FILE, _margin_row))


def _margin_row(row: rows.CatalogueRow) -> tuple[str, StepMargin]:
    """A group and its margin; the row also says what it was fitted to."""
    row.text("source"), row.count("rows"), row.count("sources")
    return row.text("name"), StepMargin(row.number("below"), row.number("above"))
