import json
import re
import shlex
import subprocess
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.every import every

import epochcast as ec
from epochcast.decide.handover.kueue_job import kueue
from epochcast.decide.handover.loader_needs import loader_needs
from epochcast.decide.handover.ray_job import ray_job
from epochcast.decide.handover.resource_request import Request, request_of, safe_name
from epochcast.decide.handover.skypilot_task import ACCELERATORS, accelerator, device_of, skypilot
from epochcast.decide.handover.slurm_script import slurm, slurm_time
from epochcast.decide.handover.yaml_text import manifest
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.machines import instances

RUN = "python train.py --name 'a: b' # now"
OPTIONS: dict[str, Any] = {"device": "A100", "batch": 64, "dataset": "imagenet-1k", "epochs": 90}


def request(**options: Any) -> Request:
    return request_of(ec.forecast("resnet50", **{**OPTIONS, **options}), command=RUN)


def test_the_time_is_the_high_end_of_the_interval() -> None:
    total = ec.forecast("resnet50", **OPTIONS).total_seconds
    assert total is not None
    assert total.high + 200 <= request().seconds < total.high + 201  # and the image pull


def test_a_batch_script_asks_slurm_for_a_task_per_gpu() -> None:
    text = slurm(request(gpus=16, nodes=2))
    asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(.+)$", text, re.M))
    assert {"time", "gres", "cpus-per-task", "mem"} <= asked.keys()
    assert (asked["nodes"], asked["ntasks-per-node"], asked["gres"]) == ("2", "8", "gpu:a100:8")
    assert re.fullmatch(r"\d+-\d\d:\d\d:\d\d", asked["time"])
    assert re.fullmatch(r"\d+M", asked["mem"])
    assert "95th percentile" in text
    assert text.endswith(f"\nsrun {RUN}\n")


def script_of(command: str, **options: Any) -> tuple[dict[str, str], list[str]]:
    """The options of a batch script, and its lines after them."""
    text = slurm(replace(request(**options), command=command))
    return dict(re.findall(r"^#SBATCH --([\w-]+)=(.+)$", text, re.M)), text.split("\n\n", 1)[1].splitlines()


LAUNCHES = (
    "torchrun --nproc_per_node=8 train.py --epochs 90",
    "torchrun --standalone --nproc-per-node 8 -m pkg.train --nnodes 7",
    "OMP_NUM_THREADS=8 /opt/venv/bin/torchrun --nproc_per_node=gpu train.py",
    "python -m torch.distributed.run --nproc_per_node=8 train.py",
    "python3.11 -u -m torch.distributed.launch --nproc_per_node=8 train.py",
    "accelerate launch train.py",
    "accelerate launch --num_processes 8 --mixed_precision bf16 train.py",
    "uv run accelerate launch --num_processes=8 train.py",
    "deepspeed --num_gpus=8 train.py --deepspeed ds.json",
    "composer -n 8 train.py",
    "fabric run --devices=8 train.py",
)


@pytest.mark.parametrize("command", LAUNCHES)
def test_a_launcher_is_one_task_on_a_node_with_all_its_gpus(command: str) -> None:
    asked, lines = script_of(command, gpus=8, nodes=1, workers=3, loader_seconds=0.001)
    assert (asked["nodes"], asked["ntasks-per-node"], asked["gpus-per-node"]) == ("1", "1", "a100:8")
    assert asked["cpus-per-task"] == "32" and "gres" not in asked
    assert lines[-1] == f"srun {command}"


@pytest.mark.parametrize(
    "command",
    [
        "python train.py",
        "python train.py --launcher torchrun",
        "python torchrun.py",
        "python -m pkg.train torchrun",
        "./train.sh deepspeed",
        "python train.py --note 'a && torchrun b'",
    ],
)
def test_a_plain_command_is_a_task_per_gpu(command: str) -> None:
    asked, lines = script_of(command, gpus=16, nodes=2)
    assert (asked["ntasks-per-node"], lines) == ("8", [f"srun {command}"])


@pytest.mark.parametrize("command", ["srun --gpu-bind=none python train.py", "mpirun python train.py"])
def test_what_starts_tasks_itself_is_started_once(command: str) -> None:
    assert script_of(command, gpus=8)[1] == [command]


@pytest.mark.parametrize(
    ("command", "started"),
    [
        (
            "torchrun --nproc_per_node=8 train.py",
            "torchrun --nnodes=2 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$head_node:29500 "
            "--nproc_per_node=8 train.py",
        ),
        (
            'python -m torch.distributed.run --nnodes 2 train.py --name "$NAME"',
            "python -m torch.distributed.run --nproc_per_node=8 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d "
            '--rdzv_endpoint=$head_node:29500 --nnodes 2 train.py --name "$NAME"',
        ),
        (
            "accelerate launch --num_processes 16 train.py",
            "accelerate launch --num_machines=2 --machine_rank=$SLURM_NODEID --main_process_ip=$head_node "
            "--main_process_port=29500 --num_processes 16 train.py",
        ),
        (
            "deepspeed train.py",
            "deepspeed --num_gpus=8 --num_nodes=2 --hostfile=$PWD/hostfile-$SLURM_JOB_ID --no_ssh "
            "--node_rank=$SLURM_NODEID --master_addr=$head_node --master_port=29500 train.py",
        ),
        (
            "composer train.py",
            "composer --nproc=8 --world_size=16 --node_rank=$SLURM_NODEID --base_rank=$(($SLURM_NODEID * 8)) "
            "--master_addr=$head_node --master_port=29500 train.py",
        ),
        (
            "fabric run train.py",
            "fabric run --devices=8 --num-nodes=2 --node-rank=$SLURM_NODEID --main-address=$head_node "
            "--main-port=29500 train.py",
        ),
        (
            "cd code && torchrun --nnodes=2 --master_addr=$MASTER --nproc_per_node=8 train.py",
            "cd code && torchrun --nnodes=2 --master_addr=$MASTER --nproc_per_node=8 train.py",
        ),
    ],
)
def test_launchers_on_several_nodes_meet_at_the_first(command: str, started: str) -> None:
    asked, lines = script_of(command, gpus=16, nodes=2)
    assert (asked["nodes"], asked["ntasks-per-node"]) == ("2", "1")
    assert 'head_name=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)' in lines
    assert 'export head_node="${head_node:-$head_name}"' in lines
    assert shlex.split(lines[-1]) == ["srun", "bash", "-c", started]
    assert any("slots=8" in line for line in lines) == command.startswith("deepspeed")


