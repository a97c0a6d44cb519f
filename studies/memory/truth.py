"""What a step holds at most, counted by PyTorch itself: the profiler's allocator events of real steps on this host's
processors, and MemTracker on `meta`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.torch.fused_kernels import cuda_kernels
from epochcast.describe.capture.torch.meta_modules import constructed, on_meta
from epochcast.describe.capture.torch.meta_steps import OPTIMIZERS
from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
from epochcast.describe.graph.recipe import Recipe
from epochcast.hardware.catalogue import find_device
from epochcast.measure.bench.bench_networks import find_network
from epochcast.measure.bench.torch_step import WARM_UP_STEPS, TorchStep
from epochcast.predict.memory.lifetimes import lifetimes
from epochcast.predict.memory.peak import peak_memory

CHECKED_OPTIMIZERS = ("momentum", "adam")

PROFILED: Mapping[str, int] = {
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
"""torchvision networks whose real steps are run, and the size of their images."""

TRACKED = (
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "resnet50",
    "resnext50_32x4d",
    "shufflenet_v2_x1_0",
    "squeezenet1_1",
    "vgg11_bn",
)
"""torchvision networks that MemTracker follows, on images of 224 pixels."""


@dataclass(frozen=True)
class Check:
    """One step: our peak of allocated bytes, and the counted one."""

    network: str
    optimizer: str
    forecast_bytes: int
    counted_bytes: int

    @property
    def error(self) -> float:
        """Forecast over counted, minus one."""
        return self.forecast_bytes / self.counted_bytes - 1


def profiled(network: str, optimizer: str, size: int, batch: int) -> Check:
    """A real step on the CPU: all that the allocator allocates and frees."""
    recipe = Recipe(batch, optimizer=optimizer)
    step = TorchStep(find_network(f"torchvision:{network}", (3, size, size)), recipe, "cpu")
    for _ in range(WARM_UP_STEPS):
        step()
    trace = find_model(f"torchvision:{network}", (3, size, size)).trace(recipe)
    forecast = peak_memory(trace, find_device("cpu"))
    return Check(network, optimizer, forecast.allocated_bytes, step.peak_bytes())


def tracked(network: str, optimizer: str, size: int, batch: int) -> Check:
    """The same step on `meta` under torch.distributed._tools.MemTracker, with the kernels CUDA would choose.

    MemTracker is a dispatch mode, so that autograd sums gradients out of place while it looks on; so do we here.
    """
    from torch.distributed._tools.mem_tracker import MemTracker

    heads = {"aux_logits": False} if network == "googlenet" else {}
    models = import_torchvision().models
    module = on_meta(constructed(lambda: models.get_model(network, weights=None, **heads), network)).train()
    with torch.device("meta"):
        images, labels = torch.empty(batch, 3, size, size), torch.empty(batch, dtype=torch.int64)
    update = OPTIMIZERS[optimizer](list(module.parameters()))
    tracker = MemTracker()
    tracker.track_external(module, update, images, labels)
    with cuda_kernels(), tracker:
        for number in range(2):
            torch.autograd.backward(nn.functional.cross_entropy(module(images), labels))
            update.step()
            update.zero_grad(set_to_none=True)
            if number == 0:
                tracker.reset_mod_stats()
    counted = max(int(of_device["Total"]) for of_device in tracker.get_tracker_snapshot("peak").values())
    trace = find_model(module, (3, size, size)).trace(Recipe(batch, optimizer=optimizer))
    lives = lifetimes(trace, sums_in_place=False)
    return Check(network, optimizer, int(lives.live_bytes(lives.bytes_at(batch)).sum(axis=0).max()), counted)
