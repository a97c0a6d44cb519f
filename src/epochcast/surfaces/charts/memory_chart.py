"""Memory during one training step, as nvidia-smi would show it: bytes at every op by kind of content, with what the
allocator and the context hold besides, the expected peak with its interval, and what the device has.
"""

from typing import Any

import numpy as np

from epochcast.interval import COVERAGE
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.surfaces.charts.chart_file import altair_module
from epochcast.units import show_bytes

POINTS = 400
"""A chart has fewer pixels than this. Of a longer step only the highest points are drawn."""


CONTEXT, ALLOCATOR = "context and libraries", "allocator: rounding, fragmentation"


def memory_timeline(answer: Forecast) -> Any:
    """Stacked areas over the ops of a step: the highest point is the expected peak of the text, the band its interval,
    the dashed line the memory of the device.
    """
    altair = altair_module()
    timeline = answer.details.timeline
    peak_bytes = answer.peak_bytes
    assert timeline is not None and peak_bytes is not None
    rows = [
        {
            "op": int(index),
            "name": timeline.names[index],
            "phase": timeline.phases[index],
            "content": content.replace("_", " "),
            "GiB": float(live[index]) / 2**30,
        }
        for content, live in {**timeline.live_bytes, **_held(answer, timeline.total_bytes)}.items()
        for index in _drawn_ops(timeline.total_bytes)
    ]
    areas = (
        altair.Chart(altair.Data(values=rows))
        .mark_area()
        .encode(
            x=altair.X("op:Q", title="op of the step"),
            y=altair.Y("GiB:Q", stack="zero", title="GiB"),
            color=altair.Color("content:N", title=None),
            tooltip=["name:N", "phase:N", "content:N", "GiB:Q"],
        )
    )
    limit_bytes = usable_bytes(answer.details.placement.device)
    limit = altair.Chart(altair.Data(values=[{"GiB": limit_bytes / 2**30}]))
    ends = {"low": peak_bytes.low / 2**30, "high": peak_bytes.high / 2**30, "expected": peak_bytes.mid / 2**30}
    peak = altair.Chart(altair.Data(values=[ends]))
    layers = [
        areas,
        peak.mark_rect(color="#d62728", opacity=0.12).encode(y="low:Q", y2="high:Q"),
        peak.mark_rule(color="#d62728").encode(y="expected:Q"),
        limit.mark_rule(strokeDash=[4, 4]).encode(y="GiB:Q"),
    ]
    title = altair.TitleParams(
        f"{answer.model}, batch {answer.batch_per_gpu}: peak {show_bytes(peak_bytes.mid)}, {COVERAGE:.0%} interval "
        f"{show_bytes(peak_bytes.low)} … {show_bytes(peak_bytes.high)}",
        subtitle=f"red: the peak and its interval; dashed: {show_bytes(limit_bytes)} that {answer.device} has",
        anchor="start",
    )
    return altair.layer(*layers).properties(title=title, width=640, height=320)


def _held(answer: Forecast, total_bytes: np.ndarray) -> dict[str, np.ndarray]:
    """What is held all the time besides tensors: with it, the highest point is the peak that the answer names."""
    assert answer.peak_bytes is not None
    context = answer.peak_breakdown.get("context", 0)
    allocator = max(0.0, answer.peak_bytes.mid - context - int(total_bytes.max()))
    held = {ALLOCATOR: allocator, CONTEXT: context}
    return {name: np.full(len(total_bytes), size) for name, size in held.items() if size}


def _drawn_ops(total_bytes: np.ndarray) -> np.ndarray:
    """The index of the highest op in each of at most `POINTS` parts of the step."""
    parts = np.array_split(np.arange(len(total_bytes)), min(POINTS, len(total_bytes)))
    return np.array([part[np.argmax(total_bytes[part])] for part in parts])
