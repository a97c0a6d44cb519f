"""Notes under an answer: sentences with one order of importance; like ones are merged.

A note is a text, so that `warnings` of an answer are texts in JSON and in Python. A plain text counts as `ASSUMED`.
"""

from collections.abc import Iterable
from enum import IntEnum


class Importance(IntEnum):
    """How a note changes what the reader does, the most urgent first."""

    NOT_AS_ASKED = 0
    """The job cannot run so, or the answer is for something else than was asked."""
    LIMIT = 1
    """Something slows the job down, and can be changed."""
    EVIDENCE = 2
    """How far the numbers can be trusted."""
    ASSUMED = 3
    """What was taken where nobody said."""
    DETAIL = 4
    """Background, for those who ask for it."""


class Note(str):
    """A note. Notes with the same `many` become one sentence: `{count}` and `{names}` in it are those of `about`."""

    importance: Importance
    about: str
    many: str

    def __new__(
        cls, text: str, importance: Importance = Importance.ASSUMED, *, about: str = "", many: str = ""
    ) -> "Note":
        note = super().__new__(cls, text)
        note.importance, note.about, note.many = importance, about, many
        return note

    def of(self, name: str) -> "Note":
        """The same note, said of a named part of the answer; one that is about nothing else is about that part."""
        many = f"{name}: {self.many}" if self.many and self.about else self.many
        return Note(f"{name}: {self}", self.importance, about=self.about or name, many=many)


def as_note(text: str) -> Note:
    """A text as a note."""
    return text if isinstance(text, Note) else Note(text)


def ranked(texts: Iterable[str]) -> tuple[Note, ...]:
    """Notes by importance; equal ones once, those that say the same of different things as one."""
    alike: dict[str, list[Note]] = {}
    for note in map(as_note, dict.fromkeys(texts)):
        alike.setdefault(note.many or note, []).append(note)
    return tuple(sorted(map(_merged, alike.values()), key=lambda note: note.importance))


def _merged(notes: list[Note]) -> Note:
    first = notes[0]
    names = list(dict.fromkeys(note.about for note in notes))
    if len(names) == 1:
        return first
    return Note(first.many.format(count=len(names), names=", ".join(names)), first.importance)
