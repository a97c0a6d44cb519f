"""Why a forecast is to be believed: measured runs like it, and how far off the forecast was when it had not seen them.

`evidence.csv` has one line per network, device, precision and source of public measurements, with the median of
predicted over measured seconds of a model that was trained without that family of networks; `glance.json` is the table
at the head of docs/accuracy/accuracy.md. Both are written by `python -m training.evidence` from `studies/accuracy`.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from epochcast.base.caching import remembered
from epochcast.hardware.catalogue import devices
from epochcast.observe.store.row_values import RunFilter
from epochcast.observe.store.store_rows import RunRow
from epochcast.predict.forecast.job_data import TEXT
from epochcast.surfaces.web.dependencies import Reader, State
from epochcast.surfaces.web.openapi import problems

router = APIRouter(prefix="/api/v1", tags=["names"])
FILE, GLANCE = Path(__file__).with_name("evidence.csv"), Path(__file__).with_name("glance.json")
SHOWN = 6
TEXT_FAMILIES = frozenset({"bert", "gpt", "megatron", "minigptblock", "opt", "switch"})
"""Those of the table that take text."""
MOST_OUTCOMES = 2_000
Text = Annotated[str, Query(max_length=500)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A network that somebody measured on a device. `error` is predicted over measured, less one."""

    model: str
    family: str
    device: str
    precision: str
    mode: str
    batch: int
    source: str
    rows: int
    error: float


@router.get("/evidence", summary="Measured runs like a forecast, and how far off it was.", responses=problems())
async def evidence(
    caller: Reader, model: Text = "", device: Text = "", precision: Text = "", mode: Text = "training", fed: Text = ""
) -> Response:
    """The nearest by network, device and precision, and a sentence that says what they are. With `fed`, what the
    network takes, networks of text stand beside networks of text.
    """
    nearest = nearest_runs(model, device, precision, mode, fed)
    return JSONResponse(
        {"sentence": _sentence(model, device, nearest), "nearest": [asdict(run) for run in nearest[:SHOWN]]}
    )


@router.get(
    "/accuracy", summary="How far off forecasts are, by format, class of GPU and network.", responses=problems()
)
async def accuracy(caller: Reader) -> Response:
    """On measured steps of other people that the model had not seen."""
    return JSONResponse(glance())


@router.get("/outcomes", summary="Finished runs of this server: forecast against what happened.", responses=problems())
async def outcomes(running: State, caller: Reader) -> Response:
    """The newest first, of runs that kept a forecast; `is_inside` where the 90 % interval held the truth."""

    def read() -> list[dict[str, Any]]:
        wanted = RunFilter(states=("ended",), project=caller.project, most=MOST_OUTCOMES)
        return [outcome(run) for run in running.store.runs(wanted) if run.step_seconds and run.forecast_step_seconds]

    return JSONResponse({"outcomes": await run_in_threadpool(read)})


def outcome(run: RunRow) -> dict[str, Any]:
    """What was forecast of a finished run, and what happened."""
    expected = None if run.standing is None else run.standing.forecast_step_seconds
    return {
        **{name: getattr(run, name) for name in ("label", "device", "step_seconds", "forecast_step_seconds")},
        **{name: getattr(run, name) for name in ("elapsed_seconds", "forecast_total_seconds", "against_forecast")},
        "run": run.name,
        "is_inside": None if expected is None or run.step_seconds is None else expected.holds(run.step_seconds),
    }


def nearest_runs(model: str, device: str, precision: str, mode: str = "training", fed: str = "") -> list[Measured]:
    """Measured runs that are like a job, the most like it first; none where nothing is."""
    family = _family(model)
    alike = [run for run in measured() if not fed or (run.family in TEXT_FAMILIES) == (fed == TEXT)]
    scored = [(_likeness(run, model, family, device, precision, mode), run) for run in alike]
    near = sorted((pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], abs(pair[1].error)))
    return [run for _, run in near]


def _likeness(run: Measured, model: str, family: str, device: str, precision: str, mode: str) -> int:
    same_network = 4 * (run.model.casefold() == model.casefold()) or 2 * (run.family == family)
    same_device = 3 * (run.device == device) or (device in chips() and chips().get(run.device) == chips()[device])
    if not same_network and not same_device:
        return 0
    return 10 * same_network + 10 * same_device + 5 * (run.precision == precision) + 3 * (run.mode == mode)


@remembered(1)
def chips() -> Mapping[str, tuple[str, str, int]]:
    """Of every device of the catalogue, by its name."""
    return {device.name: device.chip for device in devices()}


def _family(model: str) -> str:
    return next((run.family for run in measured() if run.model.casefold() == model.casefold()), model.casefold())


def _sentence(model: str, device: str, nearest: list[Measured]) -> str:
    if not nearest:
        return (
            f"Nobody measured {model} or anything on {device} that is known here: the interval is wide for that reason."
        )
    exact = [run for run in nearest if run.device == device and run.model.casefold() == model.casefold()]
    if exact:
        return f"{model} was measured on {device}. When our model had not seen its family, it was this far off:"
    if any(run.device == device for run in nearest):
        return f"{model} was not measured on {device}; these come nearest, with our errors when they were left out:"
    return f"Nothing was measured on {device}; these networks were measured elsewhere, with our errors when left out:"


@remembered(1)
def measured() -> tuple[Measured, ...]:
    """All lines of the table."""
    with FILE.open(encoding="utf-8", newline="") as stream:
        lines = (line for line in stream if not line.startswith("#"))
        return tuple(
            Measured(
                row["model"],
                row["family"],
                row["device"],
                row["precision"],
                row["mode"],
                int(row["batch"]),
                row["source"],
                int(row["rows"]),
                float(row["error"]),
            )
            for row in csv.DictReader(lines)
        )


@remembered(1)
def glance() -> dict[str, Any]:
    """The table of errors by format, class of GPU and kind of network."""
    figures: dict[str, Any] = json.loads(GLANCE.read_text(encoding="utf-8"))
    return figures
