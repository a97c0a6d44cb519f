"""Training on part of the data, and the errors of the forecasts of the rest.

Three splits: families of networks (device known), devices (neither steps nor ops are seen of it or of any board with
the same chip, nor of two other chips of other generations; similar devices answer for it), and sources (everything
that one source of measurements timed: its devices are known only as far as others timed them). A device that was left
out is then calibrated with five of its runs, as `epochcast calibrate` does it, and the others are scored again. Single
ops are scored on devices left out, and a tenth of their rows with the device known.
"""

import os
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.hardware.catalogue import devices as all_devices
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.sustained import prior
from epochcast.measure.fit.calibrate import best_correction, calibrated_spread, fit_corrections
from epochcast.measure.fit.step_pieces import StepPieces
from epochcast.predict.cost.op_bounds import GROUPS
from training.files import say
from training.fractions import device_fractions, launch_seconds
from training.material import Material
from training.network import FIRST_GROUP, SUSTAINED, EfficiencyNet, NetRow, stack_name, train
from training.spreads import chip_of

Array = NDArray[np.float64]
Chip = tuple[str, str, int]

HIDDEN = 64
MEMBERS = 3
# What is shipped trains this many times as long as what only shows errors.
MEMBER_STEPS = 2.5
# A device with fewer measured steps is not scored as left out: its error would be an anecdote.
MANY_RUNS = 12
MANY_OPS = 5000
GIVEN_RUNS, DRAWS = 5, 6
# Chips that one net is left without: three trainings in four are saved, and each lasts as long as that of a family.
CHIPS_TOGETHER = 3
# A source with more of the steps than this is not left out: little would remain.
MOST_OF_STEPS = 0.5


@dataclass(frozen=True)
class Task:
    """One training: what is left out of it by which split, and for how long. Nothing left out: a member.

    `boards` are the devices that it must not see.
    """

    split: str
    outside: tuple[int, ...]
    boards: tuple[str, ...]
    steps: int
    seed: int

    @property
    def leaves_ops(self) -> bool:
        """Whether a tenth of the timed ops is left out, too."""
        return self.split == "family" and self.seed == 0


@dataclass(frozen=True)
class Given:
    """A device that was left out, after five of its runs were given: errors of the others, and how many intervals hold.

    `log_errors` are of all draws together.
    """

    device: str
    log_errors: Array
    covered: float


@dataclass(frozen=True)
class OpScore:
    """Errors of the large ops of a group and math on a device that was left out, or of a tenth of them (`known`)."""

    split: str
    device: str
    group: str
    math: str
    log_errors: Array


@dataclass(frozen=True)
class LeftOut:
    """log(predicted/measured) of every step by each split, NaN where it was never left out."""

    family: Array
    device: Array
    source: Array
    given: list[Given]
    ops: list[OpScore]
    members: list[EfficiencyNet]


def train_on(
    material: Material,
    keep_nets: Sequence[int],
    boards: Sequence[str] = (),
    *,
    steps: int,
    seed: int,
    without: NDArray[np.bool_] | None = None,
) -> EfficiencyNet:
    """One net trained on some of the steps, on no op of some boards, and `without` some of the other ops."""
    model = EfficiencyNet(material.ops.kernels.inputs.shape[1], HIDDEN, material.names, material.floors, seed)
    is_left = np.isin(material.op_devices, boards) if without is None else without
    weight = np.where(is_left, 0.0, material.ops.weight)
    weighted_ops = replace(material.ops, weight=weight / weight.sum())
    fused = [net for net, name in zip(material.fused, material.fused_devices, strict=True) if name not in boards]
    train(model, weighted_ops, [*(material.nets[i] for i in keep_nets), *fused], steps=steps, seed=seed)
    return model


def log_steps(models: Sequence[EfficiencyNet], nets: Sequence[NetRow]) -> Array:
    """The ensemble's answer for whole steps."""
    answers = []
    with torch.no_grad():
        for model in models:
            parts = [model.log_steps(list(nets[i : i + 32])) for i in range(0, len(nets), 32)]
            answers.append(torch.cat(parts).numpy())
    return np.asarray(np.mean(answers, axis=0), dtype=np.float64)


def left_out(material: Material, folds: int, steps: int) -> LeftOut:
    """Every split, and the ensemble that is shipped; on as many cores as there are."""
    _MATERIAL[:] = [material]
    tasks = [
        *_fold_tasks("family", np.array([e.family for e in material.examples]), folds, steps),
        *(Task("none", (), (), round(MEMBER_STEPS * steps), seed) for seed in range(MEMBERS)),
        *_device_tasks(material, round(0.75 * steps)),
        *_source_tasks(material, round(0.5 * steps)),
    ]
    size = len(material.nets)
    sums = {split: (np.zeros(size), np.zeros(size)) for split in ("family", "device", "source")}
    given_runs: list[Given] = []
    op_scores: list[OpScore] = []
    members: list[EfficiencyNet] = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
        for task, errors, given, scores, model in pool.map(_work, tasks):
            op_scores += scores
            if task.split == "none":
                members.append(model)
                continue
            total, count = sums[task.split]
            total[list(task.outside)] += errors
            count[list(task.outside)] += 1
            given_runs += given
    with np.errstate(invalid="ignore"):
        family, device, source = (total / count for total, count in sums.values())  # 0/0: never left out
    names = np.array([e.device.name for e in material.examples])
    device[[np.sum(names == name) < MANY_RUNS for name in names]] = np.nan
    return LeftOut(family, device, source, given_runs, op_scores, members)


