"""What `epochcast track` keeps in a store, and what past runs tell it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epochcast.observe.runs.run_prior import Past, Prior
    from epochcast.observe.store.store import Store
    from epochcast.observe.store.stored_run import StoredRun
    from epochcast.predict.forecast.forecast import Forecast
    from epochcast.predict.forecast.job_file import NamedJob


@dataclass(frozen=True, slots=True)
class StoredTracking:
    """A run of the store, and what past runs say of it."""

    run: "StoredRun"
    prior: "Prior | None"
    past: "Past | None"


@dataclass(frozen=True, slots=True)
class Keeper:
    """An open store, and the name to keep a run under; None: each under the path of its log."""

    store: "Store"
    name: str | None

    def tracking(self, path: Path, job: "NamedJob | None", forecast: "Forecast | None") -> StoredTracking:
        """The run of a log, made where it is new."""
        from epochcast.observe.runs.report import LONGEST_NAME
        from epochcast.observe.runs.run_prior import past_prior
        from epochcast.observe.store.past_runs import past_of
        from epochcast.observe.store.store_rows import RunPlace
        from epochcast.observe.store.stored_run import StoredRun

        place = RunPlace() if forecast is None else RunPlace(forecast.device, forecast.gpus, forecast.nodes)
        source = str(path.absolute())
        run = self.store.open_run(
            self.name or source[-LONGEST_NAME:],
            job=None if job is None else job.job,
            job_name=None if job is None else job.name,
            place=place,
            source=source,
        )
        following = StoredRun(self.store, run)
        following.expect(forecast)
        past = None if job is None else past_of(self.store, job.job.as_dict(), place, but=run.id)
        return StoredTracking(following, past_prior(past, forecast), past)


@contextmanager
def keeping(database: str | None, name: str | None, is_asked: bool) -> Iterator[Keeper | None]:
    """A keeper while a command runs, where one is asked for."""
    if not is_asked:
        yield None
        return
    from epochcast.observe.store.store_opening import open_store

    with open_store(database) as store:
        yield Keeper(store, name)


@contextmanager
def patient(tracking: StoredTracking | None) -> Iterator[None]:
    """Meanwhile reports wait for a store that is locked or away; at the end it has to be there."""
    if tracking is None:
        yield
        return
    tracking.run.is_patient = True
    yield
    tracking.run.is_patient = False
    tracking.run.flush()
