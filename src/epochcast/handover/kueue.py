"""A Kubernetes Job for a queue of Kueue (kueue.sigs.k8s.io, "Run A Kubernetes Job"): a pod for each node.

Kueue finds its queue by a label and begins the job when there is room for it; so it is written suspended.
"""

from math import ceil
from typing import Any

from epochcast.errors import BadInput
from epochcast.handover.manifest import manifest
from epochcast.handover.request import Request, percentile_note

MEBIBYTE = 2**20
# Under which names the vendors' plugins offer their devices to Kubernetes.
RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu", "Intel": "gpu.intel.com/i915"}


def kueue(request: Request, *, queue: str | None, image: str | None) -> str:
    """The manifest. `queue` is the local queue, `image` what the container runs."""
    if queue is None or image is None:
        raise BadInput("a job of Kueue needs its local queue and its container image: give --queue and --image")
    if request.device.vendor not in RESOURCES:
        raise BadInput(f"no Kubernetes resource is known for devices of {request.device.vendor}")
    amounts: dict[str, Any] = {"cpu": str(request.cpus)}
    if request.memory_bytes is not None:
        amounts["memory"] = f"{ceil(request.memory_bytes / MEBIBYTE)}Mi"
    amounts[RESOURCES[request.device.vendor]] = str(request.gpus_per_node)
    container = {
        "name": "training",
        "image": image,
        "command": ["/bin/sh", "-c", request.started()],
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec = {
        "suspend": True,
        "parallelism": request.nodes,
        "completions": request.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": request.seconds,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    metadata = {"name": request.name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    device = f"made for {request.gpus} × {request.device.name}: the queue's flavour must have them"
    return manifest(document, (percentile_note(request), device, *request.notes))
