"""How far answers of this kind are off, learnt from real logs: the conformal part of the interval.

The score of an answer is log(true remaining / told remaining) over its scale, √(floor² + doubt²), where `doubt` is how
unsteady the run has been and how short a time it was watched. By fraction of the run `spread.toml` holds the quantiles
of these scores that make 90 % of the true values lie inside; between fractions they are interpolated. (Split conformal
prediction with a difficulty estimate: Papadopoulos et al. 2002, Lei et al. 2018.)
"""

import tomllib
from functools import cache
from importlib.resources import files
from math import exp, hypot, log
from typing import Any

import numpy as np

# No interval says more than that a run takes between a twentieth and twenty times of what was told.
WIDEST_LOG = log(20.0)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("epochcast.observe.runs").joinpath("remaining_spread.toml").read_text(encoding="utf-8"))


def scale_of(doubt: float) -> float:
    """The scale of a score: never below the floor, more where the run has been unsteady."""
    return hypot(float(_table()["floor"]), doubt)


def spread_of(fraction: float, doubt: float) -> tuple[float, float]:
    """The factors on a remaining time within which the truth lies, at a fraction of the run."""
    table = _table()
    place = log(max(fraction, 1e-6))
    places = np.log(table["fractions"])
    low, high = (float(np.interp(place, places, table[side])) for side in ("low", "high"))
    scale = scale_of(doubt)
    return exp(max(-WIDEST_LOG, min(0.0, low * scale))), exp(min(WIDEST_LOG, max(0.0, high * scale)))
