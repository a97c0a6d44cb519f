"""The three engines, for real: processes here, a Ray cluster of several nodes, a Slurm with two nodes on loopback.

Each has two nodes with two fake GPUs, of the types NC12 and NV12 (of the local engine they are only names).
"""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port
from tests.schedule.engines.slurm_cluster import SlurmCluster, missing

from epochcast.schedule.engines.executor import Executor


@dataclass
class Place:
    """An engine under test. `flags` choose it on the command line; `kill_node` takes the node of a type away."""

    engine: Executor
    flags: list[str]
    kill_node: Callable[[str], None]
    revive_node: Callable[[str], None]
    environment: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """A Slurm cluster; skipped where Slurm is not there."""
    if missing():
        pytest.skip(f"Slurm ({', '.join(missing())}) is not installed; `make slurm` does so, or says why it cannot")
    if os.getuid() != 0:
        pytest.skip("a Slurm on loopback needs root, for its fake devices and its daemons")
    with tempfile.TemporaryDirectory(prefix="epochcast-slurm-") as folder:
        Path(folder).chmod(0o755)
        cluster = SlurmCluster(Path(folder))
        yield cluster
        cluster.stop()


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A Ray cluster with its dashboard; nodes are added by the tests."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 100 * 2**20}
    # A dead node is noticed within some seconds instead of half a minute.
    health = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    # Jobs find their cluster by a file in its folder, which other clusters would overwrite; sockets need it short.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    # A cluster for tests writes its address into this one, too, and does not make it.
    (Path(tempfile.gettempdir()) / "ray").mkdir(exist_ok=True)
    web = {"include_dashboard": True, "dashboard_host": "127.0.0.1", "dashboard_port": 0}
    # Two clusters on one machine would ask for the same port of the agent that takes jobs.
    web["dashboard_agent_listen_port"] = free_port()
    cluster: Any = Cluster(
        initialize_head=True, head_node_args={**head, **web, "_system_config": health, "temp_dir": folder}
    )
    cluster.of_type = {}
    yield cluster
    cluster.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def _ray_place(cluster: Any) -> Place:
    from epochcast.schedule.engines.ray_engine import RayEngine

    def revive(kind: str) -> None:
        if kind not in cluster.of_type:
            size = {"num_cpus": 2, "num_gpus": 2, "object_store_memory": 100 * 2**20}
            cluster.of_type[kind] = cluster.add_node(resources={kind: 1}, **size)

    def kill(kind: str) -> None:
        cluster.remove_node(cluster.of_type.pop(kind), allow_graceful=False)

    for kind in ("NC12", "NV12"):
        revive(kind)
    address = f"http://{cluster.head_node.webui_url}"
    return Place(RayEngine(address), ["--engine", "ray", "--address", address], kill, revive)


def _slurm_place(cluster: SlurmCluster) -> Place:
    from epochcast.schedule.engines.slurm_engine import SlurmEngine

    node = {"NC12": "n1", "NV12": "n2"}
    os.environ.update(cluster.environment)
    return Place(
        SlurmEngine(),
        ["--engine", "slurm"],
        lambda kind: cluster.kill_node(node[kind]),
        lambda kind: cluster.revive_node(node[kind]),
        cluster.environment,
    )


def _local_place(folder: Path) -> Place:
    from epochcast.schedule.engines.local_engine import LocalEngine

    def kill(kind: str) -> None:
        """All processes of this test on a type, supervisors too: as a machine that loses power."""
        ours = f"EPOCHCAST_CHECKPOINT_FOLDER={folder}/".encode()
        for how in (signal.SIGSTOP, signal.SIGKILL):  # nobody sees another one die
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    variables = (entry / "environ").read_bytes().split(b"\0")
                    here = any(one.startswith(ours) for one in variables)
                    if here and f"EPOCHCAST_NODE_TYPE={kind}".encode() in variables:
                        os.kill(int(entry.name), how)
                except OSError:
                    continue

    return Place(LocalEngine(), ["--engine", "local"], kill, lambda kind: None)


@pytest.fixture(params=["local", "slurm", "ray"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Each of the engines, with both nodes up."""
    if request.param == "local":
        yield _local_place(tmp_path)
        return
    if request.param == "ray":
        made = _ray_place(request.getfixturevalue("ray_cluster"))
    else:
        made = _slurm_place(request.getfixturevalue("slurm"))
    yield made
    for name in made.environment:
        os.environ.pop(name, None)


@pytest.fixture
def ray_place(ray_cluster: Any) -> Place:
    """Ray alone."""
    return _ray_place(ray_cluster)


def until(is_so: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)
