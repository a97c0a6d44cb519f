"""Charts: one Vega-Lite text for PNG, SVG and a page that needs no network (altair, vl-convert: extra `plot`)."""

from epochcast.surfaces.charts.chart_file import check_chart_path, save_chart
from epochcast.surfaces.charts.history_chart import history_report
from epochcast.surfaces.charts.memory_chart import memory_timeline
from epochcast.surfaces.charts.plan_chart import plan
from epochcast.surfaces.charts.scaling_chart import scaling
from epochcast.surfaces.charts.scatter_chart import OTHERS, predicted_against_measured
from epochcast.surfaces.charts.schedule_chart import gantt, policy_costs
from epochcast.surfaces.charts.timetable_chart import timetable

__all__ = [
    "OTHERS",
    "check_chart_path",
    "gantt",
    "history_report",
    "memory_timeline",
    "plan",
    "policy_costs",
    "predicted_against_measured",
    "save_chart",
    "scaling",
    "timetable",
]
