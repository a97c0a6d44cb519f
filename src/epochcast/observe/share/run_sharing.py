"""What of a measured run is shared. `measure.shared` has the form of the file, and what it refuses.

Settings that nobody said are shared as they were assumed, with their names, so that a later version which assumes
others still knows what was compared.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.host_device import is_host
from epochcast.interval import Interval
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.models_bench import reference_of
from epochcast.measure.bench.torch_device import device_type
from epochcast.measure.shared.shared_run import BENCH, CHECK, CPU, TRACK, SharedMachine, SharedRun, shared_options
from epochcast.observe.check.observation import Observation
from epochcast.observe.check.observed_log import observed_reports
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import Placement, placed
from epochcast.predict.forecast.session import Session

if TYPE_CHECKING:
    from epochcast.observe.store.store import Store

_NINETY = 1.645
_FRAMEWORKS = {"torch": "pytorch", "keras": "tensorflow"}
_SOFTWARE = ("torch", "tensorflow", "keras", "numpy", "torchvision", "transformers")


def shared_observation(
    job: Job, placement: Placement, observation: Observation, session: Session, **about: Any
) -> SharedRun:
    """The run that somebody observed; `about` are further fields of it."""
    forecast = forecast_job(job, placement, session)
    device, is_cpu = placement.device, is_host(placement.device)
    settings = forecast.details.job
    return SharedRun(
        **{"origin": CHECK, **_today(), **about},
        seen=observation.source,
        job=shared_options(settings),
        device=CPU if is_cpu else device.name,
        step_seconds=observation.step_seconds(forecast),
        gpus=placement.gpus,
        nodes=placement.nodes,
        strategy=placement.strategy.name if placement.gpus > 1 else None,
        steps=observation.signs.steps,
        data_fraction=observation.signs.data_fraction,
        pause_fraction=observation.signs.pause_fraction,
        assumed=tuple(name for name in forecast.assumed if name in shared_options(settings)),
        machine=SharedMachine(device.name, device.compute_units) if is_cpu else SharedMachine(),
    )


def shared_stored(store: "Store", name: str, session: Session, **about: Any) -> SharedRun:
    """The run of this name in a store. Its job and device must have been said when it was tracked."""
    run = store.run(name)
    if run.job_id is None or run.device is None:
        raise BadInput(
            f"the store does not know the job and device of {name!r}: track it with --job, or share its log with the "
            "model and options: epochcast share LOG MODEL --device …"
        )
    row = store.job(run.job_id)
    options = {option: value for option, value in row.job.items() if value is not None}
    observation = observed_reports(store.observations(run.id), name)
    device_gpus = run.gpus * run.nodes
    job = Job.from_dict(options)
    placement = placed(find_device(run.device), device_gpus, run.nodes)
    return shared_observation(job, placement, observation, session, **{"origin": TRACK, **about})


def shared_measurement(row: Measurement, **about: Any) -> SharedRun:
    """A training step that `epochcast bench models` measured."""
    ask, facts = row.question, row.machine.facts
    if row.kind != "model" or row.seconds is None or ask.get("part", "step") != "step":
        raise BadInput(f"{row.key} is no measured training step")
    reference, shape = reference_of(ask)
    recipe = dict(ask["recipe"])
    names = ("batch", "precision", "optimizer", "mode", "channels_last", "accumulate")
    options = {name: recipe[name] for name in names if recipe.get(name) is not None}
    framework = _FRAMEWORKS.get(str(ask.get("backend")), "pytorch")
    job = Job(reference, input_shape=shape, framework=framework, **options)
    is_cpu = device_type(str(facts.get("device", CPU))) == CPU
    half = _NINETY * (row.spread or 0.0) / 2 * row.seconds
    low = min(row.seconds, max(row.seconds / 2, row.seconds - half))
    return SharedRun(
        **{"origin": BENCH, **_today(), **about},
        seen=BENCH,
        job=shared_options(job),
        device=CPU if is_cpu else str(facts["gpu"]),
        step_seconds=Interval(low, row.seconds, row.seconds + half),
        steps=float(row.repeats),
        peak_bytes=row.peak_bytes,
        software=_software(facts),
        machine=SharedMachine(facts.get("cpu"), facts.get("cores"), facts.get("threads")),
    )


def _today() -> dict[str, str]:
    return {"measured_in": f"{datetime.now(UTC):%Y-%m}", "epochcast": version("epochcast")}


def _software(facts: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(facts[name]) for name in _SOFTWARE if facts.get(name)}
