import csv
from pathlib import Path

import pytest

pytest.importorskip("polars")
pytest.importorskip("scipy")

from studies.correction_factor import run


def rows(what: str) -> list[dict[str, str]]:
    with run.RESULT.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["what"] == what]


def error(what: str, column: str) -> float:
    pairs = [(float(row[column]), float(row["measured_ms"])) for row in rows(what)]
    return sum(abs(ours / theirs - 1) for ours, theirs in pairs) / len(pairs)


@pytest.mark.parametrize("what", run.CLAIMS)
def test_the_written_figures_meet_the_claims(what: str) -> None:
    assert error(what, "forecast_ms") < run.CLAIMS[what]


def test_dividing_by_one_and_a_half_errs_three_times_as_much() -> None:
    sums = rows("sum of measured layers")
    theirs = [abs(float(r["layers_ms"]) / 1.5 / float(r["measured_ms"]) - 1) for r in sums]
    assert sum(theirs) / len(theirs) > 2.5 * error("sum of measured layers", "left_out_ms")


def test_the_factor_is_forecast_without_a_measurement_of_the_network() -> None:
    errors = [abs(float(r["forecast_ratio"]) / float(r["measured_ratio"]) - 1) for r in rows("sum of measured layers")]
    assert sum(errors) / len(errors) < 0.06


def test_patch_camelyon_is_forecast_by_the_same_model() -> None:
    assert len(rows("forecast, mirrored, not measured here")) == 5


@pytest.mark.needs_data
@pytest.mark.slow
def test_the_shipped_host_figures_are_the_fitted_ones(data: Path) -> None:
    assert run.moved(run.fitted_stack(data)) == []
