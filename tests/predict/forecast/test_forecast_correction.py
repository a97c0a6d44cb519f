"""A corrected peak decides whether the job fits, in every place that says so."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import epochcast as ec
from epochcast.errors import UnknownName
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecast_correction import Corrected, correct
from epochcast.predict.memory.verdict import DOES_NOT_FIT, FITS, TIGHT
from epochcast.surfaces import render

GB = 10**9


@dataclass(frozen=True)
class Peak:
    """The past says how much memory a job needs."""

    low: float
    mid: float
    high: float
    told_by: str = "history"

    def corrected(self, forecast: Forecast, options: Mapping[str, Any]) -> Corrected:
        return Corrected("peak_bytes", Interval(self.low * GB, self.mid * GB, self.high * GB))


def table_of(answer: Forecast) -> str:
    out = StringIO()
    Console(file=out, width=120).print(render.forecast(answer))
    return out.getvalue()


@pytest.mark.parametrize(
    ("batch", "before", "peak", "after"),
    [
        (8, FITS, Peak(28, 30, 32), DOES_NOT_FIT),  # 30 GB on 16 GiB
        (8, FITS, Peak(14, 15, 18), TIGHT),
        (8, FITS, Peak(8, 9, 10), FITS),
        (512, DOES_NOT_FIT, Peak(8, 9, 10), FITS),
        (512, DOES_NOT_FIT, Peak(14, 15, 18), TIGHT),
    ],
)
def test_a_corrected_peak_decides_whether_the_job_fits_everywhere(
    batch: int, before: str, peak: Peak, after: str
) -> None:
    alone = ec.forecast("resnet50", device="V100", batch=batch)
    assert alone.memory_verdict == before
    answer = correct(alone, {}, peak)
    assert (answer.memory_verdict, answer.fits) == (after, after != DOES_NOT_FIT)
    assert answer.as_dict()["fits"] is answer.fits
    assert set(answer.answered_by) == {f"{name}, memory corrected by history" for name in alone.answered_by}
    assert answer.step_seconds == alone.step_seconds
    assert bool(answer.remedies()) <= (after == DOES_NOT_FIT)
    text = table_of(answer)
    assert f": {after.upper() if after == DOES_NOT_FIT else after}" in text
    assert ("what would fit" in text) == (after == DOES_NOT_FIT)
    again = Forecast.from_dict(json.loads(json.dumps(answer.as_dict())))
    assert (again.memory_verdict, again.fits) == (answer.memory_verdict, answer.fits)


def test_a_peak_above_what_the_driver_leaves_does_not_fit() -> None:
    alone = ec.forecast("resnet18", device="V100", batch=8)
    assert alone.memory_bytes is not None
    all_of_it = alone.memory_bytes / GB
    assert correct(alone, {}, Peak(all_of_it, all_of_it, all_of_it)).fits is False


def test_fits_follows_the_verdict_and_cannot_differ_from_it() -> None:
    own = Forecast("own", "V100", Interval(0.09, 0.1, 0.12))
    assert own.fits is None
    assert [replace(own, memory_verdict=word).fits for word in (FITS, TIGHT, DOES_NOT_FIT)] == [True, True, False]
    by_hand = {**own.as_dict(), "fits": False}
    assert Forecast.from_dict(by_hand).memory_verdict == DOES_NOT_FIT
    with pytest.raises(UnknownName, match="memory verdict"):
        replace(own, memory_verdict="perhaps")
