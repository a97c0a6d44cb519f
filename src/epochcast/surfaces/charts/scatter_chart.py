"""Predicted against measured."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

from epochcast.errors import BadInput
from epochcast.surfaces.charts.chart_file import altair_module

# More points would make a page slow and no clearer: of more rows every k-th is drawn.
MOST_POINTS = 5000
# The number of colours that can be told apart; further groups share one.
MOST_COLOURS = 9
OTHERS = "others"
BANDS = (0.25, 0.10)


def predicted_against_measured(
    measured_seconds: Sequence[float], predicted_seconds: Sequence[float], groups: Sequence[str], title: str
) -> Any:
    """A scatter on two logarithmic axes with the diagonal and bands of ±10 % and ±25 %, coloured by group."""
    alt = altair_module()
    names = _group_names(groups)
    stride = max(1, ceil(len(names) / MOST_POINTS))
    points = [
        {"measured": m, "predicted": p, "group": g}
        for m, p, g in list(zip(measured_seconds, predicted_seconds, names, strict=True))[::stride]
    ]
    ends = _axis_ends([*measured_seconds, *predicted_seconds])
    band_edges = [
        {"measured": seconds, "low": seconds * (1 - band), "high": seconds * (1 + band), "band": f"±{band:.0%}"}
        for band in BANDS
        for seconds in _log_steps(*ends)
    ]
    scale = alt.Scale(type="log", domain=list(ends), nice=False, clamp=True)
    x = alt.X("measured:Q", title="measured, seconds", scale=scale)
    bands = (
        alt.Chart(alt.Data(values=band_edges))
        .mark_area(opacity=0.12, color="#4c78a8", clip=True)
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title="predicted, seconds"), y2="high:Q", detail="band:N")
    )
    diagonal = (
        alt.Chart(alt.Data(values=[{"at": end} for end in ends]))
        .mark_line(color="#555555", strokeDash=[4, 3])
        .encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    )
    order = [name for name in dict.fromkeys(names) if name != OTHERS]
    order = sorted(order, key=lambda name: -names.count(name)) + ([OTHERS] if OTHERS in names else [])
    dots = (
        alt.Chart(alt.Data(values=points))
        .mark_circle(size=22, opacity=0.55, clip=True)
        .encode(
            x=x,
            y=alt.Y("predicted:Q", scale=scale),
            color=alt.Color("group:N", title=None, sort=order, scale=alt.Scale(scheme="tableau10")),
            tooltip=["group:N", "measured:Q", "predicted:Q"],
        )
    )
    subtitle = f"{len(names):,} rows; bands of ±10 % and ±25 % around the diagonal"
    return alt.layer(bands, diagonal, dots).properties(
        width=460, height=460, title=alt.TitleParams(title, subtitle=subtitle, anchor="start")
    )


def _group_names(groups: Sequence[str]) -> list[str]:
    """The name of each row's group; all groups but the largest become `OTHERS`."""
    counts: dict[str, int] = {}
    for group in groups:
        counts[group] = counts.get(group, 0) + 1
    if len(counts) <= MOST_COLOURS + 1:
        return list(groups)
    largest = set(sorted(counts, key=lambda group: (-counts[group], group))[:MOST_COLOURS])
    return [group if group in largest else OTHERS for group in groups]


def _axis_ends(values: Sequence[float]) -> tuple[float, float]:
    """Whole powers of ten around all values."""
    if not values:
        raise BadInput("nothing to draw: no row was forecast")
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _log_steps(low: float, high: float, count: int = 40) -> list[float]:
    return [low * (high / low) ** (i / count) for i in range(count + 1)]
