"""Forecasts as assertions of a test suite, so that a change that makes training dearer fails a test.

    def test_training_stays_cheap() -> None:
        ec.testing.assert_forecast("job:imagenet", max_dollars=200, max_seconds=12 * 3600)

A limit is compared with the middle of the forecast, or with its high end where `sure=True`: then 90 % of such jobs
stay within it.

>>> import epochcast as ec
>>> answer = ec.testing.assert_forecast("resnet18", device="V100", batch=32, max_step_seconds=1)
>>> answer.fits
True
"""

from collections.abc import Callable
from typing import Any

from epochcast import api
from epochcast.base.options import checked
from epochcast.decide.diff.side_reference import JOB, DiffQuestion, job_for
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.job_defaults import placement_of
from epochcast.predict.forecast.session import Session
from epochcast.units import show_bytes, show_dollars, show_seconds

__all__ = ["assert_forecast"]

Limit = tuple[str, Interval | None, float | None, Callable[[float], str]]


def assert_forecast(
    job: object,
    *,
    max_seconds: float | None = None,
    max_dollars: float | None = None,
    max_bytes: float | None = None,
    max_step_seconds: float | None = None,
    sure: bool = False,
    session: Session | None = None,
    **options: Any,
) -> Forecast:
    """Raise an AssertionError that says what exceeds its limit and by how much; else the forecast.

    `job` is a model, a `Job`, or "job:NAME" of the nearest job file; `options` are those of `Job` and `Where`. A limit
    on what cannot be forecast (the cost of a device without a price, the time of a job without data) is refused.
    """
    forecast = _forecast(job, options, session)
    limits: tuple[Limit, ...] = (
        ("time", forecast.total_seconds, checked("max_seconds", float, max_seconds, above=0), show_seconds),
        ("cost", forecast.dollars, checked("max_dollars", float, max_dollars, above=0), show_dollars),
        ("memory", forecast.peak_bytes, checked("max_bytes", float, max_bytes, above=0), show_bytes),
        ("step", forecast.step_seconds, checked("max_step_seconds", float, max_step_seconds, above=0), show_seconds),
    )
    if all(most is None for _, _, most, _ in limits):
        raise BadInput("assert_forecast needs a limit: max_seconds, max_dollars, max_bytes or max_step_seconds")
    over = [line for line in (_over(*limit, sure=sure) for limit in limits) if line]
    if over:
        where = f"{forecast.model} on {forecast.gpus} × {forecast.device}, batch {forecast.batch_per_gpu} per GPU"
        raise AssertionError("\n".join([f"{where}:", *(f"    {line}" for line in over)]))
    return forecast


def _forecast(job: object, options: dict[str, Any], session: Session | None) -> Forecast:
    if isinstance(job, str) and job.startswith(JOB):
        read_job, where, _ = job_for(job, DiffQuestion(options))
        session = session or Session()
        return forecast_job(read_job, placement_of(where, read_job, session), session)
    config = None if isinstance(job, Job) else ()
    return api.forecast(job, config=config, session=session, **options)


def _over(
    quantity: str, number: Interval | None, most: float | None, show: Callable[[float], str], *, sure: bool
) -> str:
    if most is None:
        return ""
    if number is None:
        raise BadInput(f"the {quantity} of this job is unknown: give a dataset or samples, and a device with a price")
    value = number.high if sure else number.mid
    if value <= most:
        return ""
    shown = f"{show(value)} (90 % interval {show(number.low)} … {show(number.high)})"
    return f"{quantity} {shown}, {100 * (value / most - 1):.0f} % more than the allowed {show(most)}"
