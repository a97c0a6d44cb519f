"""Fitting to a folder of shared runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.measure.fit.machines import machine, op_rows, step_rows

import epochcast as ec
from epochcast.interval import Interval
from epochcast.measure.fit.local_fit import fit_local
from epochcast.measure.fit.shared_fit import fit_shared, shared_steps
from epochcast.measure.shared.shared_run import SharedMachine, SharedRun
from epochcast.predict.cost.cost_models import find_cost_model

NETWORKS = ("resnet18", "resnet50", "mobilenet_v2")


def _shared(model: str, device: str = "T4", factor: float = 1.5) -> SharedRun:
    """A run that took so many times its forecast."""
    forecast = ec.forecast(model, device=device, batch=64, precision="amp_fp16", optimizer="sgd")
    job = {"model": model, "batch": 64, "precision": "amp_fp16", "optimizer": "sgd"}
    seconds = factor * forecast.step_seconds.mid
    step = Interval(0.98 * seconds, seconds, 1.02 * seconds)
    return SharedRun("check", "log", job, device, step, "2026-11", "0.1.0")


def test_runs_of_a_gpu_correct_its_forecasts(tmp_path: Path) -> None:
    runs = [_shared(model) for model in NETWORKS]
    runs.append(replace(runs[0], device="cpu", machine=SharedMachine("Some CPU", 2, 1)))
    for run in runs:
        (tmp_path / run.file_name).write_text(run.text(), encoding="utf-8")
    answer = fit_shared(tmp_path, find_cost_model(), date="2026-11-19")
    assert [each.device.name for each in answer.profiles] == ["T4"]
    profile = answer.profiles[0]
    assert profile.profile.rows == len(NETWORKS)
    assert profile.mape.before == pytest.approx(1 / 3, abs=0.05)
    assert profile.mape.after < 0.1
    assert len(answer.unused) == 1 and "a run on a processor corrects that machine alone" in answer.unused[0]


def test_steps_that_bench_measured_join_those_of_the_same_machine() -> None:
    seconds = step_rows(("resnet18",))[1].seconds or 0.0
    step, job = Interval(0.99 * seconds, seconds, 1.01 * seconds), {"model": "resnet18", "batch": 32}
    cpu = SharedMachine("Some CPU", 2, 1)
    run = SharedRun("bench", "bench", job, "cpu", step, "2026-11", "0.1.0", steps=9.0, machine=cpu)
    (row,) = shared_steps({"a.json": run, "b.json": replace(run, origin="check")})
    assert (row.kind, row.seconds, row.repeats) == ("model", run.step_seconds.mid, 9)
    assert row.question["recipe"]["batch"] == 32 and row.machine.facts["cpu"] == "Some CPU"
    ops, facts = op_rows(40), machine().facts
    host = replace(run, machine=SharedMachine(facts["cpu"], facts["cores"], 1))
    without = fit_local(ops, date="2026-11-19")
    fitted = fit_local([*ops, *shared_steps({"a.json": host})], date="2026-11-19")
    assert (without.steps, fitted.steps) == (0, 1)
    assert fit_local([*ops, row], date="2026-11-19").unused[0] == "1 rows of other machines"
