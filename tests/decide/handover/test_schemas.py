"""What hand-over writes, against the schemas of its readers: SkyPilot's own, as a release has them, and the fields
of a Kubernetes Job that Kueue reads (kubernetes.io, API reference of batch/v1).
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.every import every

import epochcast as ec
from epochcast.decide.handover.kueue_job import kueue
from epochcast.decide.handover.resource_request import Request, request_of
from epochcast.decide.handover.skypilot_task import CLOUDS, skypilot
from epochcast.hardware.machines import instances

COMMANDS = ("python train.py", "torchrun train.py", "accelerate launch train.py", "deepspeed train.py")
SKYPILOT = json.loads(Path(__file__).with_name("skypilot_schema.json").read_text(encoding="utf-8"))
AMOUNT = {"type": "string", "pattern": r"^[0-9]+(Mi)?$"}
NAME = {"type": "string", "pattern": "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"}


def strict(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    """An object that has these keys and no other."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


AMOUNTS = {
    "type": "object",
    "properties": {"cpu": AMOUNT, "memory": AMOUNT, "nvidia.com/gpu": AMOUNT},
    "required": ["cpu", "nvidia.com/gpu"],
    "additionalProperties": False,
}
CONTAINER = strict(
    {
        "name": NAME,
        "image": {"type": "string"},
        "command": {"type": "array", "items": {"type": "string"}},
        "resources": strict({"requests": AMOUNTS, "limits": AMOUNTS}),
    }
)
POD = strict(
    {"restartPolicy": {"enum": ["Never", "OnFailure"]}, "subdomain": NAME, "containers": {"items": CONTAINER}},
    "subdomain",
)
COUNT = {"type": "integer", "minimum": 0}
JOB = strict(
    {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "Job"},
        "metadata": strict({"name": NAME, "labels": strict({"kueue.x-k8s.io/queue-name": NAME})}),
        "spec": strict(
            {
                **dict.fromkeys(("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"), COUNT),
                "suspend": {"const": True},
                "completionMode": {"enum": ["Indexed", "NonIndexed"]},
                "template": strict({"spec": POD}),
            }
        ),
    }
)


def asked(command: str, *, gpus: int = 8, nodes: int = 1) -> Request:
    options: dict[str, Any] = {"batch": 64, "dataset": "imagenet-1k", "epochs": 9, "gpus": gpus, "nodes": nodes}
    return request_of(ec.forecast("resnet50", device="A100", **options), command=command)


def check(document: Any, schema: dict[str, Any]) -> None:
    pytest.importorskip("jsonschema").validate(document, schema)


def check_task(text: str) -> None:
    document = yaml.safe_load(text)
    check(document, SKYPILOT["task"])
    check(document["resources"], SKYPILOT["resources"])


@every("command", COMMANDS)
def test_a_task_has_the_schema_of_skypilot(command: str) -> None:
    check_task(skypilot(asked(command)))
    check_task(skypilot(asked(command, gpus=16, nodes=2)))


def test_a_machine_of_each_cloud_has_the_schema_of_skypilot() -> None:
    request = asked("python train.py")
    machines = {machine.cloud: machine for machine in instances() if machine.cloud in CLOUDS}
    for machine in machines.values():
        is_spot = machine.spot_dollars_per_hour is not None
        check_task(skypilot(replace(request, instance=machine, is_spot=is_spot)))


@every("command", COMMANDS)
def test_a_job_has_the_fields_that_kueue_reads(command: str) -> None:
    for request in (asked(command), asked(command, gpus=16, nodes=2)):
        job, *services = yaml.safe_load_all(kueue(request, queue="team", image="image:1"))
        check(job, JOB)
        assert job["spec"]["parallelism"] == job["spec"]["completions"] == request.nodes
        assert len(services) == (request.nodes > 1 and command != "python train.py")
