"""A comparison as a comment for a pull request, in GitHub's Markdown (GitLab reads it, too)."""

from collections.abc import Sequence

from epochcast.decide.diff.change_limits import percent, signed
from epochcast.decide.diff.diff_answer import Diff
from epochcast.surfaces.render.answer_header import assumed_line, header
from epochcast.surfaces.render.diff_table import layer_rows, number_rows
from epochcast.units import show_dollars, show_seconds

MARK = "<!-- epochcast -->"
"""The first line: a workflow finds its own comment again by it."""
QUIET_MARK = "<!-- quiet -->"
"""In a comment that is not worth a new one."""


def markdown(answers: Sequence[Diff]) -> str:
    """One comment for all comparisons; a quiet one where none changes enough."""
    if answers and all(answer.is_quiet for answer in answers):
        below = percent(max(answer.allowed.quiet_below or 0.0 for answer in answers))
        said = f"Time, memory and cost change by less than {below}."
        return "\n".join([MARK, QUIET_MARK, "## Training forecast", "", said, ""])
    return "\n".join([MARK, "## Training forecast", "", *(line for each in answers for line in _section(each))])


def _section(answer: Diff) -> list[str]:
    sides = answer.base.forecast, answer.head.forecast
    assumptions = _plain(assumed_line(*sides))
    lines = [f"### {_plain(answer.base.name)} → {_plain(answer.head.name)}", "", _headline(answer), ""]
    lines += [_plain(header([], *sides, between=" → ")) + (f" ({assumptions})" if assumptions else ""), ""]
    lines += _table(("", "base", "head", "change", "90 % interval"), number_rows(answer), "lrrrr")
    if answer.settings:
        changed = ", ".join(f"`{name}` {before} → {after}" for name, (before, after) in answer.settings.items())
        lines += ["", f"Settings that differ: {changed}"]
    if answer.layers:
        count = len(answer.layers)
        lines += ["", "<details>", f"<summary>Layers responsible ({count})</summary>", ""]
        lines += [*_table(("layer", "", "step", "share"), layer_rows(answer), "llrr"), "", "</details>"]
    if answer.warnings:
        lines += ["", "<details>", "<summary>Notes</summary>", ""]
        lines += [*(f"- {_plain(note)}" for note in answer.warnings), "", "</details>"]
    return [*lines, ""]


def badge(answers: Sequence[Diff]) -> dict[str, object]:
    """The head's time and cost as shields.io reads it ("endpoint badge"); red where a limit is exceeded."""
    seconds = [each.head.forecast.total_seconds for each in answers]
    dollars = [each.head.forecast.dollars for each in answers]
    parts = []
    if all(seconds):
        parts.append(show_seconds(sum(each.mid for each in seconds if each is not None)))
    if all(dollars):
        parts.append(show_dollars(sum(each.mid for each in dollars if each is not None)))
    message = ", ".join(parts) or " + ".join(show_seconds(each.head.forecast.step_seconds.mid) for each in answers)
    color = "red" if any(each.is_comparable and each.exceeded for each in answers) else "blue"
    return {"schemaVersion": 1, "label": "training", "message": message, "color": color}


def _headline(answer: Diff) -> str:
    if not answer.is_comparable:
        return "⚠️ **The base was forecast by another epochcast: limits are not checked.**"
    if answer.exceeded:
        return "\n".join(f"❌ **{limit.sentence}**" for limit in answer.exceeded)
    sign = "✅ within the limits: " if answer.allowed else ""
    change = answer.total_seconds or answer.step_seconds
    return f"{sign}**{signed(change.mid - 1)} time**, {answer.verdict}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    marks = ["---:" if side == "r" else "---" for side in sides]
    body = ["| " + " | ".join(_plain(cell) for cell in row) + " |" for row in rows]
    return ["| " + " | ".join(headings) + " |", "|" + "|".join(marks) + "|", *body]


def _plain(text: str) -> str:
    """Without what Markdown would read as its own: bars end cells, brackets begin tags, stars and lines emphasise."""
    for sign in ("\\", "|", "<", "*", "_", "`", "[", "#"):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
