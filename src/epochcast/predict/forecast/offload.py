"""Training whose optimizer (and parameters) lie in the host's memory (Ren et al. 2021, "ZeRO-Offload"; Rajbhandari et
al. 2021, "ZeRO-Infinity"), and state that is paged there where the device has no room (bitsandbytes).

    optimizer     gradients travel to the host beside the backward pass; the host's processors update float32 copies of
                  the parameters; what they wrote travels back
    parameters    the same, and every pass fetches the parameters unit by unit
    activations   what the forward pass saves travels to the host beside it and back beside the backward pass

Every rank has its share of all of it (ZeRO), and the ranks of a node share its processors. What a pass does not hide is
exposed communication, the host's work is the update. Copies to and from the host run at once, each on its own wire.

Limits: disks (NVMe) are not modelled; tiles of the update that overlap their copies are charged one after the other.
"""

from dataclasses import replace

from epochcast.describe.graph.activation_offload import offloaded_bytes
from epochcast.describe.graph.optimizer import OPTIMIZERS
from epochcast.describe.graph.recipe import OFFLOADS, Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_link
from epochcast.hardware.device import Device
from epochcast.interval import Interval
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import StepForecast, StepParts
from epochcast.predict.memory.lifetimes import Role, lifetimes
from epochcast.predict.memory.sharding import HALF_BYTES

# Bytes a second that DeepSpeed's CPU-Adam moves on two Xeon Platinum 8168: ten billion parameters in 2.57 s, 28 bytes
# each (Ren et al. 2021, table 4; recalled). Other hosts: between 0.6 and 2 times as long.
HOST_BYTES_PER_SECOND = 10e9 * 28 / 2.57
FASTER, SLOWER = 0.6, 2.0
# Copies from pinned memory reach 12.3 of the 15.75 GB/s of PCI Express 3 (NVIDIA's bandwidthTest; recalled).
PINNED_FRACTION = 0.78
NONE, _, PARAMETERS = OFFLOADS


def check_offload(recipe: Recipe, placement: Placement) -> None:
    """Refuse what cannot be offloaded."""
    if recipe.update_in_backward and placement.gpus > 1:
        raise BadInput("`update_in_backward` is modelled on one GPU: ranks would have to exchange each gradient first")
    is_elsewhere = recipe.offload != NONE or recipe.offload_activations
    if is_elsewhere and placement.device.kind != "gpu":
        raise BadInput(f"offloading moves memory from a GPU to its host, and {placement.device.name} is none")
    if recipe.offload == NONE:
        return
    strategy, rule = placement.strategy, OPTIMIZERS[recipe.optimizer]
    if recipe.offload not in strategy.offloads:
        wanted = "zero3 or fsdp" if recipe.offload == PARAMETERS else "zero1, zero2, zero3 or fsdp"
        raise BadInput(f"`offload` of {recipe.offload} needs {wanted} (or one GPU), not {strategy.name}")
    if rule.is_paged or rule.state_dtype is not None:
        raise BadInput(f"{recipe.optimizer} runs on the GPU alone: it cannot be offloaded")


def host_bytes(trace: Trace, placement: Placement) -> int:
    """Memory that all ranks of a node need of their host: state, a float32 gradient and a float32 parameter each; and
    the activations of one pass.
    """
    saved = placement.ranks_per_node * (offloaded_bytes(trace.ops) if trace.recipe.offload_activations else 0)
    if trace.recipe.offload == NONE:
        return saved
    lives, rules = lifetimes(trace), trace.recipe.precision_rules
    trained = trace.parameter_counts[1] * DType.FLOAT32.bytes
    need = lives.total_bytes(Role.OPTIMIZER_STATE) + trained + (0 if rules.weights.has_masters else trained)
    if trace.recipe.offload == PARAMETERS:
        need += lives.total_bytes(Role.PARAMETERS)
    return saved + round(need * placement.ranks_per_node / placement.gpus)


def with_offload(step: StepForecast, trace: Trace, placement: Placement) -> StepForecast:
    """The step with the host's update and the copies it waits for."""
    recipe = trace.recipe
    if recipe.offload_activations:
        step = _with_activations(step, trace, placement)
    parts = step.parts
    if recipe.offload == NONE or recipe.mode != "training":
        return step
    passes, ranks = recipe.accumulate, placement.gpus
    total, trained = trace.parameter_counts
    wide = recipe.precision_rules.is_wide
    each_bytes = recipe.precision_rules.products.bytes if wide else HALF_BYTES
    down, up, fetched = (
        copy_seconds(each_bytes * count / ranks, placement.device) for count in (trained, trained, total)
    )
    exposed = passes * max(0.0, down - parts.backward / passes) + up
    if recipe.offload == PARAMETERS:
        for part in (parts.forward, parts.backward):
            exposed += passes * max(0.0, fetched - part / passes)
        exposed -= up  # what is fetched next is what was updated
    words = 3 + 2 * OPTIMIZERS[recipe.optimizer].state_tensors  # parameter twice, gradient once, each state twice
    moved_bytes = words * DType.FLOAT32.bytes * trained * placement.ranks_per_node / ranks
    return _moved(step, replace(parts, update=moved_bytes / HOST_BYTES_PER_SECOND), exposed)


def _with_activations(step: StepForecast, trace: Trace, placement: Placement) -> StepForecast:
    """What a pass saves travels beside it, one way in forward, the other in backward; the slower of both counts."""
    passes, seconds = trace.recipe.accumulate, copy_seconds(offloaded_bytes(trace.ops), placement.device)
    each = (step.parts.forward / passes, step.parts.backward / passes)
    return _moved(step, step.parts, passes * sum(max(0.0, seconds - part) for part in each))


def with_paging(step: StepForecast, paged_bytes: int, device: Device) -> StepForecast:
    """The step whose optimizer fetches so much state from the host and writes it back, both at once."""
    if not paged_bytes:
        return step
    return _moved(step, step.parts, copy_seconds(paged_bytes, device))


def copy_seconds(size_bytes: float, device: Device) -> float:
    """One way between a GPU and its host."""
    link = find_link(device.host_link)
    return link.latency_seconds + size_bytes / (PINNED_FRACTION * link.bandwidth_bytes_per_second)


def _moved(step: StepForecast, parts: StepParts, exposed_seconds: float) -> StepForecast:
    """The step with another update and more communication; how fast a host is, is not known well."""
    parts = replace(parts, exposed_comm=parts.exposed_comm + exposed_seconds)
    own = parts.update - step.parts.update if parts.update != step.parts.update else 0.0
    added = (parts.update if own else 0.0) + exposed_seconds
    gone = step.parts.update if own else 0.0
    low, middle, high = step.seconds.low, step.seconds.mid, step.seconds.high
    seconds = Interval(
        max(0.0, low - gone * low / middle) + FASTER * added,
        parts.total_seconds,
        max(parts.total_seconds, high - gone + SLOWER * added),
        step.seconds.coverage,
    )
    return replace(step, seconds=seconds, parts=parts)
