"""What hand-over writes runs: torchrun over two nodes of a real Slurm, and a job on a real Ray."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port
from tests.schedule.engines.slurm_cluster import SlurmCluster

import epochcast as ec
from epochcast.decide.handover import launchers
from epochcast.decide.handover.ray_job import ray_job
from epochcast.decide.handover.resource_request import Request, request_of
from epochcast.decide.handover.slurm_script import slurm as slurm_script

PATIENCE_SECONDS = 240.0
TRAIN = """\
import os
import sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
met = torch.ones(1)
dist.all_reduce(met)
place = f"{os.environ['RANK']} of {os.environ['WORLD_SIZE']} on {os.environ['SLURMD_NODENAME']}"
with open(f"{sys.argv[1]}/rank-{os.environ['RANK']}", "w") as file:
    file.write(f"{place}: {int(met.item())} met")
dist.destroy_process_group()
"""
COUNT = """\
import os
import sys

rank = os.environ["SLURM_PROCID"]
with open(f"{sys.argv[1]}/task-{rank}", "w") as file:
    file.write(f"{os.environ['SLURM_NTASKS']} on {os.environ['SLURMD_NODENAME']}")
"""


def small(command: str, *, gpus: int, nodes: int) -> Request:
    """A request that fits the nodes of the tests: two fake GPUs of another type on each, eight processors, 4 GB."""
    forecast = ec.forecast("resnet18", device="V100", batch=8, samples=8000, gpus=gpus, nodes=nodes)
    return replace(request_of(forecast, command=command), cpus=2, memory_bytes=2**30)


def until(is_true: Callable[[], bool], what: str) -> None:
    patience = time.monotonic() + PATIENCE_SECONDS
    while not is_true():
        assert time.monotonic() < patience, f"{what} took more than {PATIENCE_SECONDS:g} s"
        time.sleep(0.2)


def submitted(cluster: SlurmCluster, request: Request, folder: Path) -> str:
    """The script as it is written, with the type of the GPUs as a site would put it: two nodes have two types here."""
    text, count = re.subn(r"(gpus-per-node=|gres=gpu:)[a-z]\w+:", r"\1", slurm_script(request))
    assert count == 1
    file = folder / "job.sh"
    file.write_text(text)
    log = folder / "job.log"
    printed = cluster.command("sbatch", "--parsable", f"--output={log}", f"--chdir={folder}", str(file)).strip()
    assert printed.isdecimal(), text
    state = ""

    def is_over() -> bool:
        nonlocal state
        state = cluster.command("squeue", "-h", "-j", printed, "-o", "%T").strip()
        return not state

    try:
        until(is_over, f"job {printed} ({state})")
    finally:
        subprocess.run(["scancel", printed], env=None, check=False, capture_output=True)
    return log.read_text()


def test_torchrun_over_two_nodes_of_slurm_meets(
    slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "PORT", free_port())
    (tmp_path / "train.py").write_text(TRAIN)
    command = f"{sys.executable} -m torch.distributed.run --nproc_per_node=1 train.py {tmp_path}"
    log = submitted(slurm, small(command, gpus=2, nodes=2), tmp_path)
    said = {file.name: file.read_text() for file in tmp_path.glob("rank-*")}
    assert set(said) == {"rank-0", "rank-1"}, log
    nodes = {re.sub(r".* on (\w+):.*", r"\1", text) for text in said.values()}
    assert nodes == {"n1", "n2"}
    assert all(" of 2 on " in text and text.endswith(": 2 met") for text in said.values())


def test_a_plain_command_is_a_task_per_gpu_of_slurm(slurm: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(COUNT)
    log = submitted(slurm, small(f"{sys.executable} count.py {tmp_path}", gpus=4, nodes=2), tmp_path)
    said = sorted(file.read_text() for file in tmp_path.glob("task-*"))
    assert said == ["4 on n1", "4 on n1", "4 on n2", "4 on n2"], log


def test_a_job_of_ray_runs_with_its_gpus(ray_cluster: Any, tmp_path: Path) -> None:
    from ray.job_submission import JobSubmissionClient

    node = ray_cluster.add_node(num_cpus=2, num_gpus=2, object_store_memory=100 * 2**20)
    try:
        script = "import os, torch; print('gpus', os.environ.get('CUDA_VISIBLE_DEVICES'))"
        request = replace(small(f'{sys.executable} -c "{script}"', gpus=2, nodes=1), memory_bytes=2**20)
        spec = json.loads(ray_job(request))
        spec["runtime_env"] = {}  # nothing of this folder is needed
        client = JobSubmissionClient(f"http://{ray_cluster.head_node.webui_url}")
        job = client.submit_job(**spec)
        until(lambda: client.get_job_status(job).is_terminal(), "the job of Ray")
        logs = client.get_job_logs(job)
        assert client.get_job_status(job).value == "SUCCEEDED", logs
        assert "gpus 0,1" in logs
        metadata = client.get_job_info(job).metadata or {}
        assert metadata["epochcast_placement"] == "2 × V100-SXM2-16GB"
    finally:
        ray_cluster.remove_node(node)
