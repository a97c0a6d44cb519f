"""Training the efficiency net: op rows one by one, whole networks through the sum of their ops.

    log t(op) = log (Σ_j e^(a_j)·s·(bound/s)^(p_j)·MiB^(q_j) + e^c·free + e^d·traffic) - cap
    step      = factor(source) · the larger of Σ t and Σ launches, smoothed

The a_j are the net's (`predict.cost.learned` says why there is more than one). g, b and the factors are what a device
sustains, learnt with a pull toward the prior; what tiles cost, and how much less is gained than data sheets promise,
is learnt once for all devices. Efficiency is bounded by the cap (Winograd convolutions need up to 2.25 times fewer
multiplications than they are counted with) and never explodes outside the training range, as nets on raw times do.

Host seconds per launch belong to a source of measurements and a device: whoever measured had a host for it. A source
also has a factor of its own, which no forecast uses: whoever measured had an input pipeline, a way of counting and a
framework's build, and without that factor the devices of a source would be blamed for it. Losses are on log seconds.

torch trains it; `predict.cost.learned` evaluates the exported text with numpy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.describe.graph.trace import Columns
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.device import Device
from epochcast.predict.cost.features import features
from epochcast.predict.cost.learned import BOUND, LIMBS, MOST_SLOWDOWN, POWERS, UNIT_SECONDS
from epochcast.predict.cost.op_bounds import CLASS_TOWERS, GROUPS, TOWERS, as_run, caps, limits, op_groups
from epochcast.predict.cost.software_setting import GENERATIONS, SoftwareSetting
from epochcast.predict.cost.waves import SHARPNESS, TILES
from training.examples import Example, select
from training.sibling_order import SiblingOrder

# The columns of what a device sustains: fractions of the data sheet, then factors of seconds.
SUSTAINED = (*OP_MATHS, "vector", "bandwidth", *GROUPS, *GENERATIONS)
BANDWIDTH = SUSTAINED.index("bandwidth")
FIRST_GROUP, _FIRST_GENERATION = SUSTAINED.index(GROUPS[0]), SUSTAINED.index(GENERATIONS[0])
# What the terms start with: at first the bound is all.
_START = (
    *({(1.0, 0.0): 0.0, (0.0, 0.0): -1.0}.get(term, -2.0 if term[1] == 0 else -3.0) for term in POWERS),
    *[-2.0] * LIMBS,
)
# A row timed alone is timed with its launch: it is never shorter than the launch, and near it neither counts alone.
FLOOR_POWER = 3.0
# How sharply a step changes from launch-bound to kernel-bound.
STEP_POWER = 8.0
# What a device sustains is what its generation does, and what it alone does. Both are held near zero, the device's own
# part more: a device with a few measured networks says little about the others. And the weights of the net.
PULL, GROUP_PULL = 0.2, 0.1
GENERATION_PULL, GENERATION_GROUP_PULL = 0.05, 0.01
DECAY = 3e-3
# What holds the factors of sources near one. Those that timed most carefully, and whose devices hardly any other source
# has, are the measure for the rest: they have none.
SOURCE_PULL = 0.2
REFERENCE_SOURCES = ("timm", "neusight")
# The rate of learning. Launches learn faster: few steps wait for them, so a stack's seconds are seldom corrected.
RATE, LAUNCH_RATE = 8e-3, 24e-3
# What tiles cost at first, as a logarithm: small ones and a divided inner size more. What is lost of a data sheet's
# gain is at most this, and at first a tenth of it.
_TILE_START = (*(0.0 if rows * width >= 128 * 128 else 0.2 for rows, width in TILES), 0.4)
MOST_LOSS = 0.6


@dataclass(frozen=True)
class Kernels:
    """What the net sees of ops: features, their limits (`predict.cost.op_bounds`), the cap.

    Then the net of each (`limits.TOWERS`), and where in SUSTAINED the math, the group and the generation of framework
    of each stand.
    """

    inputs: torch.Tensor
    log_compute: torch.Tensor
    log_memory: torch.Tensor
    log_traffic: torch.Tensor
    log_peak: torch.Tensor
    log_bandwidth: torch.Tensor
    paddings: torch.Tensor
    is_tiled: torch.Tensor
    cap: torch.Tensor
    tower: torch.Tensor
    math: torch.Tensor
    group: torch.Tensor
    generation: torch.Tensor

    def __len__(self) -> int:
        return len(self.cap)

    def at(self, pick: torch.Tensor) -> "Kernels":
        """Some of the ops."""
        return Kernels(*(values[pick] for values in vars(self).values()))

    @classmethod
    def joined(cls, parts: Iterable["Kernels"]) -> "Kernels":
        """All ops, concatenated."""
        return cls(*(torch.cat(values) for values in zip(*(vars(part).values() for part in parts), strict=True)))


@dataclass(frozen=True)
class OpRows:
    """Single-op measurements, ready for the net; rows of one `timing` share a floor.

    `is_large`: as large as in training (products of at least 256 in every direction, convolutions of 0.2 Gflop), which
    is what scores are quoted for.
    """

    kernels: Kernels
    device: torch.Tensor
    timing: torch.Tensor
    log_seconds: torch.Tensor
    weight: NDArray[np.float64]
    is_large: NDArray[np.bool_]


@dataclass(frozen=True)
class NetRow:
    """One whole step, ready for the net: each distinct op once, with how many `times` it runs."""

    kernels: Kernels
    times: torch.Tensor
    launches: float
    device: int
    stack: int
    source: int
    log_seconds: float
    weight: float = 1.0


@dataclass
class Vocabulary:
    """Numbers for names."""

    names: dict[str, int] = field(default_factory=dict)

    def index(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


@dataclass(frozen=True)
class Names:
    """The numbers of devices, of software stacks on a device, and of sources of measurements."""

    devices: Vocabulary = field(default_factory=Vocabulary)
    stacks: Vocabulary = field(default_factory=Vocabulary)
    sources: Vocabulary = field(default_factory=Vocabulary)


def kernels_of(columns: Columns, device: Device, setting: SoftwareSetting) -> Kernels:
    """Ops as tensors. Vector arithmetic has a column of its own beside the maths."""
    columns = as_run(columns, device)
    limit = limits(columns, device)
    bandwidth = np.full(len(columns), limit.bandwidth_gain)
    numbers = (features(columns, setting), limit.compute, limit.memory, limit.traffic, limit.peak, bandwidth)
    places = (
        CLASS_TOWERS[columns.op_class],
        np.where(columns.is_matrix, columns.math, len(OP_MATHS)),
        op_groups(columns, setting) + FIRST_GROUP,
        np.full(len(columns), _FIRST_GENERATION + setting.generation),
    )
    sizes = [torch.tensor(values, dtype=torch.float32) for values in (*numbers, limit.paddings)]
    kinds = [torch.tensor(values, dtype=torch.int64) for values in places]
    cap = torch.tensor(caps(columns), dtype=torch.float32)
    return Kernels(*[*sizes, torch.tensor(limit.is_tiled), cap, *kinds])


def net_row(example: Example, names: "Names", weight: float = 1.0) -> NetRow:
    """An example as tensors."""
    columns = example.columns
    first, times = distinct_ops(columns)
    passes = example.passes
    return NetRow(
        kernels_of(select(columns, first), example.device, example.setting),
        torch.tensor(times * passes[first], dtype=torch.float32),
        float(columns.launches @ passes),
        names.devices.index(example.device.name),
        names.stacks.index(stack_name(example.source, example.device.name)),
        names.sources.index(example.source),
        float(np.log(example.seconds)),
        weight,
    )


def distinct_ops(columns: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each distinct op stands first, and how many times it runs."""
    work = np.stack([columns.flops, columns.read_bytes, columns.written_bytes, columns.m, columns.n, columns.k], axis=1)
    kinds = np.stack([columns.op_class, columns.phase, columns.gradient, columns.kernel, columns.groups], axis=1)
    rows = np.concatenate([work, kinds], axis=1)
    _, first, times = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, times


