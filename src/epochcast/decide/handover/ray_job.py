"""A job of Ray: the body of POST /api/jobs/, which `JobSubmissionClient.submit_job(**spec)` takes, too.

The entry point reserves processors, GPUs and memory on one node. Over several nodes the training itself asks Ray for
its GPUs (Ray Train does), so the entry point reserves none.
"""

import json
from typing import Any

from epochcast.decide.handover.launchers import Nodes, launch_of
from epochcast.decide.handover.resource_request import Request, percentile_note
from epochcast.errors import BadInput
from epochcast.units import show_gpus


def _entrypoint(request: Request) -> str:
    """The command. Ray starts it on one node, so that a launcher would not reach the others."""
    command = request.started()
    launch = launch_of(command)
    if launch is None:
        return command
    if request.nodes > 1:
        raise BadInput(
            f"a job of Ray starts {launch.launcher.name} on one node, not on {request.nodes}: "
            "give a --run that asks Ray for its GPUs (Ray Train), or a forecast with --nodes 1"
        )
    return launch.over(1, request.gpus_per_node, Nodes(head="localhost", rank="0", job=request.name, hostfile=""))


def ray_job(request: Request) -> str:
    """The specification as JSON."""
    spec: dict[str, Any] = {"entrypoint": _entrypoint(request), "runtime_env": {"working_dir": "."}}
    if request.nodes == 1:
        spec |= {"entrypoint_num_cpus": request.cpus, "entrypoint_num_gpus": request.gpus}
        if request.memory_bytes is not None:
            spec["entrypoint_memory"] = request.memory_bytes
    spec["metadata"] = {
        "name": request.name,
        "epochcast_seconds_expected": str(round(request.middle_seconds)),
        "epochcast_seconds_p95": str(request.seconds),
        "epochcast_placement": show_gpus(request.device.name, request.gpus, request.nodes),
        "epochcast_note": percentile_note(request),
    }
    return json.dumps(spec, indent=2, ensure_ascii=False) + "\n"