def test_the_script_gives_every_node_its_rank(tmp_path: Path) -> None:
    """Run by bash, with programs that stand for Slurm's: srun starts the command on two nodes."""
    programs = {
        "scontrol": "printf 'n1\\nn2\\n'",
        "srun": 'for node in 0 1; do SLURM_NODEID=$node "$@"; done',
        "accelerate": 'echo "$@"',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    text = slurm(replace(request(gpus=16, nodes=2), command="accelerate launch train.py --name 'a b'"))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7"}
    ran = subprocess.run(["bash"], input=text, env=environment, capture_output=True, text=True, check=True)
    options = "--num_processes=16 --num_machines=2 --machine_rank={} --main_process_ip=n1 --main_process_port=29500"
    assert ran.stdout.splitlines() == [f"launch {options.format(node)} train.py --name a b" for node in (0, 1)]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("torchrun --nproc_per_node=4 train.py", "--nproc_per_node=4, the forecast 8 GPUs per node"),
        ("torchrun --nnodes 4 --nproc_per_node=8 train.py", "--nnodes=4, the forecast 2 nodes"),
        ("accelerate launch --num_processes 8 train.py", "--num_processes=8, the forecast 16 GPUs in all"),
        ("torchrun --standalone train.py", "--standalone, which is for one node; the forecast has 2"),
        ("torchrun 'train.py", "is no command of a shell: No closing quotation"),
    ],
)
def test_a_launcher_for_other_gpus_than_the_forecast_is_refused(command: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        script_of(command, gpus=16, nodes=2)


def test_skypilot_runs_launchers_on_every_node() -> None:
    asked = replace(request(gpus=16, nodes=2), command="torchrun train.py")
    head, started = yaml.safe_load(skypilot(asked))["run"].splitlines()
    assert head == 'head_node=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)'
    assert "--nproc_per_node=8 --nnodes=2" in started and "--rdzv_endpoint=$head_node:29500" in started
    one = replace(request(gpus=8), command="torchrun --nproc_per_node=8 train.py")
    assert yaml.safe_load(skypilot(one))["run"] == "torchrun --nproc_per_node=8 train.py"


def test_pods_of_a_launcher_find_each_other_by_a_service() -> None:
    asked = replace(request(gpus=16, nodes=2), command="deepspeed train.py")
    job, service = yaml.safe_load_all(kueue(asked, queue="team", image="x"))
    pod = job["spec"]["template"]["spec"]
    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == (pod["subdomain"], "None")
    hosts, started = pod["containers"][0]["command"][-1].splitlines()
    assert "'resnet50-1.resnet50 slots=8' > /tmp/hostfile" in hosts
    assert "--node_rank=$JOB_COMPLETION_INDEX --master_addr=resnet50-0.resnet50" in started


def test_a_job_of_ray_has_launchers_on_one_node_only() -> None:
    asked = replace(request(gpus=8), command="torchrun train.py")
    assert json.loads(ray_job(asked))["entrypoint"] == "torchrun --nproc_per_node=8 train.py"
    with pytest.raises(BadInput, match="starts torchrun on one node, not on 2"):
        ray_job(replace(request(gpus=16, nodes=2), command="torchrun train.py"))


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "0-00:01:00"), (3600, "0-01:00:00"), (3601, "0-01:01:00"), (90_000, "1-01:00:00")]
)
def test_times_are_rounded_up_to_minutes(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text


def test_workers_decide_the_processors() -> None:
    asked = request(gpus=4, workers=3, loader_seconds=0.001)
    assert asked.cpus_per_gpu == 4


def test_processors_and_memory_are_those_of_the_loader() -> None:
    """By hand: 64 images at 20 ms are 1.28 s of one worker; so many workers keep up with the GPU."""
    forecast = ec.forecast("resnet50", **{**OPTIONS, "gpus": 1, "loader_seconds": 0.02})
    needs = loader_needs(forecast)
    step = forecast.details.step
    gpu_seconds = step.seconds.mid - step.parts.exposed_input
    assert needs is not None and needs.workers_per_gpu == ceil(64 * 0.02 / gpu_seconds)
    assert needs.cpus == needs.workers_per_gpu + 1
    batches = (2 * needs.workers_per_gpu + 2) * 64 * 3 * 224 * 224
    assert needs.memory_bytes > batches
    asked = request_of(forecast, command=RUN)
    assert any(f"{needs.workers_per_gpu} loader workers per GPU" in note for note in asked.notes)
    words = loader_needs(ec.forecast("gpt2", device="A100", batch=4, samples=1000))
    assert words is None


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


@every("name", ACCELERATORS)
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
