"""Notes under an answer: the three that matter most, and where the others are."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from epochcast.base.notes import Importance, ranked
from epochcast.surfaces.render.shown_notes import shown

MOST_NOTES = 3
"""So many are drawn; `--explain` and the `warnings` of an answer have all."""


@dataclass(frozen=True)
class Notes:
    """The notes of an answer; which of them are drawn is decided when they are."""

    texts: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        settings, notes = shown(), ranked(self.texts)
        urgent = [note for note in notes if note.importance < Importance.DETAIL]
        drawn = notes if settings.all_notes else urgent[:MOST_NOTES]
        yield from (Text(f"note: {settings.spelled(note)}", style="dim") for note in drawn)
        more = len(notes) - len(drawn)
        if more and settings.notes_hint:
            yield Text(f"{more} more note{'s' if more > 1 else ''}: {settings.notes_hint}", style="dim")


def with_notes(drawing: RenderableType, texts: Sequence[str]) -> RenderableType:
    """A drawing with more notes: among its last ones, or below it where it has none."""
    if not texts:
        return drawing
    return _joined(drawing, tuple(texts)) or Group(drawing, Notes(tuple(texts)))


def _joined(drawing: RenderableType, texts: tuple[str, ...]) -> RenderableType | None:
    if isinstance(drawing, Notes):
        return Notes((*drawing.texts, *texts))
    if isinstance(drawing, Group):
        pieces = list(drawing.renderables)
        for place in reversed(range(len(pieces))):
            joined = _joined(pieces[place], texts)
            if joined is not None:
                return Group(*pieces[:place], joined, *pieces[place + 1 :])
    return None
