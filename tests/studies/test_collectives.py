import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.collectives.fit import MEDIA, fit, row_weights
from studies.collectives.law import seconds, shipped, table
from studies.collectives.rows import COLLECTIVES, Measured, measured, size_ratios
from studies.collectives.run import FORECASTS, figures, nominal_ring, scores

SIZES = (512.0, 65536.0, 1048576.0, 33554432.0, 1073741824.0)


def made(link: str, ranks: tuple[int, ...], factor: float = 1.0) -> list[Measured]:
    """Rows as the shipped constants would have them, times a factor."""
    found = []
    for collective in COLLECTIVES:
        for count in ranks:
            for size_bytes in SIZES:
                row = Measured("made", link, "", collective, count, size_bytes, 1.0)
                took = factor * FORECASTS[collective](size_bytes, row.group)
                found.append(Measured("made", link, "", collective, count, size_bytes, took))
    return found


@pytest.mark.parametrize("medium", MEDIA)
def test_the_law_over_arrays_is_that_of_the_package(medium: str) -> None:
    rows = [row for link in MEDIA[medium] for row in made(link, (2, 3, 4, 8))]
    columns = table(rows)
    assert seconds(columns, shipped(medium, columns.links)) == pytest.approx(columns.seconds, rel=1e-12)


def test_a_slower_wire_is_found_again() -> None:
    """Rows 1.5 times as slow in all: large messages give two thirds of the rate."""
    found = fit("pcie", made("pcie5", (2, 4, 8), factor=1.5))
    as_shipped = shipped("pcie", ["pcie5"])
    assert found["pcie5.rate"] == pytest.approx(as_shipped["pcie5.rate"] / 1.5, rel=0.1)


def test_a_link_without_rows_has_the_mean_of_the_others() -> None:
    found = fit("nvlink", made("nvswitch2", (2, 4, 8)))
    assert found["nvswitch4.rate"] == pytest.approx(found["nvswitch2.rate"])


def test_no_long_table_outvotes_the_others() -> None:
    few = [Measured("a", "nvswitch2", "", "all_reduce", 8, 2e6, 1.0)]
    many = [Measured("b", "nvswitch2", "", "all_reduce", 8, 2e6, 1.0)] * 9
    weights = row_weights([*few, *many])
    assert weights[0] == pytest.approx(weights[1:].sum())


def test_rows_are_scored_with_their_system_left_out() -> None:
    rows = [*made("nvswitch2", (2, 8)), *made("nvswitch3", (2, 8))]
    others = [replace(row, system="other", seconds=2 * row.seconds) for row in rows]
    alone, both = scores("nvlink", rows), scores("nvlink", [*rows, *others])
    assert all(one.system_left_out is None and one.link_left_out is not None for one in alone)
    large = [one for one in both if one.row.size_bytes == SIZES[-1]]
    assert all((one.system_left_out or 0.0) > 1.5 * one.row.seconds for one in large if one.row.system == "made")
    assert all((one.system_left_out or 9.9) < 0.7 * one.row.seconds for one in large if one.row.system == "other")
    scored = alone
    cells = list(figures(scored))
    assert sum(cell.rows for cell in cells) == len(rows)
    assert max(cell.shipped for cell in cells) == pytest.approx(0.0, abs=1e-9)


def test_the_nominal_ring_has_the_rate_of_the_data_sheet() -> None:
    """A gigabyte over eight A100s: 14/8 of it at 300 GB/s; half of that for a gather."""
    whole, half = (
        nominal_ring(Measured("a", "nvswitch2", "", name, 8, 1e9, 1.0)) for name in ("all_reduce", "all_gather")
    )
    assert whole == pytest.approx(1.75 / 300, rel=0.05)
    assert half == pytest.approx(whole / 2)


@pytest.mark.skipif("EPOCHCAST_DATA" not in os.environ, reason="needs the measurements of EPOCHCAST_DATA")
def test_both_tables_mean_the_same_bytes() -> None:
    ratios = size_ratios(measured(Path(os.environ["EPOCHCAST_DATA"])))
    as_bytes, as_values = (np.array([row[place] for row in ratios]) for place in (4, 5))
    assert (np.abs(np.log(as_values)) < np.abs(np.log(as_bytes))).all()
    assert 0.75 < np.median(as_values) < 1.1
