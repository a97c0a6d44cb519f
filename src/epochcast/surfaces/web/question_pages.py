"""Pages that ask one question each: plan, diff, check, history, accuracy, tokens. Their scripts ask the API."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from epochcast.surfaces.web.dependencies import State
from epochcast.surfaces.web.evidence import glance
from epochcast.surfaces.web.form_fields import devices, fields_of
from epochcast.surfaces.web.pages import page, to_login, visitor

router = APIRouter(include_in_schema=False)

_PLAN_JOB = {
    "model": "Model",
    "batch": "Batch of the whole job",
    "precision": "Precision",
    "dataset": "Data set",
    "epochs": "Epochs",
    "samples": "Samples",
    "tokens": "Tokens",
}
_PLAN_LIMITS = {
    "deadline_seconds": "Deadline",
    "budget_dollars": "Budget, dollars",
    "clouds": "Clouds",
    "devices": "Devices",
    "regions": "Regions",
    "strategies": "Strategies",
    "spot": "Spot offers",
}
_SIDE = {
    "model": "Model",
    "batch": "Batch per GPU",
    "precision": "Precision",
    "optimizer": "Optimizer",
    "checkpointing": "Checkpointing",
    "compile": "Compile",
}
_PLACE = {"device": "Device", "gpus": "GPUs", "samples": "Samples", "dataset": "Data set", "epochs": "Epochs"}
_CHECKED = {
    "model": "Model",
    "device": "Device",
    "gpus": "GPUs",
    "batch": "Batch per GPU",
    "precision": "Precision",
}
TARGETS = {
    "epoch_seconds": "time of an epoch",
    "total_seconds": "time of the whole job",
    "step_seconds": "time of a step",
    "peak_bytes": "peak memory",
}


async def _answered(request: Request, running: State, template: str, **values: Any) -> Response:
    caller = await visitor(request, running)
    return to_login(request) if caller is None else page(request, running, template, caller, **values)


@router.get("/plan")
async def plan_page(request: Request, running: State) -> Response:
    """What to rent."""
    forms: Mapping[str, Any] = {"job": fields_of("plan", _PLAN_JOB), "limits": fields_of("plan", _PLAN_LIMITS)}
    return await _answered(request, running, "plan.html", forms=forms)


@router.get("/diff")
async def diff_page(request: Request, running: State) -> Response:
    """Two jobs side by side."""
    sides = {side: fields_of("forecast", _SIDE, side) for side in ("base", "head")}
    place = fields_of("forecast", _PLACE)
    return await _answered(request, running, "diff.html", sides=sides, place=place, devices=devices())


@router.get("/check")
async def check_page(request: Request, running: State) -> Response:
    """Whether a speed is normal."""
    return await _answered(request, running, "check.html", fields=fields_of("check", _CHECKED), devices=devices())


@router.get("/history")
async def history_page(request: Request, running: State) -> Response:
    """Models of past jobs, compared on a table."""
    return await _answered(request, running, "history.html", targets=TARGETS)


@router.get("/accuracy")
async def accuracy_page(request: Request, running: State) -> Response:
    """How far off forecasts are."""
    table = glance()
    steps = f"{table['steps']:,}"
    return await _answered(
        request, running, "accuracy.html", headings=table["headings"], rows=table["rows"], steps=steps
    )


@router.get("/tokens")
async def tokens_page(request: Request, running: State) -> Response:
    """Tokens and projects."""
    return await _answered(request, running, "tokens.html")
