"""Charts: one Vega-Lite text for PNG, SVG and a page that needs no network (altair, vl-convert: extra `plot`)."""

from epochcast.charts.history import history_report
from epochcast.charts.memory import memory_timeline
from epochcast.charts.plan import plan
from epochcast.charts.save import check_chart_path, save_chart
from epochcast.charts.scaling import scaling
from epochcast.charts.scatter import OTHERS, predicted_against_measured
from epochcast.charts.schedule import gantt, policy_costs
from epochcast.charts.timetable import timetable

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
