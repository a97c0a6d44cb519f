"""What devices sustain according to the trained nets, as rows of `hardware/profiles.toml`."""

from collections.abc import Mapping, Sequence
from math import exp

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.describe.graph.math_modes import OP_MATHS
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.power_law import clock_fraction
from epochcast.hardware.sustained import Sustained
from epochcast.predict.cost.op_bounds import GROUPS
from epochcast.predict.cost.software_setting import GENERATIONS
from training.material import Material
from training.network import BANDWIDTH, SUSTAINED, EfficiencyNet, stack_name

_HEAD = """# What devices sustain of their data sheets, fitted on public measurements. See sustained.py for the keys.
# Written by `make model`; not edited by hand.
"""


def device_fractions(
    models: Sequence[EfficiencyNet],
    material: Material,
    kinds: Mapping[str, Sequence[str]] | None = None,
    *,
    without: Sequence[str] = (),
) -> dict[str, Sustained]:
    """Every measured device by name, the mean of the models; only what was measured on it."""
    values = np.mean([m.sustained.detach().numpy() for m in models], axis=0)
    seen = measured(material)
    launches = launch_seconds(models, material)
    fractions = {}
    for name, index in material.names.devices.names.items():
        if name in without:
            continue
        row = {key: exp(values[index, i]) for i, key in enumerate(SUSTAINED) if seen[index, i]}
        fractions[name] = Sustained(
            {m: row[m] for m in OP_MATHS if m in row} or {"fp32": 1.0},
            row.get("vector", 1.0),
            row["bandwidth"],
            {g: row[g] for g in GROUPS if g in row},
            {g: row[g] for g in GENERATIONS if g in row},
            launches.get(name, {}),
            frozenset((kinds or {}).get(name, ())),
        )
    return fractions


def measured(material: Material) -> NDArray[np.bool_]:
    """Which of SUSTAINED each device was measured at."""
    seen = np.zeros((len(material.names.devices.names), len(SUSTAINED)), bool)
    ops = material.ops
    for what in (ops.kernels.math, ops.kernels.group, ops.kernels.generation):
        pairs = torch.unique(torch.stack([ops.device, what]), dim=1).numpy()
        seen[pairs[0], pairs[1]] = True
    for net in (*material.nets, *material.fused):
        seen[net.device, torch.unique(net.kernels.math).numpy()] = True
        seen[net.device, torch.unique(net.kernels.group).numpy()] = True
        seen[net.device, net.kernels.generation[0]] = True
    seen[:, BANDWIDTH] |= seen.any(axis=1)
    return seen


def launch_seconds(
    models: Sequence[EfficiencyNet], material: Material, *, without: Sequence[str] = ()
) -> dict[str, dict[str, float]]:
    """Host seconds per kernel by device and source; "" is the mean of a source's steps, whatever they ran on."""
    values = np.mean([m.launch.detach().numpy() for m in models], axis=0)
    launches: dict[str, dict[str, float]] = {"": {}}
    logs: dict[str, list[float]] = {}
    for example in (e for e in material.examples if e.device.name not in without):
        seconds = float(values[material.names.stacks.names[stack_name(example.source, example.device.name)]])
        launches.setdefault(example.device.name, {})[example.source] = exp(seconds)
        logs.setdefault(example.source, []).append(seconds)
    launches[""] = {source: exp(float(np.mean(of_steps))) for source, of_steps in logs.items()}
    return launches


def profiles_toml(material: Material, fractions: Mapping[str, Sustained]) -> str:
    """The file of measured devices."""
    pieces = [_HEAD]
    steps = [e.device.name for e in material.examples]
    sources: dict[str, set[str]] = {}
    for example in material.examples:
        sources.setdefault(example.device.name, set()).add(example.source)
    ops = dict(zip(*np.unique(material.op_devices, return_counts=True), strict=True))
    for name, row in sorted(fractions.items()):
        origin = sorted(sources.get(name, set())) + (["operator tables"] if name in ops else [])
        pieces.append(
            f'[[device]]\nname = "{name}"\nsteps = {steps.count(name)}\nops = {int(ops.get(name, 0))}\n'
            f"math_fractions = {_table(_of_sheet(name, row.math_fractions))}\n"
            f"vector_fraction = {row.vector_fraction:.3f}\n"
            f"bandwidth_fraction = {row.bandwidth_fraction:.3f}\ngroup_factors = {_table(row.group_factors)}\n"
            f"generation_factors = {_table(row.generation_factors)}\n"
            f"launch_seconds = {_table(row.launch_seconds, '.3g')}\n"
            f"known_kinds = [{', '.join(f'{kind!r}' for kind in sorted(row.known_kinds))}]\n"
            f'source = "public measurements: {", ".join(origin)}"\n'
        )
    return "\n".join(pieces)


def _of_sheet(name: str, fractions: Mapping[str, float]) -> dict[str, float]:
    """Fractions of the data sheet, from those of the peak at the clock that the board's power sustains."""
    return {math: fraction * clock_fraction(find_device(name), math) for math, fraction in fractions.items()}


def _table(numbers: Mapping[str, float], form: str = ".3f") -> str:
    return "{ " + ", ".join(f"{key} = {value:{form}}" for key, value in numbers.items()) + " }" if numbers else "{}"
