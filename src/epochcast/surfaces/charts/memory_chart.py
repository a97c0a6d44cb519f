"""Memory during one training step, as nvidia-smi would show it, and what is alive at its peak.

The upper part has the bytes at every op by kind of content, with what the allocator and the context hold besides, the
expected peak with its interval, and what the device has. The lower part has the layers at the peak.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from epochcast.interval import COVERAGE
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.memory.device_context import usable_bytes
from epochcast.predict.memory.peak import PeakMemory
from epochcast.predict.memory.peak_contents import grouped
from epochcast.predict.memory.timeline import Timeline
from epochcast.surfaces.charts.chart_file import altair_module
from epochcast.units import show_bytes

POINTS = 400
"""A chart has fewer pixels than this. Of a longer step only the highest points are drawn."""
WIDTH, HEIGHT, ROW_HEIGHT = 640, 300, 19

CONTEXT, ALLOCATOR = "context and libraries", "allocator: rounding, fragmentation"
COMMUNICATION = "buffers of NCCL"
COLOURS = {
    "parameters": "#14598a",
    "gathered": "#9cc3e0",
    "optimizer state": "#3f8f5f",
    "gradients": "#7b61a8",
    "activations": "#2f86c4",
    "temporaries": "#8fc1e8",
    "autocast copies": "#4aa6a0",
    "workspace": "#a3a13a",
    "inputs": "#c2681b",
    "buffers": "#b03a5b",
    "buckets": "#b9a8d6",
    ALLOCATOR: "#a7b0b9",
    COMMUNICATION: "#8b98a6",
    CONTEXT: "#6b7785",
}
"""What stays comes before what comes and goes: the stack grows from the bottom. The colours are those of the pages."""
PEAK = "#a1260d"


def memory_timeline(answer: Forecast) -> Any:
    """Memory over the step, and at its peak by layer."""
    altair = altair_module()
    details, peak_bytes = answer.details, answer.peak_bytes
    assert details.memory is not None and peak_bytes is not None
    timeline = details.memory.timeline
    contents = {**timeline.live_bytes, **_held(answer, timeline.total_bytes)}
    shown = [name for name in COLOURS if name in {_name(content) for content in contents}]
    colour = altair.Color(
        "content:N",
        title=None,
        scale=altair.Scale(domain=shown, range=[COLOURS[name] for name in shown]),
        legend=altair.Legend(orient="bottom", columns=3, labelLimit=220),
    )
    parts = [_over_time(altair, answer, timeline, contents, colour), _at_peak(altair, details.memory, colour)]
    return altair.concat(*parts, columns=1, spacing=28)


def _name(content: str) -> str:
    return content.replace("_", " ")


def _over_time(altair: Any, answer: Forecast, timeline: Timeline, contents: dict[str, Any], colour: Any) -> Any:
    peak_bytes = answer.peak_bytes
    assert peak_bytes is not None
    order = {name: place for place, name in enumerate(COLOURS)}
    rows = [
        {
            "op": int(index),
            "name": timeline.names[index],
            "phase": timeline.phases[index],
            "content": _name(content),
            "order": order[_name(content)],
            "GiB": float(live[index]) / 2**30,
        }
        for content, live in contents.items()
        for index in _drawn_ops(timeline.total_bytes)
    ]
    areas = (
        altair.Chart(altair.Data(values=rows))
        .mark_area()
        .encode(
            x=altair.X(
                "op:Q",
                title=None,
                scale=altair.Scale(domain=[0, len(timeline.names)], nice=False),
                axis=_phases_axis(altair, timeline.phases),
            ),
            y=altair.Y("GiB:Q", stack="zero", title="GiB"),
            color=colour,
            order=altair.Order("order:Q"),
            tooltip=["name:N", "phase:N", "content:N", "GiB:Q"],
        )
    )
    limit_bytes = usable_bytes(answer.details.placement.device)
    limit = altair.Chart(altair.Data(values=[{"GiB": limit_bytes / 2**30}]))
    ends = {"low": peak_bytes.low / 2**30, "high": peak_bytes.high / 2**30, "expected": peak_bytes.mid / 2**30}
    peak = altair.Chart(altair.Data(values=[ends]))
    layers = [
        areas,
        peak.mark_rect(color=PEAK, opacity=0.12).encode(y="low:Q", y2="high:Q"),
        peak.mark_rule(color=PEAK).encode(y="expected:Q"),
        limit.mark_rule(strokeDash=[4, 4]).encode(y="GiB:Q"),
    ]
    title = altair.TitleParams(
        f"{answer.model}, batch {answer.batch_per_gpu}: peak {show_bytes(peak_bytes.mid)}, {COVERAGE:.0%} interval "
        f"{show_bytes(peak_bytes.low)} … {show_bytes(peak_bytes.high)}",
        subtitle=f"red: the peak and its interval; dashed: {show_bytes(limit_bytes)} that {answer.device} has",
        anchor="start",
    )
    return altair.layer(*layers).properties(title=title, width=WIDTH, height=HEIGHT)


def _phases_axis(altair: Any, phases: Sequence[str]) -> Any:
    """A tick where each phase begins, with its name."""
    starts = {
        phase: place for place, phase in enumerate(phases) if place and (place == 1 or phase != phases[place - 1])
    }
    first = {phase: phases.index(phase) for phase in starts}
    cases = " : ".join(f"datum.value == {place} ? '{phase}'" for phase, place in first.items())
    return altair.Axis(
        values=sorted(first.values()), labelExpr=f"{cases} : ''", labelAlign="left", grid=True, labelOverlap="greedy"
    )


def _at_peak(altair: Any, memory: PeakMemory, colour: Any) -> Any:
    alive = grouped(memory.alive)
    layers = list(dict.fromkeys(part.layer for part in alive))
    order = {name: place for place, name in enumerate(COLOURS)}
    rows = [
        {
            "layer": part.layer,
            "content": _name(part.content),
            "order": order[_name(part.content)],
            "GiB": part.bytes / 2**30,
        }
        for part in alive
    ]
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_bar()
        .encode(
            x=altair.X("GiB:Q", stack="zero", title="GiB"),
            y=altair.Y("layer:N", sort=layers, title=None, axis=altair.Axis(labelLimit=180)),
            color=colour,
            order=altair.Order("order:Q"),
            tooltip=["layer:N", "content:N", "GiB:Q"],
        )
        .properties(
            title=altair.TitleParams(f"alive at the peak ({memory.peak_op}), by layer", anchor="start"),
            width=WIDTH,
            height=ROW_HEIGHT * len(layers),
        )
    )


def _held(answer: Forecast, total_bytes: np.ndarray) -> dict[str, np.ndarray]:
    """What is held all the time besides tensors: with it, the highest point is the peak that the answer names."""
    assert answer.peak_bytes is not None
    context = answer.peak_breakdown.get("context", 0)
    communication = answer.peak_breakdown.get("communication", 0)
    allocator = max(0.0, answer.peak_bytes.mid - context - communication - int(total_bytes.max()))
    held = {ALLOCATOR: allocator, COMMUNICATION: communication, CONTEXT: context}
    return {name: np.full(len(total_bytes), size) for name, size in held.items() if size}


def _drawn_ops(total_bytes: np.ndarray) -> np.ndarray:
    """The index of the highest op in each of at most `POINTS` parts of the step."""
    parts = np.array_split(np.arange(len(total_bytes)), min(POINTS, len(total_bytes)))
    return np.array([part[np.argmax(total_bytes[part])] for part in parts])
