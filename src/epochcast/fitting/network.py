"""Training the efficiency net: op rows one by one, whole networks through the sum of their ops.

    log t(op) = log (Σ_j e^(a_j)·s·(bound/s)^(p_j)·MiB^(q_j) + e^c·arithmetic + e^d·traffic) - cap
    step      = the larger of Σ t and Σ launches, smoothed: what the two streams of `forecast.streams` come to

The a_j are the net's (`cost.learned` says why there is more than one). g, b and the factors are what a device sustains,
learnt with a pull toward the prior. Efficiency is bounded by the cap (Winograd convolutions need up to 2.25 times fewer
multiplications than they are counted with) and never explodes outside the training range, as nets on raw times do.
Host seconds per launch belong to a source of measurements and a device: whoever measured had a host for it. Losses are
on log seconds.

torch trains it; `cost.learned` evaluates the exported text with numpy.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.cost.features import features
from epochcast.cost.learned import (
    BOUND,
    GROUPS,
    LIMBS,
    MOST_SLOWDOWN,
    POWERS,
    UNIT_SECONDS,
    caps,
    log_bounds,
    log_traffic,
    op_groups,
)
from epochcast.cost.setting import GENERATIONS, Setting
from epochcast.fitting.examples import Example, select
from epochcast.graph.trace import MATHS, Columns
from epochcast.hardware.device import Device

# The columns of what a device sustains: fractions of the data sheet, then factors of seconds.
SUSTAINED = (*MATHS, "vector", "bandwidth", *GROUPS, *GENERATIONS)
BANDWIDTH = SUSTAINED.index("bandwidth")
_FIRST_GENERATION = SUSTAINED.index(GENERATIONS[0])
# What the terms start with: at first the bound is all.
_START = (
    *({(1.0, 0.0): 0.0, (0.0, 0.0): -1.0}.get(term, -2.0 if term[1] == 0 else -3.0) for term in POWERS),
    *[-2.0] * LIMBS,
)
# A row timed alone is timed with its launch: it is never shorter than the launch, and near it neither counts alone.
FLOOR_POWER = 3.0
# How sharply a step changes from launch-bound to kernel-bound.
STEP_POWER = 8.0


@dataclass
class OpRows:
    """Single-op measurements, ready for the net; rows of one `timing` share a floor."""

    inputs: torch.Tensor
    log_compute: torch.Tensor
    log_memory: torch.Tensor
    log_traffic: torch.Tensor
    cap: torch.Tensor
    device: torch.Tensor
    math: torch.Tensor
    group: torch.Tensor
    generation: torch.Tensor
    timing: torch.Tensor
    log_seconds: torch.Tensor
    weight: NDArray[np.float64]


@dataclass
class NetRow:
    """One whole step, ready for the net: each distinct op once, with how many `times` it runs."""

    inputs: torch.Tensor
    log_compute: torch.Tensor
    log_memory: torch.Tensor
    log_traffic: torch.Tensor
    cap: torch.Tensor
    math: torch.Tensor
    group: torch.Tensor
    generation: torch.Tensor
    times: torch.Tensor
    launches: float
    device: int
    stack: int
    log_seconds: float
    weight: float = 1.0


@dataclass
class Vocabulary:
    """Numbers for names."""

    names: dict[str, int] = field(default_factory=dict)

    def index(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


def prepared(columns: Columns, device: Device, setting: Setting) -> tuple[torch.Tensor, ...]:
    """Features, the logarithms of both limits and of the traffic, and the cap of every op.

    Then where in SUSTAINED its math, its group and its generation of framework stand.
    """
    compute, memory = log_bounds(columns, device)
    return (
        torch.tensor(features(columns, setting), dtype=torch.float32),
        torch.tensor(compute, dtype=torch.float32),
        torch.tensor(memory, dtype=torch.float32),
        torch.tensor(log_traffic(columns), dtype=torch.float32),
        torch.tensor(caps(columns), dtype=torch.float32),
        torch.tensor(np.where(columns.is_matrix, columns.math, len(MATHS)), dtype=torch.int64),
        torch.tensor(op_groups(columns, setting) + len(MATHS) + 2, dtype=torch.int64),
        torch.full((len(columns),), _FIRST_GENERATION + setting.generation, dtype=torch.int64),
    )


def net_row(example: Example, devices: Vocabulary, stacks: Vocabulary, weight: float = 1.0) -> NetRow:
    """An example as tensors. Vector arithmetic has a column of its own beside the maths."""
    columns = example.columns
    work = np.stack([columns.flops, columns.read_bytes, columns.written_bytes, columns.m, columns.n, columns.k], axis=1)
    kinds = np.stack([columns.op_class, columns.phase, columns.gradient, columns.kernel, columns.groups], axis=1)
    _, first, times = np.unique(np.concatenate([work, kinds], axis=1), axis=0, return_index=True, return_counts=True)
    inputs, compute, memory, traffic, cap, math, group, generation = prepared(
        select(columns, first), example.device, example.setting
    )
    return NetRow(
        inputs,
        compute,
        memory,
        traffic,
        cap,
        math,
        group,
        generation,
        torch.tensor(times, dtype=torch.float32),
        float(columns.launches.sum()),
        devices.index(example.device.name),
        stacks.index(stack_name(example.source, example.device.name)),
        float(np.log(example.seconds)),
        weight,
    )


def stack_name(source: str, device: str) -> str:
    """Whose host it was."""
    return f"{source} · {device}"


class EfficiencyNet(torch.nn.Module):
    """The net, and beside it what devices sustain, what stacks spend on a launch, and the floor of each op group.

    `seen` is the range of the features in training; inputs beyond it are taken to lie on its edge.
    """

    seen: torch.Tensor

    def __init__(
        self, inputs: int, hidden: int, devices: int, stacks: int, floors: NDArray[np.float64], seed: int
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        last = torch.nn.Linear(hidden, len(_START))
        self.body = torch.nn.Sequential(
            torch.nn.Linear(inputs, hidden),
            torch.nn.SiLU(),
            torch.nn.Linear(hidden, hidden),
            torch.nn.SiLU(),
            last,
        )
        with torch.no_grad():
            last.bias.add_(torch.tensor(_START))
        self.register_buffer("seen", torch.stack([torch.full((inputs,), -1e9), torch.full((inputs,), 1e9)]))
        self.sustained = torch.nn.Parameter(torch.zeros(devices, len(SUSTAINED)))
        self.launch = torch.nn.Parameter(torch.full((stacks,), np.log(8e-6)))
        self.floor = torch.nn.Parameter(torch.tensor(np.log(floors), dtype=torch.float32))

    def log_kernel(
        self,
        inputs: torch.Tensor,
        compute: torch.Tensor,
        memory: torch.Tensor,
        traffic: torch.Tensor,
        cap: torch.Tensor,
        device: torch.Tensor,
        math: torch.Tensor,
        group: torch.Tensor,
        generation: torch.Tensor,
    ) -> torch.Tensor:
        """Log seconds of each kernel."""
        inputs = torch.minimum(torch.maximum(inputs, self.seen[0]), self.seen[1])
        fractions = self.sustained[device]

        def column(which: torch.Tensor) -> torch.Tensor:
            return fractions.gather(-1, which.unsqueeze(-1)).squeeze(-1)

        arithmetic, traffic_alone = compute - column(math), memory - fractions[..., BANDWIDTH]
        sharp = torch.maximum(arithmetic, traffic_alone)
        bound = sharp + column(group) + column(generation)
        outputs = self.body(inputs)
        terms = [
            torch.nn.functional.softplus(outputs[:, j]) if j == BOUND else outputs[:, j] for j in range(len(POWERS))
        ]
        size = bound - float(np.log(UNIT_SECONDS))
        logs = [a + (p - 1) * size + q * traffic for a, (p, q) in zip(terms, POWERS, strict=True)]
        logs += [outputs[:, -2] + arithmetic - sharp, outputs[:, -1] + traffic_alone - sharp]
        slowdown = torch.logsumexp(torch.stack(logs), dim=0)
        return bound - cap + torch.clamp(slowdown, max=MOST_SLOWDOWN)

    def kernel_seconds(self, net: NetRow) -> NDArray[np.float64]:
        """Seconds of every distinct op of a step, all its runs together."""
        with torch.no_grad():
            logs = self.log_kernel(
                net.inputs,
                net.log_compute,
                net.log_memory,
                net.log_traffic,
                net.cap,
                torch.full((len(net.cap),), net.device),
                net.math,
                net.group,
                net.generation,
            )
        seconds: NDArray[np.float64] = np.exp(logs.numpy().astype(np.float64)) * net.times.numpy().astype(np.float64)
        return seconds

    def log_row(self, rows: OpRows, pick: torch.Tensor) -> torch.Tensor:
        """Log seconds of op rows as they were timed: with a floor."""
        kernel = self.log_kernel(
            rows.inputs[pick],
            rows.log_compute[pick],
            rows.log_memory[pick],
            rows.log_traffic[pick],
            rows.cap[pick],
            rows.device[pick],
            rows.math[pick],
            rows.group[pick],
            rows.generation[pick],
        )
        floor = self.floor[rows.timing[pick]]
        return torch.logaddexp(FLOOR_POWER * kernel, FLOOR_POWER * floor) / FLOOR_POWER

    def log_steps(self, rows: list[NetRow]) -> torch.Tensor:
        """Log seconds of whole steps."""
        sizes = [len(r.cap) for r in rows]
        device = torch.cat([torch.full((n,), r.device) for r, n in zip(rows, sizes, strict=True)])
        kernel = torch.exp(
            self.log_kernel(
                torch.cat([r.inputs for r in rows]),
                torch.cat([r.log_compute for r in rows]),
                torch.cat([r.log_memory for r in rows]),
                torch.cat([r.log_traffic for r in rows]),
                torch.cat([r.cap for r in rows]),
                device,
                torch.cat([r.math for r in rows]),
                torch.cat([r.group for r in rows]),
                torch.cat([r.generation for r in rows]),
            )
        )
        owner = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(sizes))
        busy = torch.zeros(len(rows)).index_add(0, owner, kernel * torch.cat([r.times for r in rows]))
        launches = torch.tensor([r.launches for r in rows])
        host = launches * torch.exp(self.launch[torch.tensor([r.stack for r in rows])])
        return torch.logaddexp(STEP_POWER * torch.log(busy), STEP_POWER * torch.log(host)) / STEP_POWER


def train(
    model: EfficiencyNet,
    ops: OpRows | None,
    nets: list[NetRow],
    *,
    steps: int,
    seed: int,
    op_batch: int = 192,
    net_batch: int = 32,
    pull: float = 0.05,
    group_pull: float = 0.01,
    decay: float = 3e-3,
    rate: float = 3e-3,
) -> None:
    """Mixed batches of op rows and whole steps. `pull` holds sustained fractions near the prior."""
    generator = np.random.default_rng(seed)
    pulls = torch.tensor([group_pull if name in GROUPS else pull for name in SUSTAINED])
    _remember_range(model, ops, nets)
    optimizer = torch.optim.AdamW(
        [
            {"params": model.body.parameters(), "weight_decay": decay},
            {"params": [model.sustained, model.launch, model.floor], "weight_decay": 0.0},
        ],
        lr=rate,
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    chances = np.array([n.weight for n in nets])
    chances = chances / chances.sum() if len(nets) else chances
    targets = torch.tensor([n.log_seconds for n in nets], dtype=torch.float32)
    for _ in range(steps):
        loss = (pulls * model.sustained**2).sum(dim=1).mean()
        if ops is not None:
            pick = torch.tensor(generator.choice(len(ops.weight), op_batch, p=ops.weight))
            loss = loss + torch.nn.functional.smooth_l1_loss(model.log_row(ops, pick), ops.log_seconds[pick], beta=0.1)
        if nets:
            chosen = generator.choice(len(nets), net_batch, p=chances)
            guess = model.log_steps([nets[i] for i in chosen])
            loss = loss + 2 * torch.nn.functional.smooth_l1_loss(guess, targets[torch.tensor(chosen)], beta=0.1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def _remember_range(model: EfficiencyNet, ops: OpRows | None, nets: list[NetRow]) -> None:
    """The least and the most of every feature over all that is trained on."""
    tables = [n.inputs for n in nets]
    if ops is not None:
        tables.append(ops.inputs[torch.tensor(ops.weight > 0)])
    model.seen[0] = torch.stack([t.amin(0) for t in tables]).amin(0)
    model.seen[1] = torch.stack([t.amax(0) for t in tables]).amax(0)
