"""A Kubernetes Job for a queue of Kueue (kueue.sigs.k8s.io, "Run A Kubernetes Job"): a pod for each node.

Kueue finds its queue by a label and begins the job when there is room for it; so it is written suspended.
"""

import shlex
from math import ceil
from typing import Any

from epochcast.decide.handover.launchers import Nodes, launch_of
from epochcast.decide.handover.resource_request import Request, percentile_note
from epochcast.decide.handover.yaml_text import manifest
from epochcast.errors import BadInput
from epochcast.units import show_gpus

MEBIBYTE = 2**20
# Under which names the vendors' plugins offer their devices to Kubernetes.
RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Intel": "gpu.intel.com/i915"}


def kueue(request: Request, *, queue: str | None, image: str | None) -> str:
    """The manifest. `queue` is the local queue, `image` what the container runs."""
    if queue is None or image is None:
        raise BadInput("a job of Kueue needs its local queue and its container image: give --queue and --image")
    if request.device.vendor not in RESOURCES:
        raise BadInput(f"no Kubernetes resource is known for devices of {request.device.vendor}")
    command, has_launcher = _command(request)
    amounts: dict[str, Any] = {"cpu": str(request.cpus)}
    if request.memory_bytes is not None:
        amounts["memory"] = f"{ceil(request.memory_bytes / MEBIBYTE)}Mi"
    amounts[RESOURCES[request.device.vendor]] = str(request.gpus_per_node)
    container = {
        "name": "training",
        "image": image,
        "command": ["/bin/sh", "-c", command],
        "resources": {"requests": amounts, "limits": amounts},
    }
    is_meeting = has_launcher and request.nodes > 1
    spec = {
        "suspend": True,
        "parallelism": request.nodes,
        "completions": request.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": request.seconds,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                **({"subdomain": request.name} if is_meeting else {}),
                "containers": [container],
            }
        },
    }
    metadata = {"name": request.name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    device = (
        f"made for {show_gpus(request.device.name, request.gpus, request.nodes)}: the queue's flavour must have them"
    )
    text = manifest(document, (percentile_note(request), device, *request.notes))
    return f"{text}---\n{manifest(_service(request.name))}" if is_meeting else text


def _command(request: Request) -> tuple[str, bool]:
    """What every pod runs, and whether a launcher starts the processes of its GPUs."""
    command = request.started()
    launch = launch_of(command)
    if launch is None:
        return command, False
    if request.nodes == 1:
        return launch.over(1, request.gpus_per_node, _nodes(request)), True
    place = _nodes(request)
    lines = []
    if launch.launcher.needs_hostfile:
        hosts = [f"{request.name}-{node}.{request.name} slots={request.gpus_per_node}" for node in range(request.nodes)]
        lines.append(f"printf '%s\\n' {shlex.join(hosts)} > {place.hostfile}")
    return "\n".join([*lines, launch.over(request.nodes, request.gpus_per_node, place)]), True


def _nodes(request: Request) -> Nodes:
    """Pods of an indexed Job are called by their index (kubernetes.io, "Job with Pod-to-Pod Communication")."""
    head = f"{request.name}-0.{request.name}"
    return Nodes(head=head, rank="$JOB_COMPLETION_INDEX", job=request.name, hostfile="/tmp/hostfile")


def _service(name: str) -> dict[str, Any]:
    """The headless service under which pods of the Job find each other."""
    spec = {"clusterIP": "None", "selector": {"job-name": name}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
