"""Fitting to runs that users shared: profiles of devices, and further steps for the model of this machine.

Every device of the catalogue that ran something gets the correction of `epochcast calibrate`. Runs on a processor
cannot correct another one; those that `epochcast bench` measured on this machine's join its own measured steps.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epochcast.base.record import Record
from epochcast.describe.graph.serialization import recipe_to_json
from epochcast.errors import EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.measure.fit.calibrate import Calibration, calibrate_runs
from epochcast.measure.shared.shared_run import BENCH, CPU, SharedRun, shared_in
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.cost.cost_model import CostModel

_BACKENDS = {"pytorch": "torch", "tensorflow": "keras"}


@dataclass(frozen=True)
class SharedFit(Record):
    """The profiles of devices, and the files that were not used, with the reason."""

    profiles: tuple[Calibration, ...]
    unused: tuple[str, ...] = ()


def fit_shared(folder: Path, cost_model: CostModel, *, date: str) -> SharedFit:
    """A profile of every device of the catalogue that has runs in the folder."""
    by_device: dict[str, list[MeasuredRun]] = defaultdict(list)
    names: list[str] = []
    unused: list[str] = []
    for name, shared in shared_in(folder).items():
        if shared.device == CPU:
            unused.append(f"{name}: a run on a processor corrects that machine alone; fit it with its measurements")
            continue
        run = shared.measured(len(names))
        names.append(name)
        by_device[run.device.name].append(run)
    profiles = []
    for device in sorted(by_device):
        try:
            answer = calibrate_runs(by_device[device], [], find_device(device), cost_model, date=date)
        except EpochcastError as error:
            unused.append(f"{device}: {error}")
            continue
        unused += [f"{names[failure.row_index]}: {failure.reason}" for failure in answer.failures]
        profiles.append(answer)
    return SharedFit(tuple(profiles), tuple(unused))


def shared_steps(runs: Mapping[str, SharedRun]) -> list[Measurement]:
    """The steps that `epochcast bench` measured, as its files have them; those of other machines fall out there."""
    return [_measurement(name, run) for name, run in runs.items() if run.origin == BENCH]


def _measurement(name: str, run: SharedRun) -> Measurement:
    job, device = run.training_job(), CPU if run.device == CPU else "cuda"
    machine = run.machine
    facts = {"cpu": machine.cpu, "cores": machine.cores, "threads": machine.threads, "device": device}
    if run.device != CPU:
        facts["gpu"] = run.device
    question = {
        "device": device,
        "backend": _BACKENDS.get(job.framework, "torch"),
        "model": str(job.model),
        "input": "" if job.input_shape is None else "x".join(map(str, job.input_shape)),
        "recipe": recipe_to_json(job.recipe(job.batch or 1)),
        "part": "step",
    }
    step = run.step_seconds
    spread = (step.high - step.low) / step.mid
    repeats = int(run.steps or 1)
    return Measurement("model", name, MeasuredMachine(name, facts), question, step.mid, step.low, spread, repeats)
