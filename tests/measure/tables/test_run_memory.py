"""What rows say of their memory, in the words that people use."""

from typing import Any

import pytest

from epochcast.measure.tables.run_memory import UNSTATED, left_open, measured_memory
from epochcast.predict.memory.memory_kinds import ALLOCATED, ON_DEVICE, RESERVED

GIB = 2**30


def memory_of(note: str, gib: float = 10.0, **cells: Any) -> Any:
    return measured_memory({"peak_memory_gib": gib, "note": note, **cells})


@pytest.mark.parametrize(
    ("note", "gib"),
    [
        ("fits in 24 GB", 24.0),
        ("fits on a 24GB card", 22.35),  # 24e9 bytes in GiB
        ("runs on ~16 GB", 16.0),
        ("needs at least 16 GB of VRAM", 16.0),
        ("r=16, < 12 GB", 12.0),
        ("under 8 GB", 8.0),
    ],
)
def test_what_a_run_fits_in_is_no_peak(note: str, gib: float) -> None:
    memory = memory_of(note, gib)
    assert memory.peak_bytes is None
    assert not memory.ran_out


def test_a_bound_on_another_number_leaves_the_peak() -> None:
    """OpenVLA's page: batch 16 takes about 72 GB, batch 1 at least 27."""
    assert memory_of("'~72 GB'; batch 1 'at least ~27 GB'", 72.0).peak_bytes == 72 * GIB


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ({"note": "12.23 GB allocated as printed"}, ALLOCATED),
        ({"note": "peak = reserved max"}, RESERVED),
        ({"note": "memory 35.07 % of 32 GB"}, ON_DEVICE),
        ({"source": "pytorch/ao torchao/optim/README.md"}, ALLOCATED),
        ({"framework": "torchtitan FSDP2"}, RESERVED),
        ({"framework": "transformers"}, UNSTATED),
        ({"memory_kind": "nvidia-smi", "framework": "torchtitan"}, ON_DEVICE),
    ],
)
def test_which_number_a_row_means(cells: dict[str, Any], kind: str) -> None:
    assert memory_of(**{"note": "", **cells}).kind == kind


def test_what_a_row_leaves_out_is_named() -> None:
    notes = (
        "the layers of LoRA are not given: attention is assumed",
        "the framework foo is not known and answered as pytorch",
    )
    assert left_open({"precision": "bf16"}, notes) == ("options",)
    assert left_open({}, ()) == ("precision",)
