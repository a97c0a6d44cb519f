"""What hand-over writes runs: torchrun over two nodes of a real Slurm.

The job for Ray is in test_engines.py: two clusters of Ray on one machine get in each other's way.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.ports import free_port
from tests.schedule.engines.slurm_cluster import SlurmCluster

import epochcast as ec
from epochcast.decide.handover import launchers
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
