"""Jobs on a Ray cluster, by its Jobs API (the dashboard's address). A node type is a resource of Ray's nodes.

A start is a submission whose id is its key, so that Ray itself refuses a second one. Its GPUs are those of the
entrypoint, which Ray gives out on one node with CUDA_VISIBLE_DEVICES set; the node is chosen by its label. Logs come
through the API. Folder and command must be there under the same path on the nodes.

A program of Ray that puts its own workers on the GPUs (`ray_workers`) has none in its entrypoint. Its GPUs are reserved
as a placement group, a bundle each, packed on one node; the entrypoint holds it by `hold_group` while it runs.
The program connects by `ray.init(namespace=os.environ["EPOCHCAST_RAY_NAMESPACE"])` and finds its group by
`ray.util.get_placement_group(os.environ["EPOCHCAST_PLACEMENT_GROUP"])`.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from inspect import getsource
from math import ceil
from typing import Any

from epochcast.errors import MissingExtra
from epochcast.schedule.engines.executor import (
    OVER,
    PENDING,
    RUNNING,
    EngineAway,
    EngineNode,
    EngineRefuses,
    StartOrder,
    StartState,
)

ADDRESS = "http://127.0.0.1:8265"
# A little of the resource that says a node's type, so that any number of jobs fit beside each other.
TYPE_SHARE = 0.001
NAMESPACE = "epochcast"
_WAITS, _RUNS = ("PENDING",), ("RUNNING",)


class RayEngine:
    """The cluster whose dashboard is at an address."""

    name = "ray"

    def __init__(self, address: str | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            from ray.job_submission import JobSubmissionClient
        except ModuleNotFoundError as error:
            raise MissingExtra("ray", error.name or "ray") from None
        self.address = address or os.environ.get("EPOCHCAST_RAY_DASHBOARD") or ADDRESS
        try:
            self._client: Any = JobSubmissionClient(self.address)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EngineAway(f"no Ray dashboard answers at {self.address}: {_line(error)}") from None

    def start(self, order: StartOrder) -> str:
        """Submit; gives the submission's id, which is the key."""
        order.make_folders()
        if order.key in self._submitted():
            return order.key
        pinned = {} if order.node is None else {"ray.io/node-id": order.node}
        try:
            self._client.submit_job(
                entrypoint=f"cd {shlex.quote(str(order.folder))} && exec {shlex.join(_words(order))}",
                submission_id=order.key,
                metadata={"epochcast_job": order.job},
                runtime_env={"env_vars": _env(order)},
                entrypoint_num_cpus=0,
                entrypoint_num_gpus=0 if order.has_ray_workers else order.choice.gpus,
                entrypoint_resources={order.node_type: TYPE_SHARE},
                entrypoint_label_selector=pinned or None,
            )
        except (RuntimeError, ValueError) as error:
            if order.key in self._submitted():  # it was there after all
                return order.key
            raise EngineRefuses(f"Ray does not take {order.job!r}: {_line(error)}") from None
        except OSError as error:
            raise self._away(error) from None
        return order.key

    def look(self, orders: Sequence[StartOrder]) -> Mapping[str, StartState]:
        """What the Jobs API lists."""
        jobs = self._submitted()
        return {order.key: _seen(jobs[order.key]) for order in orders if order.key in jobs}

    def _submitted(self) -> dict[str, Any]:
        try:
            return {job.submission_id: job for job in self._client.list_jobs() if job.submission_id}
        except (OSError, RuntimeError) as error:
            raise self._away(error) from None

    def stop(self, order: StartOrder) -> None:
        """SIGTERM by Ray, and SIGKILL after the seconds of grace that the submission named."""
        try:
            self._client.stop_job(order.key)
        except RuntimeError:
            return  # Ray does not know it, or it is over
        except OSError as error:
            raise self._away(error) from None

    def kill(self, order: StartOrder) -> None:
        """Ray does so by itself when the grace is over."""
        self.stop(order)

    def fetch_log(self, order: StartOrder) -> None:
        """Append what is new to the file here."""
        try:
            logs: str = self._client.get_job_logs(order.key)
        except RuntimeError:
            return  # its node is gone, and the log with it
        except OSError as error:
            raise self._away(error) from None
        content = logs.encode(errors="replace")
        have = order.log.stat().st_size if order.log.exists() else 0
        if len(content) > have:
            with order.log.open("ab") as stream:
                stream.write(content[have:])

    def nodes(self, types: Iterable[str]) -> Sequence[EngineNode] | None:
        """The cluster's nodes that have a type among their resources; those that died are down."""
        from ray.util.state import list_nodes
        from ray.util.state.exception import RayStateApiException

        wanted = set(types)
        try:
            listed = list_nodes(address=self.address, limit=10_000)
        except (OSError, RayStateApiException) as error:
            raise self._away(error) from None
        nodes = []
        for node in listed:
            kind = next((resource for resource in node.resources_total if resource in wanted), None)
            if kind is not None:
                nodes.append(EngineNode(node.node_id, kind, node.state == "ALIVE"))
        return tuple(nodes)

    def close(self) -> None:
        """Nothing is held."""

    def _away(self, error: BaseException) -> EngineAway:
        return EngineAway(f"the Ray dashboard at {self.address} does not answer: {_line(error)}")


