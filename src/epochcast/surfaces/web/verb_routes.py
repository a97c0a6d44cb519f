"""Routes of verbs: forecast, advise, scaling, plan, inspect, check, oom, diff; and models that are sent as files."""

import json
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from epochcast.surfaces.web.api_verbs import UPLOAD, VERBS, Verb, diff_schema
from epochcast.surfaces.web.dependencies import Reader, State, Writer
from epochcast.surfaces.web.openapi import file_request, json_request, problems
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.request_bodies import body, json_body, json_text
from epochcast.surfaces.web.uploads import TABLES, accept, checked_file_name, make_room, refuse, stored_upload
from epochcast.units import show_bytes

router = APIRouter(prefix="/api/v1", tags=["ask"])

_EXAMPLES: dict[str, dict[str, Any]] = {
    "forecast": {"model": "resnet50", "device": "A100", "batch": 128, "dataset": "imagenet-1k", "epochs": 90},
    "advise": {"model": "resnet50", "device": "V100", "precision": "amp"},
    "scaling": {"model": "resnet50", "device": "V100", "batch": 64, "gpus": [1, 2, 4, 8]},
    "plan": {"model": "resnet50", "batch": 1024, "dataset": "imagenet-1k", "epochs": 90, "deadline_seconds": "6h"},
    "check": {"model": "resnet50", "device": "A100", "batch": 64, "observed": "0.2 s/it"},
    "inspect": {"model": "resnet50"},
    "oom": {"message": "CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 23.65 GiB"},
}


def _add(verb: Verb) -> None:
    @router.post(
        f"/{verb.name}",
        summary=verb.about,
        name=verb.name,
        responses=problems(),
        openapi_extra=json_request(verb.schema(), _EXAMPLES[verb.name]),
    )
    async def ask(request: Request, running: State, caller: Reader) -> Response:
        limits = running.settings.limits
        question = await json_body(request, limits.request_bytes)
        seconds = limits.plan_seconds if verb.name == "check" else None  # it forecasts many causes
        return json_text(await running.answers.answer(verb.name, question, caller.project, seconds))


for _verb in VERBS.values():
    _add(_verb)


@router.post(
    "/diff",
    summary="What changes from one job to another at the same place.",
    responses=problems(),
    openapi_extra=json_request(
        diff_schema(),
        {"base": {"model": "resnet50", "device": "A100", "batch": 64}, "head": _EXAMPLES["forecast"]},
    ),
)
async def diff(request: Request, running: State, caller: Reader) -> Response:
    """Two objects of options, `base` and `head`; their devices, GPUs and the like must be the same. The
    other options are limits of the change: `exceeded` has those that it does not keep.
    """
    question = await json_body(request, running.settings.limits.request_bytes)
    return json_text(await running.answers.answer("diff", question, caller.project))


@router.post(
    "/history/predict",
    summary="What past jobs say of new ones: the content of a file of `epochcast history fit`, and rows.",
    responses=problems(),
    openapi_extra=json_request(
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["model", "rows"],
            "properties": {
                "model": {"type": "object", "description": "The content of the model file."},
                "rows": {"type": "array", "items": {"type": "object"}, "description": "A job each, by columns."},
            },
        }
    ),
)
async def history(request: Request, running: State, caller: Reader) -> Response:
    """What `epochcast history predict --json` prints."""
    limits = running.settings.limits
    question = await json_body(request, limits.upload_bytes)
    return json_text(await running.answers.answer("history", {"asked": question}, caller.project, limits.plan_seconds))


@router.post(
    "/history/compare",
    summary="Which model of past jobs predicts a table best: error and coverage on rows that it has not seen.",
    responses=problems(),
    openapi_extra=file_request(),
)
async def compare(
    request: Request,
    running: State,
    caller: Reader,
    name: Annotated[str, Query(min_length=1, max_length=200)],
    target: Annotated[str, Query(max_length=100)] = "epoch_seconds",
    physics: Annotated[bool, Query(description="Forecast each row, too: better models, and it takes longer.")] = False,
) -> Response:
    """The body is the table, `name` its name. It is read in a process of its own and removed afterwards."""
    limits, folder = running.settings.limits, running.settings.folder
    file_name = checked_file_name(name, TABLES)
    content = await body(request, limits.upload_bytes)
    if not content:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "the file is empty")
    _, file = await run_in_threadpool(stored_upload, folder, caller.project or "", file_name, content)
    question = {"path": str(file), "target": target, "physics": physics}
    try:
        return json_text(await running.workers.ask("history_compare", question, limits.plan_seconds))
    finally:
        await run_in_threadpool(refuse, file)


@router.post(
    "/uploads",
    summary="Send a model file: .onnx, .keras, Keras JSON, a Hugging Face config.json, our .toml or .json.",
    status_code=HTTPStatus.CREATED,
    responses=problems(),
    openapi_extra=file_request(),
)
async def upload(
    request: Request, running: State, caller: Writer, name: Annotated[str, Query(min_length=1, max_length=200)]
) -> Response:
    """The body is the file, `name` its name. It is read in a process of its own, with a limit of time and memory; the
    answer has the `model` to ask about.
    """
    limits, folder = running.settings.limits, running.settings.folder
    file_name = checked_file_name(name)
    content = await body(request, limits.upload_bytes)
    if not content:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "the file is empty")
    project, quota = caller.project or "", limits.uploads_bytes
    if not await run_in_threadpool(make_room, folder, project, len(content), quota, limits.uploads_kept_seconds):
        raise Problem(
            HTTPStatus.INSUFFICIENT_STORAGE,
            f"uploads of one project have {show_bytes(quota)} together, and these are full: an upload is removed "
            f"{limits.uploads_kept_seconds / 86_400:g} days after its last use",
        )
    digest, file = await run_in_threadpool(stored_upload, folder, project, file_name, content)
    try:
        summary = json.loads(await running.parsers.ask("summary", {"path": str(file)}, limits.upload_seconds))
    except BaseException:
        await run_in_threadpool(refuse, file)
        raise
    await run_in_threadpool(accept, file, digest)
    return JSONResponse({"model": f"{UPLOAD}{digest}", **summary}, HTTPStatus.CREATED)
