"""Against SkyPilot's own classes where it is installed (`pip install skypilot` in an environment of its own: it pins
versions that other tests do not have), and against its interface everywhere.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import epochcast as ec
from epochcast.decide.handover.resource_request import request_of
from epochcast.decide.handover.skypilot_task import skypilot
from epochcast.errors import BadInput
from epochcast.surfaces.integrations.skypilot import estimate, time_estimator

JOB = ec.Job("resnet50", batch=64, dataset="imagenet-1k", epochs=1)


@dataclass(frozen=True)
class Asked:
    accelerators: dict[str, int | float] | None


def test_the_estimate_is_the_forecast() -> None:
    total = ec.forecast(JOB, device="A100", gpus=8).total_seconds
    assert total is not None
    assert time_estimator(JOB)(Asked({"A100": 8})) - total.mid < 1
    assert time_estimator(JOB, sure=True)(Asked({"A100": 8})) - total.high < 1


def test_a_faster_accelerator_takes_less_time() -> None:
    seconds = time_estimator(JOB)
    assert seconds(Asked({"H100": 8})) < seconds(Asked({"V100": 8}))


@pytest.mark.parametrize(
    ("accelerators", "message"),
    [(None, "for accelerators"), ({"A100": 0.5}, "a part of"), ({"Virtex": 1}, "SkyPilot's accelerator 'Virtex'")],
)
def test_what_cannot_be_forecast_is_refused(accelerators: dict[str, int | float] | None, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        time_estimator(JOB)(Asked(accelerators))


def test_a_job_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="does not fit on T4"):
        time_estimator(ec.Job("resnet50", batch=4096, dataset="imagenet-1k"))(Asked({"T4": 1}))


@pytest.fixture
def sky() -> Any:
    return pytest.importorskip("sky", reason="SkyPilot is not installed: its pins clash with other tests' packages")


def test_skypilot_asks_the_estimator_for_its_own_resources(sky: Any) -> None:
    task = estimate(sky.Task(run="python train.py", num_nodes=2), JOB)
    resources = sky.Resources(accelerators="A100:8")
    assert task.estimate_runtime(resources) == time_estimator(JOB, nodes=2)(Asked({"A100": 8}))


def test_skypilot_reads_the_task_that_is_handed_over(sky: Any) -> None:
    request = request_of(ec.forecast(JOB, device="A100", gpus=16, nodes=2), command="python train.py")
    yaml = pytest.importorskip("yaml")
    task = sky.Task.from_yaml_config(yaml.safe_load(skypilot(request)))
    (resources,) = task.resources
    assert (task.num_nodes, resources.accelerators, task.run) == (2, {"A100": 8}, "python train.py")


def test_skypilots_optimizer_chooses_by_the_estimate(sky: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two machines the one that the forecast makes faster, though SkyPilot knows no other difference."""
    choose: Callable[..., Any] = sky.optimizer.Optimizer._estimate_nodes_cost_or_time
    task = estimate(sky.Task(name="train", run="python train.py"), JOB)
    offers = [sky.Resources(infra="aws", accelerators=name) for name in ("V100:8", "H100:8")]
    task.set_resources(set(offers))
    monkeypatch.setattr(
        sky.optimizer, "_fill_in_launchable_resources", lambda **_: ({one: [one] for one in offers}, {}, [], [])
    )
    source, sink = (sky.Task(name=name).set_resources(offers[0]) for name in ("source", "sink"))
    seconds, _ = choose([source, task, sink], minimize_cost=False)
    fastest = min(seconds[task], key=lambda one: seconds[task][one])
    assert fastest.accelerators == {"H100": 8}


CATALOGUE = """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,Arch
{name},A100,8,96,1152,,21.9576,7.5129,{region},{region}a,x86_64
"""
READS = """\
import sky, sys
task = sky.Task.from_yaml(sys.argv[1])
(one,) = task.resources
print(task.num_nodes, one.cloud, one.region, one.instance_type, one.accelerators, one.use_spot)
"""


def test_skypilot_reads_the_machine_that_a_plan_chose(sky: Any, tmp_path: Path) -> None:
    """In a process and a home of its own, with a catalogue of one machine: SkyPilot would fetch the real one."""
    plan = ec.plan(JOB, clouds=["aws"], devices=["A100-SXM4-40GB"], gpus=[16], objective="cheapest", spot=0.1)
    assert plan.chosen is not None
    offer = plan.chosen.offer
    request = request_of(plan.chosen.forecast, command="python train.py", instance=offer.instance, is_spot=True)
    (tmp_path / "task.yaml").write_text(skypilot(request), encoding="utf-8")
    version = sky.skylet.constants.CATALOG_SCHEMA_VERSION
    catalogue = tmp_path / ".sky" / "catalogs" / version / "aws" / "vms.csv"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(CATALOGUE.format(name=offer.instance.name, region=offer.instance.region), encoding="utf-8")
    read = subprocess.run(
        [sys.executable, "-c", READS, tmp_path / "task.yaml"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.stdout == f"2 AWS {offer.instance.region} {offer.instance.name} {{'A100': 8}} True\n", read.stderr