def _words(order: StartOrder) -> tuple[str, ...]:
    """The command, for a program of Ray within a process that holds its placement group."""
    if not order.has_ray_workers:
        return order.command
    bundle = {"GPU": 1, order.node_type: TYPE_SHARE}
    about = {"bundles": [bundle] * order.choice.gpus, "node": order.node, "name": order.key, "namespace": NAMESPACE}
    program = f"{getsource(hold_group)}\nimport sys\nsys.exit(hold_group(sys.argv[1], sys.argv[2:]))"
    return sys.executable, "-P", "-u", "-c", program, json.dumps(about), *order.command


def hold_group(about: str, command: list[str]) -> int:
    """Reserve a placement group, run the command and return its exit code; the group goes when this process does.

    It runs by itself inside a job of Ray, so that it imports nothing of epochcast. `about` is JSON: the bundles, the
    node they are to be on, and the name and the namespace of the group.
    """
    import json
    import signal
    import subprocess

    import ray
    from ray.util.placement_group import placement_group

    group = json.loads(about)
    ray.init(address="auto", namespace=group["namespace"], log_to_driver=False)
    bundles = group["bundles"]
    pinned = None if group["node"] is None else [{"ray.io/node-id": group["node"]}] * len(bundles)
    reserved = placement_group(bundles, strategy="STRICT_PACK", name=group["name"], bundle_label_selector=pinned)
    ray.get(reserved.ready())
    # Ray signals the command as well; this waits for it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    code = subprocess.Popen(command).wait()
    return code if code >= 0 else 128 - code


def _env(order: StartOrder) -> dict[str, str]:
    grace = {"RAY_JOB_STOP_WAIT_TIME_S": str(ceil(order.grace_seconds))}
    group = {"EPOCHCAST_PLACEMENT_GROUP": order.key, "EPOCHCAST_RAY_NAMESPACE": NAMESPACE}
    return {**order.env, **grace, **(group if order.has_ray_workers else {})}


def _seen(job: Any) -> StartState:
    status = str(getattr(job.status, "value", job.status))
    if status in _WAITS:
        return StartState(job.submission_id, PENDING)
    if status in _RUNS:
        return StartState(job.submission_id, RUNNING)
    code = getattr(job, "driver_exit_code", None)
    if status == "SUCCEEDED":
        code = 0
    # A job whose process ended by itself has an exit code; without one its node or Ray itself went away.
    is_lost = status == "FAILED" and code is None
    return StartState(
        job.submission_id, OVER, code, is_lost, None if status == "SUCCEEDED" else _line(job.message or status)
    )


def _line(error: object) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]
