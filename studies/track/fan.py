"""The picture of the fan that narrows: told over true total, by how much of the run had passed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from epochcast.surfaces.charts.chart_file import altair_module
from studies.track.replay import PERCENTS, Case

BANDS = ((5, 95), (25, 75))
alt = altair_module()
SHOWN = alt.Scale(type="log", domain=[0.5, 1.5], nice=False, clamp=True)
TICKS = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5]


def draw(found: Sequence[Case], path: Path) -> None:
    """Bands that hold 90 and 50 % of the runs, their median, and the same band of the plain mean as dashed lines."""
    bands, lines = [], []
    for percent in PERCENTS:
        for method in ("epochcast", "mean so far"):
            errors = [case.error(method) for case in found if case.restarts == 0 and case.percent == percent]
            ratios = [1 + error for error in errors if error is not None]
            for low, high in BANDS:
                ends = np.percentile(ratios, [low, high])
                row = {"percent": percent, "band": f"{high - low} % of runs", "low": ends[0], "high": ends[1]}
                if method == "epochcast":
                    bands.append(row)
                elif (low, high) == BANDS[0]:
                    lines += [
                        {"percent": percent, "end": end, "ratio": value} for end, value in zip("lh", ends, strict=True)
                    ]
    across = alt.X(
        "percent:Q",
        title="passed of the run, %",
        scale=alt.Scale(type="log", domain=[1, 50], nice=False),
        axis=alt.Axis(values=list(PERCENTS)),
    )
    area = (
        alt.Chart(alt.Data(values=bands))
        .mark_area(opacity=0.35)
        .encode(
            x=across,
            y=alt.Y("low:Q", title="told total / true total", scale=SHOWN, axis=alt.Axis(values=TICKS, format=".1f")),
            y2="high:Q",
            color=alt.Color("band:N", title="epochcast"),
        )
    )
    dashed = (
        alt.Chart(alt.Data(values=lines))
        .mark_line(strokeDash=[4, 3], color="black", size=1)
        .encode(x=across, y=alt.Y("ratio:Q", scale=SHOWN), detail="end:N")
    )
    even = alt.Chart(alt.Data(values=[{"y": 1}])).mark_rule(color="gray").encode(y=alt.Y("y:Q", scale=SHOWN))
    title = "The fan narrows (dashed: 90 % of runs by the mean so far)"
    (area + dashed + even).properties(width=520, height=300, title=title).save(path)
