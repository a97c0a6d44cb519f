"""The margins of intervals, fitted to steps that were drawn."""

import tomllib

import numpy as np
import pytest

pytest.importorskip("polars")
pytest.importorskip("scipy")
pytest.importorskip("torch")

import polars as pl

from epochcast.interval import Interval
from epochcast.predict.forecast.step_margins import StepMargin, widened
from studies.accuracy.margins import scored, without_margin, without_own_source
from training.step_margins import GROUPS, LEAST_SOURCES, MOST_MARGIN, TOML, fitted_margins, toml

PRODUCTS = "products, one GPU"
SOURCES, STEPS = 60, 30


def drawn(
    deviation: float, *, group: str | None = PRODUCTS, sources: int = SOURCES, shift: float = 0.0
) -> pl.DataFrame:
    """Steps whose logarithmic errors are normal, beside an interval of ±1.645 · 0.2."""
    errors = shift + deviation * np.random.default_rng(0).standard_normal(sources * STEPS)
    end = 1.645 * 0.2
    return pl.DataFrame(
        {
            "source": [f"source {place // STEPS:02}" for place in range(len(errors))],
            "device": "H100",
            "group": [group] * len(errors),
            "is_forecast": True,
            "measured_seconds": np.exp(errors),
            "low_seconds": np.exp(-end),
            "predicted_seconds": 1.0,
            "high_seconds": np.exp(end),
        }
    )


def held(steps: pl.DataFrame) -> float:
    inside = (pl.col("low_seconds") <= pl.col("measured_seconds")) & (
        pl.col("measured_seconds") <= pl.col("high_seconds")
    )
    return float(steps.select(inside.mean()).item())


def fitted(steps: pl.DataFrame) -> tuple[float, float]:
    return fitted_margins(scored(steps))[PRODUCTS]


def test_intervals_that_hold_get_hardly_a_margin() -> None:
    assert fitted(drawn(0.19)) == pytest.approx((0.0, 0.0), abs=0.1)


def test_a_margin_makes_90_percent_hold() -> None:
    steps = drawn(0.4)
    assert max(fitted(steps)) > 0.4
    assert held(without_own_source(steps, steps)) == pytest.approx(0.9, abs=0.02)


def test_steps_that_take_longer_than_forecast_move_the_upper_end() -> None:
    below, above = fitted(drawn(0.2, shift=0.3))
    assert below == 0
    assert above > 0.3


def test_a_hopeless_group_is_not_widened_forever() -> None:
    assert fitted(drawn(9.0)) == pytest.approx((MOST_MARGIN, MOST_MARGIN))


def test_a_group_of_few_sources_takes_those_of_the_same_work() -> None:
    several = "products, several nodes"
    few = drawn(0.6, group=several, sources=LEAST_SOURCES - 1)
    margins = fitted_margins(scored(pl.concat([drawn(0.2), few])))
    enough = fitted_margins(scored(pl.concat([drawn(0.2), drawn(0.6, group=several, sources=LEAST_SOURCES)])))
    assert max(margins[several]) < 0.3 < max(enough[several])


def test_a_gpu_that_is_not_known_has_no_smaller_a_margin() -> None:
    node, known = "products, one node", "products, one node, GPU known"
    margins = fitted_margins(scored(pl.concat([drawn(0.4, group=known), drawn(0.1, group=node)])))
    assert min(end - by for end, by in zip(margins[node], margins[known], strict=True)) >= 0
    margins = fitted_margins(scored(pl.concat([drawn(0.19, group=known), drawn(0.4, group=node)])))
    assert max(margins[known]) < 0.1 < max(margins[node])


def test_a_source_does_not_set_its_own_margin() -> None:
    odd = drawn(1.0, sources=1).with_columns(source=pl.lit("odd"))
    steps = pl.concat([drawn(0.2, sources=12), odd])
    each = without_own_source(steps, steps)
    assert held(each.filter(pl.col("source") == "odd")) < 0.5
    assert held(each.filter(pl.col("source") != "odd")) > 0.85


def test_a_margin_can_be_taken_away() -> None:
    bare, margin = Interval(0.5, 1.0, 3.0), StepMargin(0.4, 0.6)
    back = without_margin(widened(bare, margin), margin)
    assert (back.low, back.high) == pytest.approx((0.5, 3.0))


def test_forward_passes_get_no_margin() -> None:
    steps = drawn(0.4, group=None).cast({"group": pl.String})
    ends = ["low_seconds", "high_seconds"]
    assert without_own_source(steps, steps).select(ends).to_numpy() == pytest.approx(steps.select(ends).to_numpy())


def test_the_file_has_every_fitted_group() -> None:
    steps = scored(drawn(0.4))
    margins = fitted_margins(steps)
    written = {row["name"]: row for row in tomllib.loads(toml(margins, steps))["group"]}
    assert set(written) == set(margins) <= set(GROUPS)
    assert written[PRODUCTS]["above"] == pytest.approx(margins[PRODUCTS].above, abs=1e-3)
    assert (written[PRODUCTS]["rows"], written[PRODUCTS]["sources"]) == (SOURCES * STEPS, SOURCES)


def test_every_group_has_a_margin_in_the_shipped_file() -> None:
    rows = tomllib.loads(TOML.read_text(encoding="utf-8"))["group"]
    assert [row["name"] for row in rows] == list(GROUPS)
    assert [row for row in rows if not (0 <= row["below"] <= 1.1 and 0 <= row["above"] <= 1.1)] == []
