"""Notes: their order, and like ones as one."""

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import epochcast as ec
from epochcast.base.notes import Importance, Note, as_note, ranked

MANY = "{count} GPUs have no measurements: {names}."


def unmeasured(name: str) -> Note:
    return Note(f"No measurements for {name}.", Importance.EVIDENCE, about=name, many=MANY)


def test_like_notes_become_one_sentence() -> None:
    assert ranked(map(unmeasured, ["RTX 5080", "MI300X", "RTX 5080", "B300"])) == (
        "3 GPUs have no measurements: RTX 5080, MI300X, B300.",
    )
    assert ranked([unmeasured("B300"), unmeasured("B300")]) == ("No measurements for B300.",)


def test_of_several_notes_about_one_thing_the_first_is_kept() -> None:
    one, other = (Note(f"needs {n}", about="V100", many="{count}: {names}") for n in (1, 2))
    assert ranked([one, other]) == ("needs 1",)


def test_what_changes_the_answer_comes_first_and_plain_texts_are_assumptions() -> None:
    notes = [Note("sheet", Importance.DETAIL), "assumed", unmeasured("B300"), Note("frozen", Importance.NOT_AS_ASKED)]
    assert ranked(notes) == ("frozen", "No measurements for B300.", "assumed", "sheet")


def test_a_note_of_a_part_keeps_what_it_is_about() -> None:
    of_head = unmeasured("B300").of("head")
    assert of_head == "head: No measurements for B300." and of_head.importance is Importance.EVIDENCE
    assert ranked([of_head, unmeasured("T4").of("head"), unmeasured("T4").of("base")]) == (
        "head: 2 GPUs have no measurements: B300, T4.",
        "base: No measurements for T4.",
    )
    silent = Note("nothing new", many="{count} logs are silent: {names}")
    assert ranked([silent.of("a.log"), silent.of("b.log")]) == ("2 logs are silent: a.log, b.log",)


def test_a_note_is_a_text_that_survives_a_pickle() -> None:
    note = unmeasured("B300")
    again = pickle.loads(pickle.dumps(note))
    assert json.loads(json.dumps([note])) == [str(note)]
    assert again == note and (again.importance, again.about, again.many) == (note.importance, "B300", MANY)


@given(st.lists(st.builds(Note, st.text(), st.sampled_from(Importance))))
def test_no_note_is_lost_or_doubled(notes: list[Note]) -> None:
    found = ranked(notes)
    assert set(found) == set(notes) and len(found) == len(set(notes))
    assert [note.importance for note in found] == sorted(note.importance for note in found)
    assert ranked(found) == found


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"model": "resnet50", "device": "T4", "precision": "bf16", "batch": 256}, "T4 has no bf16 arithmetic"),
        (
            {"model": "resnet50", "device": "H100", "precision": "amp_bf16", "batch": 256},
            "Data loading may limit this job",
        ),
        ({"model": "gpt2", "device": "RTX 5080", "batch": 8}, "No measurements for RTX 5080"),
    ],
)
def test_the_note_that_matters_most_is_first(options: dict[str, Any], first: str) -> None:
    answer = ec.forecast(**options)
    assert ranked(answer.warnings)[0].startswith(first)
    assert all(isinstance(note, Note) for note in map(as_note, answer.warnings))
