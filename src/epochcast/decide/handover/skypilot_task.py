"""A task of SkyPilot (docs.skypilot.co, "Task YAML"): the accelerators of a forecast, or the machine that `plan` chose.

SkyPilot has no limit of time; the forecast is in the comments, and `epochcast.surfaces.integrations.skypilot` gives it
to the optimizer.
"""

from epochcast.base.caching import remembered
from epochcast.decide.handover.launchers import Nodes, launch_of
from epochcast.decide.handover.resource_request import Request, percentile_note
from epochcast.decide.handover.yaml_text import manifest
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.hardware.instance import Instance

# Accelerators as SkyPilot's catalogue spells them (skypilot-org/skypilot-catalog, AcceleratorName in vms.csv); of
# several names of one device the first.
ACCELERATORS = (
    *("H100", "H100-NVL", "H200", "B200", "B300", "GH200", "A100", "A100-80GB", "A10", "A10G", "A16", "A30", "A40"),
    *("L4", "L40", "L40S", "T4", "V100", "V100-32GB", "P100", "P4", "K80", "M60", "MI300X", "RTX3060", "RTX3090"),
    *("RTX4060", "RTX4070", "RTX4090", "RTX5070", "RTX5090", "RTXA4000", "RTXA4500", "RTXA5000", "RTXA6000"),
    *("RTX2000-Ada", "RTX4000-Ada", "RTX6000-Ada", "RTXPRO4000", "RTXPRO4500", "RTXPRO5000", "RTXPRO6000"),
)
# Clouds of SkyPilot 0.14 (`sky.clouds`) that have machines in our catalogue; it lists prices of others, too.
CLOUDS = (
    *("aws", "azure", "cudo", "do", "fluidstack", "gcp", "hyperbolic", "ibm", "lambda", "mithril", "nebius", "oci"),
    *("paperspace", "primeintellect", "runpod", "scp", "seeweb", "shadeform", "vast", "verda", "yotta"),
)

_NODES = Nodes(
    head="$head_node", rank="$SKYPILOT_NODE_RANK", job="$SKYPILOT_TASK_ID", hostfile="$HOME/hostfile-epochcast"
)


def skypilot(request: Request) -> str:
    """The task."""
    if request.instance is not None:
        resources = _machine(request.instance, is_spot=request.is_spot)
    else:
        resources = {"accelerators": f"{accelerator(request.device)}:{request.gpus_per_node}"}
    document = {
        "name": request.name,
        "num_nodes": request.nodes,
        "resources": resources,
        "run": _run(request),
    }
    return manifest(document, (percentile_note(request), *request.notes))


def _run(request: Request) -> str:
    """SkyPilot runs the command once on every node; launchers meet at the first ("Distributed Multi-Node Jobs")."""
    command = request.started()
    launch = launch_of(command)
    if launch is None:
        return command
    started = launch.over(request.nodes, request.gpus_per_node, _NODES)
    if request.nodes == 1:
        return started
    lines = ['head_node=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)']
    if launch.launcher.needs_hostfile:
        lines.append(f'echo "$SKYPILOT_NODE_IPS" | sed \'s/$/ slots={request.gpus_per_node}/\' > "{_NODES.hostfile}"')
    return "\n".join([*lines, started])


def _machine(instance: Instance, *, is_spot: bool) -> dict[str, object]:
    """One machine where its price was read: elsewhere, or not as spot, it costs more than the plan says."""
    if instance.cloud not in CLOUDS:
        raise BadInput(f"SkyPilot rents no machines of {instance.cloud}; it does of {', '.join(CLOUDS)}")
    name, _, attached = instance.name.partition("+")  # n1-standard-8+1xT4
    prefix = "Standard_" if instance.cloud == "azure" else ""
    resources: dict[str, object] = {
        "infra": f"{instance.cloud}/{instance.region}" if instance.region else instance.cloud,
        "instance_type": f"{prefix}{name}",
    }
    if attached:  # other machines say themselves which accelerators they have
        resources["accelerators"] = f"{attached.partition('x')[2]}:{instance.gpus}"
    return resources | ({"use_spot": True} if is_spot else {})


def accelerator(device: Device) -> str:
    """SkyPilot's name of a device."""
    names = _names()
    if device.name not in names:
        raise BadInput(f"SkyPilot's catalogue has no accelerator that is known to be a {device.name}")
    return names[device.name]


@remembered(1)
def _names() -> dict[str, str]:
    names: dict[str, str] = {}
    for name in ACCELERATORS:
        names.setdefault(find_device(name).name, name)
    return names


def device_of(name: str) -> Device:
    """The device of an accelerator as SkyPilot spells it."""
    try:
        return find_device(name)
    except EpochcastError as error:
        raise BadInput(f"SkyPilot's accelerator {name!r}: {error}") from None
