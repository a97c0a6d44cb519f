"""What an assistant can ask: the verbs of the web API, with its schemas.

The tools only read. Models are names, ids of the Hub that epochcast knows, and inline configurations; a file or
`pkg.module:factory` is refused as the server refuses it, and nothing is fetched. Charts are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from epochcast.errors import BadInput, UnknownName
from epochcast.surfaces.answer_schemas import answer_schema
from epochcast.surfaces.web.api_verbs import DRAW, UPLOAD, VERBS, Verb, diff_schema
from epochcast.surfaces.web.worker_verbs import Answering

DIFF = "diff"
DIFF_ABOUT = "What changes from one job to another at the same place: time, memory, cost, and the layers that do it."


@dataclass(frozen=True, slots=True)
class AssistantTool:
    """One tool: its name, what it answers, and the JSON schemas of the question and of the answer."""

    name: str
    about: str
    question_schema: Mapping[str, Any]

    @property
    def answer_schema(self) -> dict[str, Any]:
        """That of the command with `--json`."""
        return answer_schema(self.name)


def _tool(verb: Verb) -> AssistantTool:
    without_chart = replace(verb, extras=tuple(option for option in verb.extras if option != DRAW))
    return AssistantTool(verb.name, verb.about, without_chart.schema())


TOOLS: Mapping[str, AssistantTool] = {
    **{name: _tool(VERBS[name]) for name in ("forecast", "advise", "plan")},
    DIFF: AssistantTool(DIFF, DIFF_ABOUT, diff_schema()),
    **{name: _tool(VERBS[name]) for name in ("check", "oom")},
}


class AssistantAnswers:
    """Answers questions, with one session for all of them."""

    def __init__(self) -> None:
        self._answering = Answering("")

    def answer(self, name: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """What the tool answers; the object that the command prints with `--json`."""
        if name not in TOOLS:
            raise UnknownName("tool", name, TOOLS)
        for asked in (question, question.get("base"), question.get("head")):
            if isinstance(asked, Mapping):
                _check_asked(asked)
        return self._answering.answer(name, question)


def _check_asked(asked: Mapping[str, Any]) -> None:
    """Refuse what only a server has: uploads, charts, and whose they are."""
    if any(name.startswith("_") or name == DRAW.name for name in asked):
        raise BadInput("options are those of the tool's schema")
    if str(asked.get("model", "")).startswith(UPLOAD):
        raise BadInput("an upload belongs to a server; name a model, such as resnet50 or meta-llama/Llama-3.1-8B")
