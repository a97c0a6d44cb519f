"""Rows of face recognition: the identities are in the note."""

import pytest

from epochcast.errors import BadInput
from epochcast.measure.tables.face_rows import face_reference
from epochcast.measure.tables.run_table import read_runs


@pytest.mark.parametrize(
    ("note", "options"),
    [
        ("WebFace600K 618K classes, head split over the GPUs (partial FC ×)", "classes=618000,ranks=8,sampled=1"),
        ("WebFace40M 2 Millions classes, (partial FC √)", "classes=2000000,ranks=8,sampled=0.1"),
        ("Virtual 50M classes, (partial FC 0.2)", "classes=50000000,ranks=8,sampled=0.2"),
    ],
)
def test_the_head_is_read_from_the_note(note: str, options: str) -> None:
    assert face_reference("iresnet50", note, 8) == f"arcface:iresnet50,{options}"


def test_other_networks_have_no_such_head() -> None:
    assert face_reference("resnet50", "618K classes", 8) is None


def test_a_row_without_its_classes_is_refused() -> None:
    with pytest.raises(BadInput, match="iresnet50: the row does not say how many classes its head has"):
        face_reference("iresnet50", "", 8)


def test_a_row_becomes_a_run_with_its_head() -> None:
    row = {
        "model": "iresnet50",
        "device": "V100",
        "gpus": 8,
        "batch_per_gpu": 64,
        "input_shape": "3x112x112",
        "note": "WebFace600K 618K classes",
        "step_seconds": 0.2,
    }
    (run,), failures = read_runs([row])
    assert not failures
    assert run.reference == "arcface:iresnet50,classes=618000,ranks=8,sampled=1"
