"""PALEO's estimates of a step: one GPU, data parallel, hybrid parallel; from its data sheets and percents of peak."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import PHASES, Trace
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.hardware.link import Link
from epochcast.predict.comm.allreduce import all_reduce_seconds
from epochcast.predict.cost.paleo import PLATFORMS, Paleo
from epochcast.predict.cost.software_setting import TODAY
from studies.paleo.networks import SPLIT_LAYERS, alexnet, nin, vgg16

# PALEO's links: no latency, and the platform's percent of the nominal bandwidth. PCIe 2.0 x16 is 8 GB/s, of which
# 0.75 leave the 6 GB/s of "One weird trick"; InfiniBand is taken at 70 Gbit/s.
PCIE_BYTES_PER_SECOND = 8e9 * PLATFORMS["one_weird_trick"].link_fraction
INFINIBAND_BYTES_PER_SECOND = 70e9 / 8 * PLATFORMS["caffe"].link_fraction
GPUS_BEHIND_ONE_SWITCH = 4  # between two PCIe switches PALEO halves the bandwidth

IMAGENET_IMAGES = 1.2e6  # PALEO's hours are 90 epochs of 1.2 million images, its days 47 epochs of them (FireCaffe)
ALEXNET_EPOCHS, NIN_EPOCHS = 90, 47


def device(name: str, generation: str, peak_flops_per_second: float, memory_gibibytes_per_second: float) -> Device:
    """A data sheet as PALEO read it: its program divides bytes by 2³⁰ and then by "GB/s"."""
    return Device(
        name=name,
        vendor="NVIDIA",
        kind="gpu",
        generation=generation,
        year=2013,
        compute_units=1,
        clock_hertz=1e9,
        peak_flops_per_second={"fp32": peak_flops_per_second},
        memory_bytes=2**32,
        memory_bytes_per_second=memory_gibibytes_per_second * 2**30,
        l2_bytes=None,
        launch_seconds=None,
        interconnect="pcie2",
        host_link="pcie2",
        tensor_cores=False,
        source="Qi et al. 2017, published program",
        verified=True,
    )


TITAN_X = device("TITAN X", "maxwell", 6144e9, 336.5)
K20 = device("K20", "kepler", 3520e9, 208)
K20X = device("K20X", "kepler", 3935e9, 250)

TENSORFLOW = Paleo(compute_fraction=PLATFORMS["tensorflow"].compute_fraction)
TENSORFLOW_FFT = Paleo("paleo_fft", "fft", PLATFORMS["tensorflow"].compute_fraction)
CAFFE = Paleo(compute_fraction=PLATFORMS["caffe"].compute_fraction)
ONE_WEIRD_TRICK = Paleo(compute_fraction=PLATFORMS["one_weird_trick"].compute_fraction)

ALEXNET = BuiltModel("alexnet", alexnet)
VGG16 = BuiltModel("vgg16", vgg16)
NIN = BuiltModel("nin", nin)
ALEXNET_OF_TRICK = {
    gpus: BuiltModel(f"alexnet/{gpus}", partial(alexnet, conv4=256, slices=gpus)) for gpus in (1, 2, 4, 8)
}


@dataclass(frozen=True)
class Passes:
    """Seconds of one step on one GPU."""

    forward: float
    backward: float
    update: float

    @property
    def total(self) -> float:
        return self.forward + self.backward + self.update


def passes(model: BuiltModel, batch: int, cost: Paleo, gpu: Device) -> Passes:
    """Forward, backward and update of one GPU."""
    return _passes(model.trace(Recipe(batch)), cost, gpu, repeats=1)


def _passes(trace: Trace, cost: Paleo, gpu: Device, repeats: int) -> Passes:
    """Sums by phase, with the sliced layers run `repeats` times forward and backward."""
    seconds, phase = cost.costs(trace.columns, gpu, TODAY).mid, trace.columns.phase
    is_sliced = np.isin(trace.layers, SPLIT_LAYERS)
    times = np.where(is_sliced, repeats, 1)
    forward, backward, update = (float((seconds * times)[phase == PHASES.index(part)].sum()) for part in Phase)
    return Passes(forward, backward, update)


def data_parallel_seconds(
    model: BuiltModel, batch_per_gpu: int, cost: Paleo, gpu: Device, group: Group, algorithm: str = "tree"
) -> float:
    """compute(batch per GPU) + all-reduce of every weight, nothing overlapped."""
    trace = model.trace(Recipe(batch_per_gpu))
    size_bytes = sum(parameter.tensor.bytes for parameter in trace.parameters)
    return _passes(trace, cost, gpu, 1).total + all_reduce_seconds(size_bytes, group, algorithm)


def hybrid_seconds(batch_per_gpu: int, gpus: int) -> float:
    """A step of "One weird trick" (Krizhevsky 2014): convolutions data parallel, the two wide layers model parallel.

    Each GPU runs the convolutions on its own images. Then, in as many rounds as there are GPUs, all GPUs work on one
    GPU's images, each on its slice of the wide layers, and exchange the slices' outputs. The images' activations are
    sent while the round before is computed, so only the first transfer of each pass shows. fc8 is data parallel again.
    """
    group = pcie(gpus)
    trace = ALEXNET_OF_TRICK[gpus].trace(Recipe(batch_per_gpu))
    compute = _passes(trace, ONE_WEIRD_TRICK, K20, repeats=gpus).total
    if gpus == 1:
        return compute
    shared_bytes = sum(p.tensor.bytes for p in trace.parameters if p.layer not in SPLIT_LAYERS)
    fc6 = next(op for op in trace.ops if op.layer == "fc6")
    first_transfer = group.slowest.seconds(fc6.inputs[0].bytes)
    exchanges = 2 * (gpus - 1) * group.slowest.seconds(fc6.output.bytes)  # behind fc6 and behind fc7
    moved = 2 * (first_transfer + gpus * exchanges)  # forward and backward
    return compute + all_reduce_seconds(shared_bytes, group, "tree") + moved


def pcie(gpus: int) -> Group:
    """GPUs on PCIe, four to a switch; between switches half the bandwidth, which a flat tree pays throughout."""
    inner = Link(0.0, PCIE_BYTES_PER_SECOND)
    outer = Link(0.0, PCIE_BYTES_PER_SECOND / 2)
    switches = -(-gpus // GPUS_BEHIND_ONE_SWITCH)
    return Group(switches, gpus // switches, inner, outer)


def infiniband(gpus: int) -> Group:
    """One GPU per node."""
    link = Link(0.0, INFINIBAND_BYTES_PER_SECOND)
    return Group(gpus, 1, link, link)