def _fold_tasks(split: str, labels: NDArray[np.generic], folds: int, steps: int) -> list[Task]:
    """Every label in the test part of one fold."""
    return [Task(split, outside, (), steps, place) for place, outside in enumerate(folds_of(labels, folds))]


def folds_of(labels: NDArray[np.generic], folds: int) -> list[tuple[int, ...]]:
    """The rows of each fold; rows of one label share a fold. Always the same for the same labels."""
    names = np.unique(labels)
    np.random.default_rng(0).shuffle(names)
    return [tuple(np.flatnonzero(np.isin(labels, fold)).tolist()) for fold in np.array_split(names, folds)]


def _device_tasks(material: Material, steps: int) -> list[Task]:
    """Every chip with enough measurements in one fold; see `_chip_folds`."""
    names = np.array([e.device.name for e in material.examples])
    chips: dict[tuple[str, str, int], list[str]] = {}
    for name in sorted(material.names.devices.names):
        chips.setdefault(chip_of(find_device(name)), []).append(name)
    steps_of = {chip: int(np.isin(names, boards).sum()) for chip, boards in chips.items()}
    ops_of = {
        chip: int((np.isin(material.op_devices, boards) & material.ops.is_large).sum())
        for chip, boards in chips.items()
    }
    scored = [chip for chip in sorted(chips) if steps_of[chip] >= MANY_RUNS or ops_of[chip] >= MANY_OPS]
    tasks = []
    for seed, fold in enumerate(_chip_folds(scored, steps_of)):
        boards = tuple(name for chip in fold for name in chips[chip])
        outside = np.flatnonzero(np.isin(names, boards))
        tasks.append(Task("device", tuple(outside.tolist()), boards, steps, seed))
    return tasks


