"""torch.nn.DataParallel: one process, one thread per GPU, everything by way of GPU 0.

In every step GPU 0 scatters the inputs, broadcasts all parameters, gathers the outputs, computes the loss over all of
them, and adds up the gradients of all replicas; the update is its own. Threads share the interpreter lock, so that the
launches of all forward passes come one after another (autograd's threads run outside of it), and Python copies the
module's tables once per replica.

    step = scatter + max(broadcast(parameters), tables) + forward + gather + p losses + backward
           + reduce(gradients) + update

Copies run while Python makes the tables. Limit: buffers are not sent back.
"""

from dataclasses import dataclass, replace

import numpy as np

from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.trace import SMALL_BATCH, Trace
from epochcast.describe.graph.training import LOSS_LAYER
from epochcast.errors import BadInput
from epochcast.hardware.cluster import Group
from epochcast.hardware.device import Device
from epochcast.predict.comm.collectives import broadcast_seconds
from epochcast.predict.forecast.exchange import gradients, waiting_for_the_slowest
from epochcast.predict.forecast.step_parts import FORWARD, Kernels, StepParts, assembled
from epochcast.predict.forecast.strategies.strategy import Strategy, Timing
from epochcast.predict.memory.communication_buffers import Communicator
from epochcast.predict.memory.sharding import RankShares

# `replicate` walks every parameter of every replica in Python. Least relative squares of (step on g GPUs − step on one)
# over 594 rows of torchvision_gpu_bench (22 networks, three GPUs, 2 to 4 of them, three precisions) on tensors · g and
# bytes: 96 µs, and 9.4 of PCIe's 15.75 GB/s each way.
TENSOR_SECONDS = 96e-6
COPY_FRACTION = 0.6


@dataclass(frozen=True, slots=True)
class OneProcess(Strategy):
    """One process sends the model to every GPU in every step."""

    def timing(self, trace: Trace, middle: Kernels, group: Group, device: Device) -> Timing:
        return lambda kernels: waiting_for_the_slowest(_parts(kernels, group), trace, group, self.runner)

    def memory_shares(self, trace: Trace, gpus: int) -> RankShares:
        """The first GPU gathers what the others make and has the loss of all, kept here for the whole step."""
        return RankShares(others_sample_bytes=(gpus - 1) * _loss_sample_bytes(trace))

    def communicators(self, group: Group) -> tuple[Communicator, ...]:
        """`broadcast_coalesced` and `reduce_add_coalesced` take NCCL where it is there."""
        return (Communicator(group),)

    def check(self, gpus: int, nodes: int) -> None:
        Strategy.check(self, gpus, nodes)
        if nodes > 1:
            raise BadInput(f"strategy {self.name!r} is for the GPUs of one box, not {nodes}; try ddp")


def _parts(kernels: Kernels, group: Group) -> StepParts:
    """The step of one batch per replica."""
    trace, replicas = kernels.trace, group.ranks
    on_first = np.isin(np.array(trace.layers), [LOSS_LAYER])
    seconds = np.where(on_first, replicas, 1) * kernels.seconds
    launches = np.where(trace.columns.phase == FORWARD, replicas, 1) * kernels.launches
    shared = Kernels(trace, seconds, launches)
    copies = _copying(group)
    moved_bytes = _input_bytes(kernels) + _output_bytes(kernels)
    tables = replicas * len(trace.parameters) * TENSOR_SECONDS
    comm = (replicas - 1) * copies.slowest.seconds(moved_bytes)
    comm += max(0.0, broadcast_seconds(_model_bytes(trace), copies) - tables)
    if trace.recipe.mode != "forward":
        comm += broadcast_seconds(gradients(trace).total_bytes, copies)
    return assembled(
        shared,
        alone_seconds=shared.alone_seconds + tables,
        comm_seconds=comm,
        repeated_comm_seconds=comm,
    )


def _copying(group: Group) -> Group:
    """The wires as copies from GPU to GPU use them: more of their rate than an all-reduce sustains, for any number."""
    inner = group.inner
    faster = max(COPY_FRACTION, inner.sustained_fraction)
    return replace(group, inner=replace(inner, sustained_fraction=faster, rank_fractions=()))


def _model_bytes(trace: Trace) -> int:
    """All parameters as they are stored."""
    names = {p.name for p in trace.parameters}
    sizes = {t.name: t.bytes for op in trace.template.base for t in (*op.weights, *op.inputs) if t.name in names}
    return sum(sizes.values())


def _loss_sample_bytes(trace: Trace) -> int:
    """What goes into the loss of a sample, what the loss makes of it, and the gradients on the way back."""
    ops = [op for op in trace.template.base if op.layer == LOSS_LAYER]
    sizes = {t.name: t.bytes for op in ops for t in (*op.inputs, *op.outputs) if t.dtype.is_float}
    return sum(sizes.values()) // SMALL_BATCH


def _input_bytes(kernels: Kernels) -> float:
    return kernels.trace.batch * sum(t.bytes for t in kernels.trace.inputs)


def _output_bytes(kernels: Kernels) -> float:
    """What the last forward op in front of the loss makes."""
    ops = [op for op in kernels.trace.template.base if op.phase is Phase.FORWARD and op.layer != LOSS_LAYER]
    return kernels.trace.batch * ops[-1].output.bytes / SMALL_BATCH if ops else 0.0
