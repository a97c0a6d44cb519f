"""Answers as tables for a terminal. Numbers get their units (ms, GiB) here and nowhere before."""

from epochcast.render.advise import advice, loader, probe
from epochcast.render.bench import campaign
from epochcast.render.catalogues import datasets, devices, hub_models, instances, links, models, topologies
from epochcast.render.diff import diff
from epochcast.render.doctor import doctor
from epochcast.render.forecast import choices, forecast
from epochcast.render.inspection import comparison, inspection
from epochcast.render.jobs import jobs
from epochcast.render.memory import memory
from epochcast.render.plan import plan
from epochcast.render.runs import run, runs
from epochcast.render.scaling import scaling
from epochcast.render.schedule import policies, simulation
from epochcast.render.table import table
from epochcast.render.timetable import queue, timetable
from epochcast.render.tokens import tokens
from epochcast.render.track import track, track_live

__all__ = [
    "advice",
    "campaign",
    "choices",
    "comparison",
    "datasets",
    "devices",
    "diff",
    "doctor",
    "forecast",
    "hub_models",
    "inspection",
    "instances",
    "jobs",
    "links",
    "loader",
    "memory",
    "models",
    "plan",
    "policies",
    "probe",
    "queue",
    "run",
    "runs",
    "scaling",
    "simulation",
    "table",
    "timetable",
    "tokens",
    "topologies",
    "track",
    "track_live",
]
