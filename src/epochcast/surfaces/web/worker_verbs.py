"""Inside a worker: from a verb and its options to the object that answers it."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from epochcast import api
from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.session import Session
from epochcast.surfaces.web.answer_cache import PROJECT
from epochcast.surfaces.web.api_verbs import DIFF_LIMITS, DRAW, UPLOAD, VERBS, read_options
from epochcast.surfaces.web.history_worker import predicted
from epochcast.surfaces.web.queue_worker import kept_queue, sent_queue, simulated
from epochcast.surfaces.web.uploads import stored_reference, summary_of

Answer = dict[str, Any]


class Answering:
    """Answers with one session for all questions, so that networks and traces are kept between them."""

    def __init__(self, uploads: str) -> None:
        self._uploads = Path(uploads)
        self._session = Session(with_own_profiles=True, allow_code=False)

    def answer(self, verb: str, asked: Mapping[str, Any]) -> Answer:
        """The answer to a verb; `asked` is as it came in the request, with `project` and `path` from the server."""
        asked = dict(asked)
        project = asked.pop(PROJECT, "")
        if verb in _OTHERS:
            return _OTHERS[verb](asked)
        if verb == "diff":
            return self._diff(asked, project)
        if verb not in _ANSWERS:
            raise UnknownName("verb", verb, _ANSWERS)
        return _ANSWERS[verb](self._read(verb, asked, project), self._session)

    def _read(self, verb: str, asked: Mapping[str, Any], project: str) -> dict[str, Any]:
        options = VERBS[verb].read(asked)
        if options["model"].startswith(UPLOAD):
            options["model"] = stored_reference(self._uploads, project, options["model"].removeprefix(UPLOAD))
        return options

    def _diff(self, asked: Mapping[str, Any], project: str) -> Answer:
        if not {"base", "head"} <= set(asked):
            raise BadInput("a diff is asked with two objects of options: base and head")
        limits = read_options({name: asked[name] for name in asked if name not in ("base", "head")}, DIFF_LIMITS)
        sides = [self._read("forecast", asked[side] or {}, project) for side in ("base", "head")]
        for side in sides:
            side.pop(DRAW.name, None)
        (base, place), (head, other) = map(_job_and_place, sides)
        if place != other:
            raise BadInput("a diff compares two jobs at one place: device, gpus and the like must be the same")
        return api.diff(base, head, session=self._session, **place, **limits).as_dict()


def _job_and_place(options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    from epochcast.predict.forecast.job import Job
    from epochcast.predict.forecast.where import PLACE_OPTIONS

    places = {one.name for one in PLACE_OPTIONS}
    own = {name: value for name, value in options.items() if name not in places}
    return Job(**own), {name: value for name, value in options.items() if name in places}


def _with_chart(verb: Callable[..., Any], asked: dict[str, Any], session: Session) -> Answer:
    is_drawn = asked.pop(DRAW.name, False)
    answer = verb(asked.pop("model"), config=None, session=session, **asked)
    body: Answer = answer.as_dict()
    chart = _chart(answer) if is_drawn else None
    return body if chart is None else {**body, "chart": json.loads(chart.to_json())}


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


def _inspect(asked: dict[str, Any], session: Session) -> Answer:
    model, taken = asked.pop("model"), ("input_shape", "aux")
    return api.inspect(model, **{name: value for name, value in asked.items() if name in taken}).as_dict()


def _summary(asked: Mapping[str, Any]) -> Answer:
    return summary_of(Path(asked["path"]))


_OTHERS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "summary": _summary,
    "queue": kept_queue,
    "schedule": sent_queue,
    "simulate": simulated,
    "history": predicted,
}

_ANSWERS: Mapping[str, Callable[[dict[str, Any], Session], Answer]] = {
    "forecast": partial(_with_chart, api.forecast),
    "advise": partial(_with_chart, api.advise),
    "scaling": partial(_with_chart, api.scaling),
    "plan": partial(_with_chart, api.plan),
    "inspect": _inspect,
}
