"""At most three notes under an answer; the others where they are asked for."""

from io import StringIO

import pytest
from rich.console import Console, Group, RenderableType

import epochcast as ec
from epochcast.base.notes import Importance, Note
from epochcast.surfaces.render.notes_view import MOST_NOTES, Notes, with_notes
from epochcast.surfaces.render.shown_notes import Shown, showing

FIVE = (*(f"note {place}" for place in range(4)), Note("a detail", Importance.DETAIL))
CLI = Shown(notes_hint="--explain", spelled=str.upper)


def lines(drawing: RenderableType, settings: Shown = CLI) -> list[str]:
    console = Console(width=80, file=StringIO())
    with showing(settings):
        console.print(drawing)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_three_are_shown_and_the_others_counted() -> None:
    assert lines(Notes(FIVE)) == ["note: NOTE 0", "note: NOTE 1", "note: NOTE 2", "2 more notes: --explain"]
    assert lines(Notes(FIVE[:3])) == ["note: NOTE 0", "note: NOTE 1", "note: NOTE 2"]
    assert lines(Notes(())) == []


def test_a_detail_is_shown_to_those_who_ask() -> None:
    assert lines(Notes(FIVE[-1:])) == ["1 more note: --explain"]
    assert lines(Notes(FIVE), Shown(all_notes=True)) == [f"note: {text}" for text in FIVE]


def test_without_an_option_nothing_is_said_of_it() -> None:
    assert lines(Notes(FIVE), Shown(notes_hint=""))[-1] == "note: note 2"
    assert lines(Notes(FIVE), Shown())[-1] == "2 more notes: answer.warnings"


@pytest.mark.parametrize("nested", [False, True])
def test_more_notes_join_those_of_the_answer(nested: bool) -> None:
    answer = Group("table", Notes(FIVE[:2]))
    drawing = with_notes(Group(answer, "below") if nested else answer, ["read from a file", "another"])
    expected = ["table", "note: NOTE 0", "note: NOTE 1", "note: READ FROM A FILE", "1 more note: --explain"]
    assert lines(drawing) == [*expected, *(["below"] if nested else [])]
    assert lines(with_notes("table", ["read"])) == ["table", "note: READ"]
    assert with_notes(answer, ()) is answer


def test_a_forecast_in_a_notebook_says_where_its_other_notes_are() -> None:
    answer = ec.forecast("resnet50", device="MI300X", batch=256, gpus=16, nodes=2, precision="amp")
    assert len(answer.warnings) > MOST_NOTES
    shown = [line for line in lines(answer, Shown()) if line.startswith("note: ")]
    assert len(shown) == MOST_NOTES
    assert "1 more note: answer.warnings" in "\n".join(lines(answer, Shown()))
