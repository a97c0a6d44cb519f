"""Inside a worker: from a verb and its options to the object that answers it."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from epochcast import api
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.session import Session
from epochcast.surfaces.web.api_verbs import (
    DIFF_LIMITS,
    DRAW,
    NEIGHBOURS,
    PROJECT,
    UPLOAD,
    VERBS,
    check_model,
    read_options,
)
from epochcast.surfaces.web.queue_worker import kept_queue, sent_queue, simulated
from epochcast.surfaces.web.uploads import stored_reference, summary_of

Answer = dict[str, Any]

MOST_PREDICTED_ROWS = 10_000
MOST_PASTED = 100_000


class Answering:
    """Answers with one session for all questions, so that networks and traces are kept between them."""

    def __init__(self, uploads: str) -> None:
        self._uploads = Path(uploads)
        self._session = Session(with_own_profiles=True, allow_code=False)

    def answer(self, verb: str, question: Mapping[str, Any]) -> Answer:
        """The answer to a verb; `question` is as it came in the request, with `project` and `path` from the server."""
        question = dict(question)
        project = question.pop(PROJECT, "")
        if verb in _OTHERS:
            return _OTHERS[verb](question)
        if verb == "diff":
            return self._diff(question, project)
        if verb not in _ANSWERS:
            raise UnknownName("verb", verb, _ANSWERS)
        return _ANSWERS[verb](self._read(verb, question, project), self._session)

    def _read(self, verb: str, question: Mapping[str, Any], project: str) -> dict[str, Any]:
        options = VERBS[verb].read(question)
        if options.get("model", "").startswith(UPLOAD):
            options["model"] = stored_reference(self._uploads, project, options["model"].removeprefix(UPLOAD))
        return options

    def _diff(self, question: Mapping[str, Any], project: str) -> Answer:
        if not {"base", "head"} <= set(question):
            raise BadInput("a diff takes two objects of options: base and head")
        limits = read_options({name: question[name] for name in question if name not in ("base", "head")}, DIFF_LIMITS)
        sides = [self._read("forecast", question[side] or {}, project) for side in ("base", "head")]
        for side in sides:
            side.pop(DRAW.name, None)
            side.pop(NEIGHBOURS.name, None)
        (base, place), (head, other) = map(_job_and_place, sides)
        if place != other:
            raise BadInput("a diff compares two jobs at one place: device, gpus and the like must be the same")
        return api.diff(base, head, session=self._session, **place, **limits).as_dict()


def _job_and_place(options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    from epochcast.predict.forecast.job import Job
    from epochcast.predict.forecast.where import PLACE_OPTIONS

    places = {option.name for option in PLACE_OPTIONS}
    job_options = {name: value for name, value in options.items() if name not in places}
    return Job(**job_options), {name: value for name, value in options.items() if name in places}


def _with_chart(verb: Callable[..., Any], options: dict[str, Any], session: Session) -> Answer:
    is_drawn, has_neighbours = options.pop(DRAW.name, False), options.pop(NEIGHBOURS.name, False)
    answer = verb(options.pop("model"), config=None, session=session, **options)
    body: Answer = answer.as_dict()
    if has_neighbours:
        body |= _neighbours(answer, session)
    chart = _chart(answer) if is_drawn else None
    return body if chart is None else {**body, "chart": json.loads(chart.to_json())}


def _neighbours(forecast: api.Forecast, session: Session) -> Answer:
    from epochcast.measure.neighbours.nearest_runs import neighbours

    return {"neighbours": [each.as_dict() for each in neighbours(forecast, session=session)]}


def _check(options: dict[str, Any], session: Session) -> Answer:
    from epochcast.observe.check.observed import read_typed

    has_neighbours, text = options.pop(NEIGHBOURS.name, False), options.pop("observed")
    if len(text) > MOST_PASTED:
        raise BadInput(f"at most {MOST_PASTED:,} characters of a log are read here, got {len(text):,}")
    answer = api.check(options.pop("model"), read_typed(text), config=None, session=session, **options)
    return answer.as_dict() | (_neighbours(answer.forecast, session) if has_neighbours else {})


def _oom(options: dict[str, Any], session: Session) -> Answer:
    message, model = options.pop("message"), options.pop("model", None)
    return api.oom(message, model, config=None, session=session, **options).as_dict()


def _chart(answer: object) -> Any:
    """The chart of an answer; None where there is nothing to draw."""
    from epochcast.surfaces import charts

    match answer:
        case api.Forecast():
            return charts.memory_timeline(answer)
        case api.Scaling():
            return charts.scaling(answer)
        case api.Plan() if answer.candidates:
            return charts.plan(answer)
    return None


def _inspect(options: dict[str, Any], session: Session) -> Answer:
    model, names = options.pop("model"), ("input_shape", "aux")
    return api.inspect(model, **{name: value for name, value in options.items() if name in names}).as_dict()


def _remedies(options: dict[str, Any], session: Session) -> Answer:
    forecast = api.forecast(options.pop("model"), config=None, session=session, **options)
    return {"fits": forecast.fits, "remedies": [remedy.as_dict() for remedy in forecast.remedies()]}


def _compared(question: Mapping[str, Any]) -> Answer:
    """Models of past jobs compared on a table that was sent."""
    from epochcast.surfaces.web.history_tables import compared

    return compared(Path(question["path"]), question)


def _summary(question: Mapping[str, Any]) -> Answer:
    return summary_of(Path(question["path"]))


def _predicted(question: Mapping[str, Any]) -> dict[str, Any]:
    """Predictions of rows by a model that was sent; rows may name models that are neither files nor code."""
    request = question.get("asked")
    if not isinstance(request, Mapping) or set(request) != {"model", "rows"}:
        raise BadInput("past jobs are asked with an object of `model`, the content of a model file, and `rows`")
    rows = request["rows"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, Mapping) for row in rows):
        raise BadInput("`rows` must be a list of objects, one for each job")
    if len(rows) > MOST_PREDICTED_ROWS:
        raise BadInput(f"at most {MOST_PREDICTED_ROWS:,} rows are predicted at once, got {len(rows):,}")
    for row in rows:
        if isinstance(row.get("model"), str):
            check_model(row["model"])
    from epochcast.observe.history.history_verbs import predict
    from epochcast.observe.history.model_file import model_in

    model = model_in(request["model"], "the model")
    return predict(model, _columns(rows)).as_dict()


def _columns(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    for name in names:
        kinds = {type(row.get(name)) for row in rows if row.get(name) is not None}
        if kinds - {int, float, str, bool} or (str in kinds and len(kinds) > 1):
            raise BadInput(f"the column {name!r} must be numbers or texts")
    return {name: [row.get(name) for row in rows] for name in names}


_OTHERS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "summary": _summary,
    "queue": kept_queue,
    "schedule": sent_queue,
    "simulate": simulated,
    "history": _predicted,
    "history_compare": _compared,
}

_ANSWERS: Mapping[str, Callable[[dict[str, Any], Session], Answer]] = {
    "forecast": partial(_with_chart, api.forecast),
    "advise": partial(_with_chart, api.advise),
    "scaling": partial(_with_chart, api.scaling),
    "plan": partial(_with_chart, api.plan),
    "inspect": _inspect,
    "check": _check,
    "oom": _oom,
    "remedies": _remedies,
}
