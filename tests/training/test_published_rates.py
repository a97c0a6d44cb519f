"""The file of published rates is what its script writes from the measurements; slips of the tables stay out."""

import os
from pathlib import Path

import pytest

from epochcast.base import catalogue_rows as rows
from epochcast.hardware import published_rates
from epochcast.hardware.published_rates import FILE
from training.published_rates import fractions, published, written

DATA = Path(os.environ.get("EPOCHCAST_DATA", "no such directory"))


def row(device: str, math: str, flops_per_second: float, bytes_per_second: float | None = None) -> dict[str, object]:
    return {
        "source": "a test",
        "device": device,
        "dtype": math,
        "flops_per_second": flops_per_second,
        "bytes_per_second": bytes_per_second,
    }


def test_the_median_and_the_range_of_several_sources_are_kept() -> None:
    dropped: list[str] = []
    rates = list(published([row("T4", "fp16", f) for f in (13e12, 26e12, 52e12)], dropped))
    (by_math,) = fractions(rates, dropped).values()
    assert by_math["fp16"][:3] == pytest.approx((0.4, 0.2, 0.8))
    assert dropped == []


def test_what_is_above_the_peak_emulated_or_of_no_known_device_is_left_out_and_named() -> None:
    dropped: list[str] = []
    rows_given = [row("T4", "fp16", 66e12, 400e9), row("T4", "bf16", 2e12), row("Apple M1 CPU", "fp32", 8e11)]
    assert fractions(list(published(rows_given, dropped)), dropped) == {}
    assert [line.split(" (")[0] for line in dropped] == ["T4 bf16", "Apple M1 CPU fp32", "T4 fp16", "T4 bandwidth"]


@pytest.mark.needs_data
@pytest.mark.skipif(not DATA.is_dir(), reason="EPOCHCAST_DATA names no directory with the measurements")
def test_the_shipped_file_is_what_the_script_writes() -> None:
    pytest.importorskip("polars", reason="reading the measurements needs polars")
    text, dropped = written(DATA)
    assert text == rows.shipped(FILE, published_rates.__file__)
    assert len(dropped) < 40
