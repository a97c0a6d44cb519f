"""`make model`: from the measurements to the shipped cost model. Fixed seeds; about half an hour the first time,
most of it capture.

    python -m epochcast.fit.train [--steps N] [--folds N]

Reads EPOCHCAST_DATA (`ops`, `runs`, `inference_runs`, `transformer_runs`), writes `cost/learned.json` and
`docs/model-card.md`. The intervals come from what was left out: networks of families (known devices) and devices
(unseen) that the net had not been trained on.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from epochcast.cost.features import Setting
from epochcast.errors import BadInput
from epochcast.fit.card import model_card
from epochcast.fit.examples import Example, examples, select
from epochcast.fit.network import EfficiencyNet, NetRow, OpRows, Vocabulary, net_row, prepared, train
from epochcast.fit.op_table import op_columns
from epochcast.fit.run_table import read_runs
from epochcast.graph.trace import MATHS
from epochcast.hardware.catalogue import devices as all_devices
from epochcast.hardware.catalogue import find_device

# How often a source is drawn, against timm's 1 a row: what is measured carefully and in its own terms weighs more.
WEIGHTS = {
    "timm": 1.0,
    "torchvision_gpu_bench": 2.0,
    "neusight": 6.0,
    "jcjohnson": 1.0,
    "tf_benchmarks_2017": 1.0,
}
HIDDEN = 72
MEMBERS = 3
OUTSIDE_QUANTILES = (0.05, 0.95)
# What part of the fp32 peak one large matrix product sustains, where that was published for devices we have no other
# measurement of; V100, A100 and T4 of the same series set the scale against the net's own fractions.
PUBLISHED_GEMM = {"L4": 0.29, "H100-PCIE-80GB": 0.75, "H100-SXM5-80GB": 0.75}
GEMM_SCALE = {"V100-PCIE-32GB": 0.96, "A100-PCIE-40GB": 0.85, "T4": 0.48}
# Residuals a device needs for an interval of its own.
OWN_INTERVAL_RUNS = 100
# A device with fewer measured steps is not left out on its own: its error would be an anecdote.
MANY_RUNS = 8


@dataclass
class Material:
    """Everything the net learns from."""

    ops: OpRows
    floors: NDArray[np.float64]
    op_devices: NDArray[np.str_]
    examples: list[Example]
    nets: list[NetRow]
    devices: Vocabulary
    stacks: Vocabulary
    failures: dict[str, str]


def data_folder() -> Path:
    """Where the measurements lie."""
    place = os.environ.get("EPOCHCAST_DATA")
    if not place or not Path(place).is_dir():
        raise BadInput("EPOCHCAST_DATA names no folder: the measurements are needed to train")
    return Path(place)


def say(text: str) -> None:
    """Progress, on stderr."""
    sys.stderr.write(f"{text}\n")


def gather() -> Material:
    """Read every table and capture every network in them."""
    folder = data_folder()
    devices, stacks = Vocabulary(), Vocabulary()
    ops, floors, op_devices = _op_rows(pl.read_parquet(folder / "ops.parquet"), devices)
    single = pl.col("gpus") == 1
    runs = pl.read_parquet(folder / "runs.parquet").filter(
        single
        & pl.col("source").is_in(list(WEIGHTS))
        & ~pl.col("framework_version").fill_null("").str.contains("cudnn none")  # nobody trains without it today
    )
    # Inference of the networks that were trained: most of the captures serve both.
    inference = pl.read_parquet(folder / "inference_runs.parquet").filter(
        single
        & pl.col("source").is_in(["timm", "torchvision_gpu_bench"])
        & ~pl.col("device").str.contains("CPU")
        & ~pl.col("framework_version").fill_null("").str.contains(r"\?|2\.9|2\.1")
        & pl.col("model").is_in(_distinct(runs)["model"].unique().implode())
    )
    transformers = pl.read_parquet(folder / "transformer_runs.parquet").filter(single & ~pl.col("compiled"))
    rows = [*_distinct(runs).to_dicts(), *_thinned(inference).to_dicts(), *transformers.to_dicts()]
    questions, _ = read_runs(rows)
    made, failures = examples(questions, say)
    nets = [net_row(e, devices, stacks, WEIGHTS[e.source] * _mode_weight(e)) for e in made]
    return Material(ops, floors, op_devices, made, nets, devices, stacks, failures)


def _mode_weight(example: Example) -> float:
    return 0.4 if example.recipe.mode == "forward" and example.source == "timm" else 1.0


def _distinct(table: pl.DataFrame) -> pl.DataFrame:
    """One name per architecture where several weights of it were timed: the same network teaches nothing twice."""
    same = [
        "forward_macs_per_sample",
        "activations_per_sample",
        "parameters",
        "input_shape",
        "framework_version",
        "channels_last",
    ]
    timm = pl.col("source") == "timm"
    return pl.concat([table.filter(timm).unique(same, keep="first", maintain_order=True), table.filter(~timm)])


def _thinned(table: pl.DataFrame) -> pl.DataFrame:
    """Every fourth network of timm, once per device, precision, layout and version: forward passes teach less than
    steps, and each batch size of them is a capture of its own.
    """
    keys = ["source", "model", "device", "precision", "channels_last", "framework_version"]
    some = table.filter(pl.col("source") == "timm")["model"].unique().sort().gather_every(4)
    kept = table.filter((pl.col("source") != "timm") | pl.col("model").is_in(some.implode()))
    return kept.unique(keys, keep="first", maintain_order=True)


def _op_rows(table: pl.DataFrame, devices: Vocabulary) -> tuple[OpRows, NDArray[np.float64], NDArray[np.str_]]:
    table = table.filter(~pl.col("note").str.contains("suspect") & (pl.col("family") != "rnn"))
    columns = op_columns(table)
    names = table["device"].to_numpy().astype(str)
    source = table["source"].to_numpy().astype(str)
    family = table["family"].to_numpy().astype(str)
    seconds = table["seconds"].to_numpy()
    pieces: list[tuple[torch.Tensor, ...]] = []
    order, device_index = [], []
    for name in np.unique(names):
        for origin in np.unique(source[names == name]):
            places = np.flatnonzero((names == name) & (source == origin))
            device = find_device(name, source=origin)
            setting = Setting(framework_age=0.64 if origin == "neusight" else 0.0)  # torch 2.1; bare cuDNN
            pieces.append(prepared(select(columns, places), device, setting))
            order.append(places)
            device_index += [devices.index(device.name)] * len(places)
    place = np.concatenate(order)
    labels = np.char.add(np.char.add(source, names), family)[place]
    _, group = np.unique(labels, return_inverse=True)
    timed = seconds[place]
    floors = np.array([0.95 * np.quantile(timed[group == g], 0.01) for g in range(group.max() + 1)])
    weight = 1 / np.sqrt(np.bincount(group)[group])
    inputs, compute, memory, cap, math = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    rows = OpRows(
        inputs,
        compute,
        memory,
        cap,
        torch.tensor(device_index),
        math,
        torch.tensor(group),
        torch.tensor(np.log(timed), dtype=torch.float32),
        weight / weight.sum(),
    )
    return rows, floors, np.array([list(devices.names)[i] for i in device_index])


def fitted(
    material: Material, keep_nets: Sequence[int], keep_ops: NDArray[np.bool_], *, steps: int, seed: int
) -> EfficiencyNet:
    """One member trained on part of the material."""
    model = EfficiencyNet(
        material.ops.inputs.shape[1],
        HIDDEN,
        len(material.devices.names),
        len(material.stacks.names),
        material.floors,
        seed,
    )
    ops = material.ops
    weight = np.where(keep_ops, ops.weight, 0.0)
    kept = OpRows(**{**vars(ops), "weight": weight / weight.sum()})
    train(model, kept, [material.nets[i] for i in keep_nets], steps=steps, seed=seed)
    return model


def log_steps(models: Sequence[EfficiencyNet], nets: Sequence[NetRow]) -> NDArray[np.float64]:
    """The ensemble's answer for whole steps."""
    answers = []
    with torch.no_grad():
        for model in models:
            parts = [model.log_steps(list(nets[i : i + 32])) for i in range(0, len(nets), 32)]
            answers.append(torch.cat(parts).numpy())
    return np.asarray(np.mean(answers, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Task:
    """One training: what is left out of it, and for how long. Nothing left out is a member of the ensemble."""

    outside: tuple[int, ...]
    device: str | None
    steps: int
    seed: int


def _family_tasks(material: Material, folds: int, steps: int) -> list[Task]:
    """No network of a test family in the training."""
    families = np.array([e.family for e in material.examples])
    names = np.unique(families)
    np.random.default_rng(0).shuffle(names)
    return [
        Task(tuple(np.flatnonzero(np.isin(families, fold)).tolist()), None, steps, seed)
        for seed, fold in enumerate(np.array_split(names, folds))
    ]


def _device_tasks(material: Material, steps: int) -> list[Task]:
    """Neither steps nor ops of the test device in the training."""
    names = np.array([e.device.name for e in material.examples])
    return [
        Task(tuple(np.flatnonzero(names == name).tolist()), str(name), steps, seed)
        for seed, name in enumerate(np.unique(names))
        if np.sum(names == name) >= MANY_RUNS
    ]


_MATERIAL: list[Material] = []
"""What the forked workers train on; set once before they start."""


def _work(task: Task) -> tuple[Task, NDArray[np.float64], EfficiencyNet]:
    """Train, and the residuals of what was left out."""
    torch.set_num_threads(1)
    (material,) = _MATERIAL
    outside: NDArray[np.bool_] = np.zeros(len(material.nets), bool)
    outside[list(task.outside)] = True
    keep_ops = np.ones(len(material.ops.weight), bool) if task.device is None else material.op_devices != task.device
    model = fitted(material, np.flatnonzero(~outside).tolist(), keep_ops, steps=task.steps, seed=task.seed)
    if task.device is not None:
        _forget(model, material, task.device)
    left = _residuals(model, material, outside) if task.outside else np.zeros(0)
    what = task.device or (f"families, fold {task.seed + 1}" if task.outside else f"member {task.seed + 1}")
    say(f"{what}: {_summary(left) if len(left) else 'trained'}")
    return task, left, model


def trained(
    material: Material, folds: int, steps: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[EfficiencyNet]]:
    """Residuals with families left out, with devices left out, and the ensemble; on as many cores as there are."""
    _MATERIAL[:] = [material]
    members = [Task((), None, round(1.5 * steps), seed) for seed in range(MEMBERS)]
    tasks = [*_family_tasks(material, folds, steps), *members, *_device_tasks(material, steps // 3)]
    families: NDArray[np.float64] = np.full(len(material.nets), np.nan)
    devices = families.copy()
    models = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
        for task, left, model in pool.map(_work, tasks):
            if not task.outside:
                models.append(model)
            else:
                (families if task.device is None else devices)[list(task.outside)] = left
    return families, devices, models


def _forget(model: EfficiencyNet, material: Material, name: str) -> None:
    """Give a device that was left out the fractions of its generation, as a forecast would."""
    index = material.devices.names[name]
    rows = _generations(model, material, without=name)
    device = find_device(name)
    row = rows.get(device.generation, rows["any"])
    with torch.no_grad():
        for place, value in enumerate(row):
            model.sustained[index, place] = value


def _residuals(model: EfficiencyNet, material: Material, outside: NDArray[np.bool_]) -> NDArray[np.float64]:
    nets = [material.nets[i] for i in np.flatnonzero(outside)]
    left: NDArray[np.float64] = log_steps([model], nets) - np.array([n.log_seconds for n in nets])
    return left


def _summary(residuals: NDArray[np.float64]) -> str:
    ape = np.abs(np.exp(residuals[np.isfinite(residuals)]) - 1)
    return f"{len(ape)} runs, MAPE {ape.mean():.1%}, median {np.median(ape):.1%}"


def _measured(material: Material) -> NDArray[np.bool_]:
    """Which (device, math) pairs occur in the material; the last two columns are vector arithmetic and bandwidth."""
    seen = np.zeros((len(material.devices.names), len(MATHS) + 2), bool)
    ops = material.ops
    pairs = torch.unique(torch.stack([ops.device, ops.math]), dim=1).numpy()
    seen[pairs[0], pairs[1]] = True
    for net in material.nets:
        seen[net.device, torch.unique(net.math).numpy()] = True
    seen[:, -1] |= seen.any(axis=1)
    return seen


def _generations(model: EfficiencyNet, material: Material, without: str = "") -> dict[str, NDArray[np.float64]]:
    """Mean log fractions of each generation over the devices that were measured; "any" over all."""
    values, seen = model.sustained.detach().numpy(), _measured(material)
    by_name = {d.name: d for d in all_devices()}
    rows: dict[str, list[int]] = {"any": []}
    for name, index in material.devices.names.items():
        if name != without and name in by_name:
            rows["any"].append(index)
            rows.setdefault(by_name[name].generation, []).append(index)
    whole = np.array([_mean(values[rows["any"], c], seen[rows["any"], c], 0.0) for c in range(values.shape[1])])
    return {
        g: np.array([_mean(values[i, c], seen[i, c], whole[c]) for c in range(values.shape[1])])
        for g, i in rows.items()
    }


def _mean(values: NDArray[np.float64], seen: NDArray[np.bool_], otherwise: float) -> float:
    return float(values[seen].mean()) if seen.any() else float(otherwise)


def exported(models: Sequence[EfficiencyNet], material: Material, spreads: dict[str, tuple[float, float]]) -> str:
    """The ensemble as text, rounded to what matters."""

    def layer(module: torch.nn.Linear) -> dict[str, object]:
        weight = np.round(module.weight.detach().numpy().T.astype(float), 4)
        return {"weight": weight.tolist(), "bias": np.round(module.bias.detach().numpy().astype(float), 4).tolist()}

    def row(values: NDArray[np.float64]) -> dict[str, float]:
        names = (*MATHS, "vector", "bandwidth")
        return {name: round(float(v), 4) for name, v in zip(names, values, strict=True)}

    seen = _measured(material)
    per_model = [_generations(m, material) for m in models]
    generations = {g: np.mean([p[g] for p in per_model], axis=0) for g in per_model[0]}
    sustained = np.mean([m.sustained.detach().numpy() for m in models], axis=0)
    by_name = {d.name: d for d in all_devices()}
    known = {}
    for name, index in material.devices.names.items():
        prior = generations.get(by_name[name].generation, generations["any"]) if name in by_name else generations["any"]
        known[name] = row(np.where(seen[index], sustained[index], prior))
    scale = np.mean([known[name]["fp32"] - np.log(part) for name, part in GEMM_SCALE.items() if name in known])
    published = {}
    for name, part in PUBLISHED_GEMM.items():
        if name not in known:
            prior = generations.get(by_name[name].generation, generations["any"])
            published[name] = {**row(prior), "fp32": round(float(np.log(part) + scale), 4)}
    launch = {
        s: float(np.exp(np.mean([m.launch.detach().numpy()[i] for m in models])))
        for s, i in material.stacks.names.items()
    }
    document = {
        "format": 1,
        "launch_seconds": launch,
        "spreads": spreads,
        "seen": np.round(models[0].seen.numpy().astype(float), 4).tolist(),
        "devices": known,
        "published": published,
        "generations": {g: row(v) for g, v in generations.items()},
        "nets": [[layer(m) for m in model.body if isinstance(m, torch.nn.Linear)] for model in models],
    }
    return json.dumps(document, separators=(",", ":"))


def spread_of(residuals: NDArray[np.float64]) -> tuple[float, float]:
    """Conformal factors: nine of ten left-out truths lie in mid·low … mid·high."""
    ratio = -residuals[np.isfinite(residuals)]  # log(measured/predicted)
    low, high = np.quantile(ratio, OUTSIDE_QUANTILES)
    return float(min(np.exp(low), 0.999)), float(max(np.exp(high), 1.001))


def _own_spreads(material: Material, residuals: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Intervals of devices with so many left-out runs that they need not share those of all."""
    names = np.array([e.device.name for e in material.examples])
    return {
        str(name): spread_of(residuals[names == name])
        for name in np.unique(names)
        if np.sum(np.isfinite(residuals[names == name])) >= OWN_INTERVAL_RUNS
    }


def main() -> int:
    """Train, check on what was left out, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--folds", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    material = gather()
    say(
        f"{len(material.nets)} runs, {len(material.ops.weight)} op rows, {len(material.failures)} networks not captured"
    )
    known, unseen, models = trained(material, arguments.folds, arguments.steps)
    spreads = {"known": spread_of(known), "unseen": spread_of(unseen), **_own_spreads(material, known)}
    package = Path(__file__).parents[1]
    _write(package / "cost" / "learned.json", exported(models, material, spreads))
    _write(package.parents[1] / "docs" / "model-card.md", model_card(material, known, unseen, spreads))
    say(f"left-out families {_summary(known)}; left-out devices {_summary(unseen)}")
    return 0


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())
