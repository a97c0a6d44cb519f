"""What real steps allocate on this host, counted by PyTorch itself: the profiler's allocator events, and MemTracker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from epochcast.capture.resolve import find_model
from epochcast.capture.torch.fused import cuda_choices
from epochcast.capture.torch.shim import import_torchvision
from epochcast.graph.recipe import Recipe
from epochcast.memory.peak import peak_memory

OPTIMIZERS: Mapping[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, foreach=True),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, foreach=True),
}
NETWORKS: Mapping[str, int] = {
    "squeezenet1_1": 96,
    "resnet18": 112,
    "resnet34": 112,
    "resnet50": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 96,
    "shufflenet_v2_x1_0": 96,
    "mnasnet1_0": 64,
    "regnet_y_400mf": 64,
    "efficientnet_b0": 64,
    "densenet121": 64,
}
"""torchvision networks and the size of their images."""


@dataclass(frozen=True)
class Check:
    """One step: what we say is alive at most, and what was counted."""

    network: str
    optimizer: str
    forecast_bytes: int
    counted_bytes: int

    @property
    def error(self) -> float:
        """Forecast over counted, minus one."""
        return self.forecast_bytes / self.counted_bytes - 1


def forecast_bytes(network: str, optimizer: str, size: int, batch: int) -> int:
    """The most that is alive in a step."""
    model = find_model(f"torchvision:{network}", (3, size, size))
    return int(peak_memory(model.trace(Recipe(batch, optimizer=optimizer))).timeline.total_bytes.max())


def profiled(network: str, optimizer: str, size: int, batch: int) -> Check:
    """A real step on the CPU, its second: everything the allocator hands out and takes back."""
    module = import_torchvision().models.get_model(network).train()
    images, labels = torch.randn(batch, 3, size, size), torch.zeros(batch, dtype=torch.int64)
    updates = OPTIMIZERS[optimizer](list(module.parameters()))

    def step() -> None:
        torch.autograd.backward(nn.functional.cross_entropy(module(images), labels))
        updates.step()
        updates.zero_grad(set_to_none=True)

    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step()
    events = [e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    kept = [*module.parameters(), *module.buffers(), images, labels]
    kept += [v for s in updates.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
    counted = most + sum(t.numel() * t.element_size() for t in kept)
    return Check(network, optimizer, forecast_bytes(network, optimizer, size, batch), counted)


def tracked(network: str, optimizer: str, size: int, batch: int) -> Check:
    """The same step on `meta` under torch.distributed._tools.MemTracker, with the kernels CUDA would choose."""
    from torch.distributed._tools.mem_tracker import MemTracker

    module = import_torchvision().models.get_model(network).train().to("meta")
    with torch.device("meta"):
        images, labels = torch.empty(batch, 3, size, size), torch.empty(batch, dtype=torch.int64)
    updates = OPTIMIZERS[optimizer](list(module.parameters()))
    tracker = MemTracker()
    tracker.track_external(module, updates, images, labels)
    with cuda_choices(), tracker:
        for number in range(2):
            torch.autograd.backward(nn.functional.cross_entropy(module(images), labels))
            updates.step()
            updates.zero_grad(set_to_none=True)
            if number == 0:
                tracker.reset_mod_stats()
    counted = max(int(of_device["Total"]) for of_device in tracker.get_tracker_snapshot("peak").values())
    return Check(network, optimizer, forecast_bytes(network, optimizer, size, batch), counted)
