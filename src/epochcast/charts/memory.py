"""Memory during one training step: bytes allocated at every op, by kind of content, and the device's limit."""

from typing import Any

import numpy as np

from epochcast.charts.save import altair_module
from epochcast.forecasting.forecast import Forecast
from epochcast.memory.context import room_bytes

POINTS = 400
"""A chart has fewer pixels than this. Of a longer step only the highest points are drawn."""


def memory_timeline(answer: Forecast) -> Any:
    """Stacked areas over the ops of a step; the dashed line is the memory that the device has for tensors."""
    altair = altair_module()
    timeline = answer.details.timeline
    assert timeline is not None
    rows = [
        {
            "op": int(index),
            "name": timeline.names[index],
            "phase": timeline.phases[index],
            "content": content.replace("_", " "),
            "GiB": float(live[index]) / 2**30,
        }
        for content, live in timeline.live_bytes.items()
        for index in _drawn_ops(timeline.total_bytes)
    ]
    areas = (
        altair.Chart(altair.Data(values=rows))
        .mark_area()
        .encode(
            x=altair.X("op:Q", title="op of the step"),
            y=altair.Y("GiB:Q", stack="zero", title="GiB alive"),
            color=altair.Color("content:N", title=None),
            tooltip=["name:N", "phase:N", "content:N", "GiB:Q"],
        )
    )
    room = room_bytes(answer.details.placement.device) / 2**30
    limit = altair.Chart(altair.Data(values=[{"GiB": room}])).mark_rule(strokeDash=[4, 4]).encode(y="GiB:Q")
    device, batch = answer.device, answer.batch_per_gpu
    title = f"{answer.model}, batch {batch}; dashed: memory of {device} for tensors"
    return altair.layer(areas, limit).properties(title=title, width=640, height=320)


def _drawn_ops(total_bytes: np.ndarray) -> np.ndarray:
    """The index of the highest op in each of at most `POINTS` parts of the step."""
    parts = np.array_split(np.arange(len(total_bytes)), min(POINTS, len(total_bytes)))
    return np.array([part[np.argmax(total_bytes[part])] for part in parts])
