"""Memory over one training step: what is alive during every op, by what it holds, under the device's limit."""

from typing import Any

import numpy as np

from epochcast.charts.save import altair_module
from epochcast.forecasting.forecast import Forecast
from epochcast.memory.context import room_bytes

POINTS = 400
"""More than a chart has pixels for; a longer step is thinned, its highest points kept."""


def memory_timeline(answer: Forecast) -> Any:
    """Stacked areas over the ops of a step; the line is what the device leaves for tensors."""
    altair = altair_module()
    timeline = answer.details.timeline
    assert timeline is not None
    rows = [
        {
            "op": int(place),
            "name": timeline.names[place],
            "phase": timeline.phases[place],
            "holds": holds.replace("_", " "),
            "GiB": float(live[place]) / 2**30,
        }
        for holds, live in timeline.live_bytes.items()
        for place in _kept(timeline.total_bytes)
    ]
    areas = (
        altair.Chart(altair.Data(values=rows))
        .mark_area()
        .encode(
            x=altair.X("op:Q", title="op of the step"),
            y=altair.Y("GiB:Q", stack="zero", title="GiB alive"),
            color=altair.Color("holds:N", title=None),
            tooltip=["name:N", "phase:N", "holds:N", "GiB:Q"],
        )
    )
    room = room_bytes(answer.details.placement.device) / 2**30
    limit = altair.Chart(altair.Data(values=[{"GiB": room}])).mark_rule(strokeDash=[4, 4]).encode(y="GiB:Q")
    device, batch = answer.device, answer.batch_per_gpu
    title = f"{answer.model}, batch {batch}; dashed: what {device} leaves for tensors"
    return altair.layer(areas, limit).properties(title=title, width=640, height=320)


def _kept(total_bytes: np.ndarray) -> np.ndarray:
    """The highest place of every stretch of the step."""
    stretches = np.array_split(np.arange(len(total_bytes)), min(POINTS, len(total_bytes)))
    return np.array([stretch[np.argmax(total_bytes[stretch])] for stretch in stretches])
