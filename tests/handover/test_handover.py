import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.handover.kueue import kueue
from epochcast.handover.manifest import manifest
from epochcast.handover.ray_job import ray_job
from epochcast.handover.request import Request, request_of, safe_name
from epochcast.handover.skypilot import ACCELERATORS, accelerator, device_of, skypilot
from epochcast.handover.slurm import slurm, slurm_time
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.machines import instances

RUN = "python train.py --name 'a: b' # now"
OPTIONS: dict[str, Any] = {"device": "A100", "batch": 64, "dataset": "imagenet-1k", "epochs": 90}


def request(**options: Any) -> Request:
    return request_of(ec.forecast("resnet50", **{**OPTIONS, **options}), command=RUN)


def test_the_time_is_the_high_end_of_the_interval() -> None:
    total = ec.forecast("resnet50", **OPTIONS).total_seconds
    assert total is not None
    assert total.high <= request().seconds < total.high + 1


def test_a_batch_script_asks_slurm_for_a_task_per_gpu() -> None:
    text = slurm(request(gpus=16, nodes=2))
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(.+)$", text, re.M))
    assert {"time", "gres", "cpus-per-task", "mem"} <= asked.keys()
    assert (asked["nodes"], asked["ntasks-per-node"], asked["gres"]) == ("2", "8", "gpu:a100:8")
    assert re.fullmatch(r"\d+-\d\d:\d\d:\d\d", asked["time"])
    assert re.fullmatch(r"\d+M", asked["mem"])
    assert "95th percentile" in text
    assert text.endswith(f"\nsrun {RUN}\n")


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "0-00:01:00"), (3600, "0-01:00:00"), (3601, "0-01:01:00"), (90_000, "1-01:00:00")]
)
def test_times_are_rounded_up_to_minutes(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text


def test_workers_decide_the_processors() -> None:
    asked = request(gpus=4, workers=3, loader_seconds=0.001)
    assert asked.cpus_per_gpu == 4


def test_a_job_of_kueue_is_valid_yaml_with_its_queue_and_resources() -> None:
    document = yaml.safe_load(kueue(request(gpus=16, nodes=2), queue="team", image="registry/image:1"))
    assert (document["apiVersion"], document["kind"]) == ("batch/v1", "Job")
    assert document["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "team"}
    spec = document["spec"]
    assert (spec["suspend"], spec["parallelism"], spec["completions"]) == (True, 2, 2)
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"][-1] == RUN
    assert container["resources"]["requests"]["nvidia.com/gpu"] == "8"
    assert container["resources"]["requests"] == container["resources"]["limits"]


def test_a_job_of_kueue_without_a_queue_is_refused() -> None:
    with pytest.raises(BadInput, match="--queue and --image"):
        kueue(request(), queue=None, image="x")


def test_ray_takes_the_specification() -> None:
    common = pytest.importorskip("ray.dashboard.modules.job.common")
    spec = json.loads(ray_job(request(gpus=8)))
    assert common.JobSubmitRequest(**spec).entrypoint_num_gpus == 8
    over_nodes = json.loads(ray_job(request(gpus=16, nodes=2)))
    assert common.JobSubmitRequest(**over_nodes).entrypoint_num_gpus is None


def test_a_task_of_skypilot_names_its_accelerators() -> None:
    document = yaml.safe_load(skypilot(request(gpus=16, nodes=2)))
    assert document["resources"] == {"accelerators": "A100:8"}
    assert (document["num_nodes"], document["run"]) == (2, RUN)


def test_a_task_of_skypilot_rents_the_chosen_machine() -> None:
    instance = next(one for one in instances() if one.cloud == "aws" and one.device.startswith("A100"))
    chosen = replace(request(), instance=instance)
    assert yaml.safe_load(skypilot(chosen))["resources"] == {
        "infra": f"aws/{instance.region}",
        "instance_type": instance.name,
    }


def test_a_task_of_skypilot_asks_for_spot_where_the_plan_has_its_price() -> None:
    instance = next(one for one in instances() if one.cloud == "aws" and one.spot_dollars_per_hour)
    assert yaml.safe_load(skypilot(replace(request(), instance=instance, is_spot=True)))["resources"]["use_spot"]


@pytest.mark.parametrize(
    ("cloud", "name", "asked"),
    [
        ("azure", "NC24ads_A100_v4", {"instance_type": "Standard_NC24ads_A100_v4"}),
        ("gcp", "n1-standard-32+4xT4", {"instance_type": "n1-standard-32", "accelerators": "T4:4"}),
    ],
)
def test_a_task_of_skypilot_spells_machines_as_skypilot_does(cloud: str, name: str, asked: dict[str, str]) -> None:
    instance = next(one for one in instances() if (one.cloud, one.name) == (cloud, name))
    resources = yaml.safe_load(skypilot(replace(request(), instance=instance)))["resources"]
    assert resources == asked | {"infra": f"{cloud}/{instance.region}".rstrip("/")}


def test_a_machine_that_skypilot_does_not_rent_is_refused() -> None:
    instance = next(one for one in instances() if one.cloud == "in-house")
    with pytest.raises(BadInput, match="SkyPilot rents no machines of in-house"):
        skypilot(replace(request(), instance=instance))


@pytest.mark.parametrize("name", ACCELERATORS)
def test_every_accelerator_is_a_device_of_the_catalogue(name: str) -> None:
    assert accelerator(device_of(name)) in ACCELERATORS


def test_a_device_without_a_name_there_is_refused() -> None:
    with pytest.raises(BadInput, match="no accelerator that is known to be a"):
        accelerator(find_device("MI250X"))


def test_a_job_without_an_end_is_refused() -> None:
    with pytest.raises(BadInput, match="how long the job takes"):
        request_of(ec.forecast("resnet50", device="A100", batch=64))


def test_a_job_without_a_command_is_refused() -> None:
    with pytest.raises(BadInput, match="what starts the training"):
        skypilot(replace(request(), command=None))


@pytest.mark.parametrize("name", ["ResNet_50", "hf:BertConfig(num_hidden_layers=4)", "-", "3d", "x" * 99, "ä:ö"])
def test_names_are_safe_for_dns(name: str) -> None:
    assert re.fullmatch(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?", safe_name(name))


def test_what_a_manifest_says_is_read_back_by_yaml() -> None:
    document = {"a": {"b": [1, {"c": "x: y", "d": [True, None]}, "- z"]}, "e": [], "f": {}, "g": "# no comment"}
    assert yaml.safe_load(manifest(document, ("a note\nover lines",))) == document