def stack_name(source: str, device: str) -> str:
    """The software stack whose host launched the kernels."""
    return f"{source} · {device}"


def _tower(inputs: int, hidden: int) -> torch.nn.Sequential:
    last = torch.nn.Linear(hidden, len(_START))
    with torch.no_grad():
        last.bias.add_(torch.tensor(_START))
    layers = (torch.nn.Linear(inputs, hidden), torch.nn.SiLU(), torch.nn.Linear(hidden, hidden), torch.nn.SiLU(), last)
    return torch.nn.Sequential(*layers)


class EfficiencyNet(torch.nn.Module):
    """The net, and beside it what devices sustain, what stacks spend on a launch, and the floor of each op group.

    `seen` is the range of the features in training; inputs beyond it are taken to lie on its edge.
    """

    seen: torch.Tensor
    is_reference: torch.Tensor
    generation: torch.Tensor

    def __init__(self, inputs: int, hidden: int, names: Names, floors: NDArray[np.float64], seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.towers = torch.nn.ModuleList(_tower(inputs, hidden) for _ in TOWERS)
        self.register_buffer("seen", torch.stack([torch.full((inputs,), -1e9), torch.full((inputs,), 1e9)]))
        generations = [f"{d.vendor} {d.generation}" for d in map(find_device, names.devices.names)]
        self.register_buffer("generation", torch.tensor([sorted(set(generations)).index(g) for g in generations]))
        self.of_generation = torch.nn.Parameter(torch.zeros(len(set(generations)), len(SUSTAINED)))
        self.of_device = torch.nn.Parameter(torch.zeros(len(generations), len(SUSTAINED)))
        self.launch = torch.nn.Parameter(torch.full((len(names.stacks.names),), np.log(8e-6)))
        self.source = torch.nn.Parameter(torch.zeros(len(names.sources.names)))
        self.register_buffer("is_reference", torch.tensor([n in REFERENCE_SOURCES for n in names.sources.names]))
        self.tile_costs = torch.nn.Parameter(torch.tensor(_TILE_START))
        self.losses = torch.nn.Parameter(torch.full((2, len(GROUPS)), -2.2))
        self.floor = torch.nn.Parameter(torch.tensor(np.log(floors), dtype=torch.float32))
        self.order = SiblingOrder(list(names.devices.names))

    @property
    def sustained(self) -> torch.Tensor:
        """What each device sustains, as logarithms by SUSTAINED."""
        return self.of_generation[self.generation] + self.of_device

    def sustain(self, device: int, values: torch.Tensor) -> None:
        """Set what a device sustains."""
        with torch.no_grad():
            self.of_device[device] = values - self.of_generation[self.generation[device]]

    def _outputs(self, inputs: torch.Tensor, tower: torch.Tensor) -> torch.Tensor:
        places = [torch.nonzero(tower == index).squeeze(1) for index in range(len(TOWERS))]
        outputs = torch.cat([net(inputs[place]) for net, place in zip(self.towers, places, strict=True)])
        return outputs[torch.argsort(torch.cat(places))]

    def log_kernel(self, kernels: Kernels, device: torch.Tensor) -> torch.Tensor:
        """Log seconds of each kernel."""
        inputs = torch.minimum(torch.maximum(kernels.inputs, self.seen[0]), self.seen[1])
        fractions = self.sustained[device]

        def column(which: torch.Tensor) -> torch.Tensor:
            return fractions.gather(-1, which.unsqueeze(-1)).squeeze(-1)

        compute_losses, bandwidth_losses = self.data_sheet_losses()
        group = kernels.group - FIRST_GROUP
        free = kernels.log_compute + compute_losses[group] * kernels.log_peak - column(kernels.math)
        least = -torch.logsumexp(-SHARPNESS * (kernels.paddings + self.tile_costs), dim=1) / SHARPNESS
        padding = torch.where(kernels.is_tiled, least, 0.0)
        traffic_alone = kernels.log_memory + bandwidth_losses[group] * kernels.log_bandwidth - fractions[..., BANDWIDTH]
        sharp = torch.maximum(free + padding, traffic_alone)
        bound = sharp + column(kernels.group) + column(kernels.generation)
        outputs = self._outputs(inputs, kernels.tower)
        terms = [
            torch.nn.functional.softplus(outputs[:, j]) if j == BOUND else outputs[:, j] for j in range(len(POWERS))
        ]
        size = bound - float(np.log(UNIT_SECONDS))
        logs = [a + (p - 1) * size + q * kernels.log_traffic for a, (p, q) in zip(terms, POWERS, strict=True)]
        logs += [outputs[:, -2] + free - sharp, outputs[:, -1] + traffic_alone - sharp]
        slowdown = torch.logsumexp(torch.stack(logs), dim=0)
        return bound - kernels.cap + torch.clamp(slowdown, max=MOST_SLOWDOWN)

    def physical_parameters(self) -> list[torch.nn.Parameter]:
        """All but the weights of the net and the launches."""
        return [self.of_generation, self.of_device, self.floor, self.source, self.tile_costs, self.losses]

    def data_sheet_losses(self) -> torch.Tensor:
        """u and v by group: how much less is gained than a faster data sheet promises."""
        return MOST_LOSS * torch.sigmoid(self.losses)

    def kernel_seconds(self, net: NetRow) -> NDArray[np.float64]:
        """Seconds of every distinct op of a step, all its runs together."""
        with torch.no_grad():
            logs = self.log_kernel(net.kernels, torch.full((len(net.kernels),), net.device))
        seconds: NDArray[np.float64] = np.exp(logs.numpy().astype(np.float64)) * net.times.numpy().astype(np.float64)
        return seconds

    def log_row(self, rows: OpRows, pick: torch.Tensor) -> torch.Tensor:
        """Log seconds of op rows as they were timed: with a floor."""
        kernel = self.log_kernel(rows.kernels.at(pick), rows.device[pick])
        floor = self.floor[rows.timing[pick]]
        return torch.logaddexp(FLOOR_POWER * kernel, FLOOR_POWER * floor) / FLOOR_POWER

    def log_steps(self, rows: list[NetRow], *, by_source: bool = False) -> torch.Tensor:
        """Log seconds of whole steps; `by_source`: with the factor of whoever measured them."""
        sizes = torch.tensor([len(r.kernels) for r in rows])
        device = torch.repeat_interleave(torch.tensor([r.device for r in rows]), sizes)
        kernel = torch.exp(self.log_kernel(Kernels.joined(r.kernels for r in rows), device))
        owner = torch.repeat_interleave(torch.arange(len(rows)), sizes)
        busy = torch.zeros(len(rows)).index_add(0, owner, kernel * torch.cat([r.times for r in rows]))
        launches = torch.tensor([r.launches for r in rows])
        host = launches * torch.exp(self.launch[torch.tensor([r.stack for r in rows])])
        step = torch.logaddexp(STEP_POWER * torch.log(busy), STEP_POWER * torch.log(host)) / STEP_POWER
        if not by_source:
            return step
        source = torch.tensor([r.source for r in rows])
        return step + torch.where(self.is_reference[source], 0.0, self.source[source])


def train(
    model: EfficiencyNet,
    ops: OpRows | None,
    nets: list[NetRow],
    *,
    steps: int,
    seed: int,
    op_batch: int = 4096,
    net_batch: int = 16,
) -> None:
    """Mixed batches of op rows and whole steps."""
    generator = np.random.default_rng(seed)
    is_group = torch.tensor([name in GROUPS for name in SUSTAINED])
    pulls = torch.where(is_group, GROUP_PULL, PULL)
    generation_pulls = torch.where(is_group, GENERATION_GROUP_PULL, GENERATION_PULL)
    _remember_range(model, ops, nets)
    optimizer = torch.optim.AdamW(
        [
            {"params": model.towers.parameters(), "weight_decay": DECAY},
            {"params": model.physical_parameters(), "weight_decay": 0.0},
            {"params": [model.launch], "weight_decay": 0.0},
        ],
        lr=RATE,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [RATE, RATE, LAUNCH_RATE], total_steps=steps)
    reached_ops = np.cumsum(ops.weight) if ops is not None else np.ones(1)
    reached_nets = np.cumsum([n.weight for n in nets])
    targets = torch.tensor([n.log_seconds for n in nets], dtype=torch.float32)
    for _ in range(steps):
        loss = (pulls * model.of_device**2).sum(dim=1).mean() + SOURCE_PULL * (model.source**2).mean()
        loss = loss + (generation_pulls * model.of_generation**2).sum(dim=1).mean()
        loss = loss + model.order.loss(model.sustained)
        if ops is not None:
            pick = torch.tensor(_drawn(reached_ops, op_batch, generator))
            loss = loss + torch.nn.functional.smooth_l1_loss(model.log_row(ops, pick), ops.log_seconds[pick], beta=0.1)
        if nets:
            chosen = _drawn(reached_nets, net_batch, generator)
            guess = model.log_steps([nets[i] for i in chosen], by_source=True)
            loss = loss + 2 * torch.nn.functional.smooth_l1_loss(guess, targets[torch.tensor(chosen)], beta=0.1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def _drawn(reached: NDArray[np.float64], count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Rows drawn by their weights, given the sums of the weights up to each row."""
    places = np.searchsorted(reached, generator.random(count) * reached[-1], side="right")
    return np.asarray(np.minimum(places, len(reached) - 1), dtype=np.int64)


def _remember_range(model: EfficiencyNet, ops: OpRows | None, nets: list[NetRow]) -> None:
    """The least and the most of every feature over all that is trained on."""
    tables = [n.kernels.inputs for n in nets]
    if ops is not None:
        tables.append(ops.kernels.inputs[torch.tensor(ops.weight > 0)])
    model.seen[0] = torch.stack([t.amin(0) for t in tables]).amin(0)
    model.seen[1] = torch.stack([t.amax(0) for t in tables]).amax(0)
