"""The pictures of the explanation pages, drawn from real answers.

python -m training.pictures        writes step.svg, memory.svg, fan.svg and gantt.svg to docs/pictures
"""

from pathlib import Path
from typing import Any

import numpy as np

import epochcast as ec
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import PHASES
from epochcast.predict.comm.allreduce import all_reduce_seconds
from epochcast.predict.comm.stragglers import waiting
from epochcast.predict.forecast.exchange import DDP_BUCKETS, gradients
from epochcast.surfaces.charts.chart_file import altair_module, save_chart
from epochcast.surfaces.charts.memory_chart import memory_timeline
from epochcast.surfaces.charts.timetable_chart import timetable

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
WIDTH = 640
PICTURES = ("step.svg", "memory.svg", "fan.svg", "gantt.svg")


def step_timeline() -> Any:
    """ResNet-50 on four nodes: kernels by phase, and buckets of gradients on the second stream."""
    alt = altair_module()
    answer = ec.forecast("resnet50", device="V100", batch=64, precision="amp", gpus=4, nodes=4, link="ethernet_10g")
    details, parts = answer.details, answer.step_parts
    assert parts is not None
    phases = np.array(details.trace.columns.phase)
    ends = np.cumsum(np.where(phases == PHASES.index(Phase.UPDATE), 0.0, details.step.costs.mid))
    done = 0.0
    bars = [_bar("kernels", "forward", 0.0, parts.forward)]
    bars.append(_bar("kernels", "backward", parts.forward, parts.forward + parts.backward))
    for size_bytes, place in DDP_BUCKETS.filled(gradients(details.trace)):
        begun = max(done, float(ends[place])) + waiting().bucket_seconds
        done = begun + all_reduce_seconds(size_bytes, details.placement.group, "nccl")
        bars.append(_bar("exchange", "all-reduce of a bucket", begun, done))
    waited = parts.forward + parts.backward + parts.exposed_comm
    bars.append(_bar("kernels", "waiting for other GPUs", parts.forward + parts.backward, waited))
    bars.append(_bar("kernels", "update", waited, waited + parts.update))
    order = ["forward", "backward", "all-reduce of a bucket", "waiting for other GPUs", "update"]
    return (
        alt.Chart(alt.Data(values=bars))
        .mark_bar(stroke="white")
        .encode(
            x=alt.X("from:Q", title="milliseconds of a step"),
            x2="to:Q",
            y=alt.Y("stream:N", title=None, sort=["kernels", "exchange"]),
            color=alt.Color("part:N", title=None, sort=order),
        )
        .properties(
            width=WIDTH,
            height=90,
            title="One step of ResNet-50 on 4 V100s joined by 10 Gbit/s Ethernet, batch 64, mixed precision",
        )
    )


def _bar(stream: str, part: str, start_seconds: float, end_seconds: float) -> dict[str, object]:
    return {"stream": stream, "part": part, "from": 1e3 * start_seconds, "to": 1e3 * end_seconds}


def forecast_fan() -> Any:
    """Samples per second over the batch: the forecast and its 90 % interval."""
    alt = altair_module()
    rows = []
    for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        answer = ec.forecast("resnet50", device="A100", batch=batch, precision="amp")
        step = answer.step_seconds
        rows.append({"batch": batch, "low": batch / step.high, "mid": batch / step.mid, "high": batch / step.low})
    x = alt.X("batch:Q", scale=alt.Scale(type="log", base=2), title="batch")
    base = alt.Chart(alt.Data(values=rows))
    band = base.mark_area(opacity=0.25).encode(x=x, y=alt.Y("low:Q", title="images per second"), y2="high:Q")
    line = base.mark_line(point=True).encode(x=x, y="mid:Q")
    title = "ResNet-50 on an A100, mixed precision: forecast and 90 % interval"
    return (band + line).properties(width=WIDTH, height=220, title=title)


def draw() -> None:
    """Write all of them."""
    answer = ec.forecast("resnet50", device="T4", batch=128, precision="amp")
    charts = {
        "step.svg": step_timeline(),
        "memory.svg": memory_timeline(answer),
        "fan.svg": forecast_fan(),
        "gantt.svg": timetable(ec.schedule_plan(ROOT / "examples" / "queue.toml")),
    }
    for name in PICTURES:
        save_chart(charts[name], FOLDER / name)


if __name__ == "__main__":
    draw()
