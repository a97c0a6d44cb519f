"""The page's picture: predicted against measured seconds of a step, coloured by class of GPU, over two bands.

A band is the median interval of the steps whose GPU is known, and of those whose GPU nobody measured. It is a picture
of pixels: figures of others are not to be read back from it.
"""

from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from epochcast.hardware.catalogue import find_device
from studies.accuracy.questions import CLASSES, KNOWN, NOT_MEASURED, gpu_class
from studies.accuracy.scored_steps import evenly

MOST_POINTS = 2500
# Okabe and Ito's colours, which colour-blind people tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
_BANDS = {NOT_MEASURED: "#dddddd", KNOWN: "#c6dbef"}
_RIMS = {NOT_MEASURED: "#7f7f7f", KNOWN: "#08519c"}
_INK = "#333333"


def draw(steps: pl.DataFrame, path: Path) -> None:
    """Write the picture of steps with `true_seconds`."""
    shown = steps[evenly(len(steps), MOST_POINTS)]
    classes = {name: gpu_class(find_device(name)) for name in shown["device"].unique()}
    points = [
        {"measured": measured, "predicted": measured * ratio, "class": classes[device]}
        for measured, ratio, device in shown.select("true_seconds", "predicted_seconds", "device").iter_rows()
    ]
    seconds = shown["true_seconds"].to_numpy()
    ends = [10.0 ** floor(log10(seconds.min())), 10.0 ** ceil(log10(seconds.max()))]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(format="~g", gridColor="#eeeeee", values=[10.0**p for p in range(-4, 4)])
    x = alt.X("measured:Q", title="measured step, seconds", scale=scale, axis=axis)
    y_title = "predicted step, seconds"
    bands = alt.layer(*(_band(steps, name, ends, scale, axis) for name in _BANDS))
    edges = alt.layer(*(_edges(steps, name, ends, scale, axis) for name in _BANDS))
    diagonal = (
        alt.Chart(_data([{"at": end} for end in ends]))
        .mark_line(color=_INK, strokeWidth=1)
        .encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale))
    )
    dots = (
        alt.Chart(_data(points))
        .mark_circle(size=14, opacity=0.6, clip=True)
        .encode(
            x=x,
            y=alt.Y("predicted:Q", title=y_title, scale=scale, axis=axis),
            color=alt.Color(
                "class:N",
                title="GPU",
                scale=alt.Scale(domain=list(CLASSES), range=list(_COLOURS)),
                legend=alt.Legend(symbolOpacity=1, symbolSize=80, labelLimit=240),
            ),
        )
    )
    widths = {name: _width(steps, name) for name in _BANDS}
    subtitle = (
        f"Middle 90 % interval where the GPU is known (blue, {widths[KNOWN]:.1f}× wide) and where it was not measured "
        f"(grey, {widths[NOT_MEASURED]:.1f}×)"
    )
    chart = alt.layer(bands, dots, edges, diagonal).properties(
        width=460,
        height=460,
        title=alt.TitleParams(
            f"{len(points):,} forecasts of steps nobody trained on", subtitle=subtitle, anchor="start"
        ),
    )
    chart = chart.configure(background="white").configure_axis(labelColor=_INK, titleColor=_INK)
    path.parent.mkdir(parents=True, exist_ok=True)
    chart.save(path, scale_factor=1.4)


def _data(rows: list[dict[str, Any]]) -> Any:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _of(steps: pl.DataFrame, gpu: str) -> pl.DataFrame:
    return steps.filter((pl.col("gpu") == gpu) & pl.col("is_forecast"))


def _width(steps: pl.DataFrame, gpu: str) -> float:
    mine = _of(steps, gpu)
    return float(np.median((mine["high_seconds"] / mine["low_seconds"]).to_numpy()))


def _median_ends(steps: pl.DataFrame, gpu: str) -> tuple[float, float]:
    """Where a forecast lies, as a factor of its measurement, if that is at the high and at the low end."""
    mine = _of(steps, gpu)
    below, above = (
        float(np.median((mine[end] / mine["predicted_seconds"]).to_numpy())) for end in ("low_seconds", "high_seconds")
    )
    return 1 / above, 1 / below


def _band(steps: pl.DataFrame, gpu: str, ends: list[float], scale: alt.Scale, axis: alt.Axis) -> Any:
    low, high = _median_ends(steps, gpu)
    corners = [{"measured": end, "low": end * low, "high": end * high} for end in ends]
    return (
        alt.Chart(_data(corners))
        .mark_area(color=_BANDS[gpu], clip=True)
        .encode(
            x=alt.X("measured:Q", scale=scale, axis=axis),
            y=alt.Y("low:Q", scale=scale, axis=axis),
            y2="high:Q",
        )
    )


def _edges(steps: pl.DataFrame, gpu: str, ends: list[float], scale: alt.Scale, axis: alt.Axis) -> Any:
    """The rims of a band, over the points."""
    corners = [
        {"measured": end, "predicted": end * factor, "rim": name}
        for name, factor in zip(("low", "high"), _median_ends(steps, gpu), strict=True)
        for end in ends
    ]
    return (
        alt.Chart(_data(corners))
        .mark_line(color=_RIMS[gpu], strokeWidth=1.2, clip=True)
        .encode(
            x=alt.X("measured:Q", scale=scale, axis=axis),
            y=alt.Y("predicted:Q", scale=scale, axis=axis),
            detail="rim:N",
        )
    )
