"""Answers as tables for a terminal. Numbers are scaled here and nowhere before."""

from epochcast.render.catalogues import datasets, devices, instances, links, models
from epochcast.render.forecast import choices, forecast
from epochcast.render.inspection import comparison, inspection
from epochcast.render.memory import memory
from epochcast.render.table import table

__all__ = [
    "choices",
    "comparison",
    "datasets",
    "devices",
    "forecast",
    "inspection",
    "instances",
    "links",
    "memory",
    "models",
    "table",
]
