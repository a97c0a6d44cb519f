"""What a run cost, beside its forecast: forecast, tracked, billed and, where somebody says it, paid.

    tracked = running time of all attempts · dollars per hour
    billed  = time from the first report to the last, with what passed between attempts, in units of the seller's bill

What the tracked cost exceeds the forecast by is taken apart by time. With s steps done, e executed (steps that a
restart repeats count again), p seconds of a step shown and f forecast, of T seconds in all and F forecast for as many
steps,

    pace = s·(p − f)        restarts = (e − s)·p        rest = (T − F) − pace − restarts

where the rest is start-up, validation, checkpoints and pauses. A run that is not over is compared with the part of the
forecast that its steps are.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from epochcast.base.record import Record, json_key
from epochcast.decide.plan.billing import billing_of
from epochcast.errors import BadInput, InvalidField
from epochcast.interval import Interval
from epochcast.observe.runs.standing import Standing
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import RunRow
from epochcast.predict.forecast.forecast import Forecast
from epochcast.units import show_dollars

# A part of the forecast that is not worth a word.
NOTICED = 0.005


@dataclass(frozen=True, slots=True)
class BillPart(Record):
    """Why the run costs more (or less) than its forecast: `fraction` is of the forecast, `seconds` of running time."""

    cause: str
    seconds: float
    dollars: float
    fraction: float


@dataclass(frozen=True, slots=True)
class RunBill(Record):
    """Costs of one run in dollars; None where something is unknown. `expected_dollars` are those of the steps that are
    done, `forecast_dollars` of the whole run.
    """

    json_also: ClassVar[tuple[str, ...]] = ("sentence", "ratio")

    name: str = field(metadata=json_key("run"))
    state: str
    fraction: float | None
    dollars_per_hour: float
    price_source: str | None
    forecast_dollars: Interval
    expected_dollars: float
    tracked_dollars: float
    billed_dollars: float
    paid_dollars: float | None
    restarts: int
    parts: tuple[BillPart, ...]

    @property
    def ratio(self) -> float:
        """Tracked (or paid, where that is known) over expected."""
        return (self.tracked_dollars if self.paid_dollars is None else self.paid_dollars) / self.expected_dollars

    @property
    def sentence(self) -> str:
        """$41.20 of $38.90 forecast: 6 % by 1 restart."""
        cost, what = (self.tracked_dollars, "") if self.paid_dollars is None else (self.paid_dollars, " paid")
        done = "" if self.fraction in (None, 1.0) else f" for the {self.fraction:.0%} that is done".replace("%", " %")
        said = [_part(part) for part in self.parts if abs(part.fraction) >= NOTICED]
        reasons = f"; {', '.join(said)}" if said else ""
        return f"{show_dollars(cost)}{what} of {show_dollars(self.expected_dollars)} forecast{done}{reasons}"


def bill_of(store: Store, run: RunRow, paid_dollars: float | None = None) -> RunBill:
    """The bill of a run of the store. Raises where it has no forecast with a price, or has not shown its pace."""
    forecast = _forecast(store, run)
    standing = run.standing
    total, hourly = forecast.total_seconds, forecast.dollars_per_hour
    if total is None or hourly is None or forecast.dollars is None:
        raise BadInput(f"{run.name}: its forecast has no price or no length, so it has no cost to compare with")
    if standing is None or standing.elapsed_seconds <= 0:
        raise BadInput(f"{run.name}: it has no timed reports yet")
    running = standing.elapsed_seconds - standing.down_seconds
    fraction = standing.fraction
    expected_seconds = total.mid * fraction
    cloud = (forecast.price_source or "").partition(" ")[0]
    billed = billing_of(cloud).billed_seconds(standing.elapsed_seconds)
    return RunBill(
        name=run.name,
        state=run.state,
        fraction=fraction,
        dollars_per_hour=hourly,
        price_source=forecast.price_source,
        forecast_dollars=forecast.dollars,
        expected_dollars=expected_seconds * hourly / 3600,
        tracked_dollars=running * hourly / 3600,
        billed_dollars=billed * hourly / 3600,
        paid_dollars=paid_dollars,
        restarts=standing.restarts,
        parts=_parts(standing, running, expected_seconds, hourly / 3600),
    )


def optional_bill(store: Store, run: RunRow) -> RunBill | None:
    """The bill where there is one."""
    try:
        return bill_of(store, run)
    except BadInput:
        return None


def _forecast(store: Store, run: RunRow) -> Forecast:
    """The forecast of the run, or of its job."""
    stored = store.forecasts(run_id=run.id)
    if not stored and run.job_id is not None:
        stored = store.forecasts(job_id=run.job_id)
    if not stored:
        raise BadInput(f"{run.name}: there is no forecast of it; track it with --job, or --forecast")
    try:
        return Forecast.from_dict(stored[0].forecast)
    except InvalidField as error:
        raise BadInput(f"{run.name}: its forecast cannot be read: {error}") from None


def _parts(standing: Standing, running: float, expected: float, dollars_per_second: float) -> tuple[BillPart, ...]:
    """The equations above; only the rest where the run has not shown its steps."""
    shown, forecast = standing.shown, standing.forecast_step_seconds
    pace = repeated = 0.0
    if shown is not None and forecast is not None:
        pace = standing.step * (shown.step_seconds - forecast.mid)
        repeated = max(0.0, shown.executed_steps - standing.step) * shown.step_seconds
    rest = running - expected - pace - repeated
    restarts = f"{standing.restarts} restart{'s' * (standing.restarts != 1)}" if standing.restarts else "repeated steps"
    parts = (
        ("slower steps" if pace > 0 else "faster steps", pace),
        (restarts, repeated),
        ("start-up, validation and pauses", rest),
    )
    return tuple(
        BillPart(cause, seconds, seconds * dollars_per_second, seconds / expected)
        for cause, seconds in parts
        if seconds
    )


def _part(part: BillPart) -> str:
    return f"{100 * part.fraction:+.0f} % by {part.cause}"
