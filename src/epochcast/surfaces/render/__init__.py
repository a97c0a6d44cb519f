"""Answers as tables for a terminal. Numbers get their units (ms, GiB) here and nowhere before."""

from epochcast.surfaces.render.advise_table import advice, loader, probe
from epochcast.surfaces.render.afford_table import afford
from epochcast.surfaces.render.bench_table import campaign
from epochcast.surfaces.render.bill_table import bill
from epochcast.surfaces.render.catalogue_tables import (
    datasets,
    devices,
    hub_models,
    instances,
    jobs,
    links,
    models,
    tokens,
    topologies,
)
from epochcast.surfaces.render.check_table import speed_check
from epochcast.surfaces.render.diff_table import diff
from epochcast.surfaces.render.doctor_report import doctor
from epochcast.surfaces.render.forecast_table import choices, forecast
from epochcast.surfaces.render.generation_table import generation
from epochcast.surfaces.render.inspection_table import comparison, inspection
from epochcast.surfaces.render.memory_table import memory
from epochcast.surfaces.render.neighbours_table import with_neighbours
from epochcast.surfaces.render.oom_table import oom
from epochcast.surfaces.render.placement_advice_table import placement_advice
from epochcast.surfaces.render.plan_table import plan
from epochcast.surfaces.render.policies_table import policies, simulation
from epochcast.surfaces.render.post_training_table import post_training
from epochcast.surfaces.render.price_table import price_update
from epochcast.surfaces.render.queue_table import queue, timetable
from epochcast.surfaces.render.runs_table import run, runs
from epochcast.surfaces.render.scaling_table import scaling
from epochcast.surfaces.render.table_parts import table
from epochcast.surfaces.render.track_table import track, track_live

__all__ = [
    "advice",
    "afford",
    "bill",
    "campaign",
    "choices",
    "comparison",
    "datasets",
    "devices",
    "diff",
    "doctor",
    "forecast",
    "generation",
    "hub_models",
    "inspection",
    "instances",
    "jobs",
    "links",
    "loader",
    "memory",
    "models",
    "oom",
    "placement_advice",
    "plan",
    "policies",
    "post_training",
    "price_update",
    "probe",
    "queue",
    "run",
    "runs",
    "scaling",
    "simulation",
    "speed_check",
    "table",
    "timetable",
    "tokens",
    "topologies",
    "track",
    "track_live",
    "with_neighbours",
]