def _chip_folds(chips: Sequence[Chip], steps_of: Mapping[Chip, int]) -> list[list[Chip]]:
    """Chips that are left out together, in the order of vendor and generation dealt out one by one.

    So those of one fold are unlike each other, and each is still answered for by its own generation. A chip with more
    than a fifth of all steps is alone: others would miss it.
    """
    total = sum(steps_of[chip] for chip in chips)
    large = [chip for chip in chips if steps_of[chip] > total / 5]
    rest = [chip for chip in chips if chip not in large]
    count = -(-len(rest) // CHIPS_TOGETHER)
    return [*([chip] for chip in large), *(rest[start::count] for start in range(count))]


def _source_tasks(material: Material, steps: int) -> list[Task]:
    """Every source with enough steps but those that nearly all steps come from."""
    sources = np.array([e.source for e in material.examples])
    names = [
        str(name)
        for name in np.unique(sources)
        if np.sum(sources == name) >= MANY_RUNS and np.mean(sources == name) < MOST_OF_STEPS
    ]
    places = [np.flatnonzero(sources == name).tolist() for name in names]
    return [Task("source", tuple(outside), (), steps, seed) for seed, outside in enumerate(places)]


_MATERIAL: list[Material] = []
"""What the forked workers train on; set once before they start."""


def _work(task: Task) -> tuple[Task, Array, list[Given], list[OpScore], EfficiencyNet]:
    """Train, and the errors on what was left out."""
    torch.set_num_threads(1)
    (material,) = _MATERIAL
    outside: NDArray[np.bool_] = np.zeros(len(material.nets), bool)
    outside[list(task.outside)] = True
    left_ops: NDArray[np.bool_] = np.isin(material.op_devices, task.boards)
    if task.leaves_ops:
        left_ops = np.random.default_rng(0).random(len(left_ops)) < 0.1
    kept = np.flatnonzero(~outside).tolist()
    model = train_on(material, kept, task.boards, steps=task.steps, seed=task.seed, without=left_ops)
    _forget(model, material, task.boards)
    nets = [material.nets[i] for i in task.outside]
    errors = log_steps([model], nets) - np.array([n.log_seconds for n in nets]) if nets else np.zeros(0)
    given = [_given(model, name, material, task.outside) for name in task.boards]
    scores = _op_scores(model, material, left_ops, "known" if task.leaves_ops else "device")
    line = f"{task.split} {', '.join(task.boards)} seed {task.seed}: {summary(errors) if nets else 'trained'}"
    with_runs = [f"; {g.device} with {GIVEN_RUNS} runs given: {summary(g.log_errors)}" for g in given]
    say(line + "".join(with_runs))
    return task, errors, given, scores, model


def _op_scores(model: EfficiencyNet, material: Material, is_left: NDArray[np.bool_], split: str) -> list[OpScore]:
    """By device, group and math, of the large ops that were left out."""
    ops = material.ops
    places = np.flatnonzero(is_left & ops.is_large)
    if not len(places):
        return []
    with torch.no_grad():
        picks = torch.split(torch.tensor(places), 65536)
        logs = torch.cat([model.log_row(ops, pick) - ops.log_seconds[pick] for pick in picks]).numpy()
    labels = np.stack([ops.device.numpy()[places], ops.kernels.group.numpy()[places], ops.kernels.math.numpy()[places]])
    names = list(material.names.devices.names)
    kinds, kind = np.unique(labels, axis=1, return_inverse=True)
    return [
        OpScore(split, names[device], SUSTAINED[group], SUSTAINED[math], logs[kind.ravel() == place])
        for place, (device, group, math) in enumerate(kinds.T.tolist())
    ]


def _forget(model: EfficiencyNet, material: Material, boards: Sequence[str]) -> None:
    """Give devices that were left out what similar devices sustain, as a forecast would."""
    fractions = device_fractions([model], material, without=boards)
    launches = launch_seconds([model], material, without=boards)[""]
    for name in boards:
        expected = prior(find_device(name), fractions, all_devices())
        values = {
            **expected.math_fractions,
            "vector": expected.vector_fraction,
            "bandwidth": expected.bandwidth_fraction,
            **expected.group_factors,
        }
        fp32 = expected.math_fractions["fp32"]
        with torch.no_grad():
            row = [float(np.log(values.get(key, fp32 if key in OP_MATHS else 1.0))) for key in SUSTAINED]
            model.sustain(material.names.devices.names[name], torch.tensor(row))
            for source, seconds in launches.items():
                stack = material.names.stacks.names.get(stack_name(source, name))
                if stack is not None:
                    model.launch[stack] = float(np.log(seconds))


def _given(model: EfficiencyNet, device: str, material: Material, outside: Sequence[int]) -> Given:
    """Draws of five runs of one precision, mode, layout and framework; up to forty others of it are scored.

    That is what a user has: a few steps of the job at hand.
    """
    generator = np.random.default_rng(0)
    errors, held = [], []
    prior_spread = float(np.exp(0.5))
    alike: dict[Hashable, list[int]] = {}
    for place in outside:
        e = material.examples[place]
        if e.device.name == device:
            alike.setdefault((e.recipe.precision, e.recipe.mode, e.setting), []).append(place)
    for places in (group for group in alike.values() if len(group) > GIVEN_RUNS for _ in range(DRAWS)):
        order = generator.permutation(places)
        pieces = [_pieces(model, material.nets[i], prior_spread) for i in order[: GIVEN_RUNS + 40]]
        seen, rest = pieces[:GIVEN_RUNS], pieces[GIVEN_RUNS:]
        chosen = best_correction(fit_corrections(seen), len(seen))
        spread = np.log(calibrated_spread(seen, chosen, prior_spread))
        logs = [np.log(p.seconds(np.array(chosen.factors)) / p.measured_seconds) for p in rest]
        errors += logs
        held += [abs(error) <= spread for error in logs]
    return Given(device, np.array(errors), float(np.mean(held)) if held else float("nan"))


# The index in `step_pieces.KINDS` of each group of ops; 3 is everything else.
_PRODUCTS = {"conv": 0, "conv_channels_last": 0, "conv_grouped": 1, "conv_grouped_channels_last": 1}
_PRODUCTS |= {"matmul": 2, "attention": 2}
_KIND_OF_GROUP = np.array([_PRODUCTS.get(group, 3) for group in GROUPS])


def _pieces(model: EfficiencyNet, net: NetRow, prior_spread: float) -> StepPieces:
    """A step's kernels and launches, for calibration; ops that run several times are taken together."""
    launch = float(torch.exp(model.launch[net.stack]))
    times = net.times.numpy().astype(np.float64)
    kernels = model.kernel_seconds(net)
    return StepPieces(
        kernels,
        (net.kernels.log_compute >= net.kernels.log_memory).numpy(),
        net.launches * launch * times / times.sum(),
        np.zeros(len(kernels), dtype=np.bool_),
        1,
        0.0,
        float(np.exp(net.log_seconds)),
        prior_spread,
        _KIND_OF_GROUP[net.kernels.group.numpy() - FIRST_GROUP],
    )


def summary(log_errors: Array) -> str:
    """MAPE and median of errors in logarithms."""
    ape = np.abs(np.exp(log_errors[np.isfinite(log_errors)]) - 1)
    return f"{len(ape)} runs, MAPE {ape.mean():.1%}, median {np.median(ape):.1%}" if len(ape) else "no runs"
