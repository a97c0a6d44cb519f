"""`make model`: from the measurements to the shipped cost model. Fixed seeds; about half an hour, most of it training
what is then left aside: the models that show how the shipped one does on families and devices it has not seen.

    python -m training.train [--steps N] [--folds N]

Reads EPOCHCAST_DATA (`ops`, `gemm_modern`, `conv_amd`, `attention_modern`, `ops_training`, `runs`,
`runs_more`, `inference_runs`, `transformer_runs`); writes `predict/cost/learned.json` (the nets and their intervals),
`hardware/profiles.toml` (what devices sustain), `docs/accuracy/model-card.md`, the errors of every left-out step to
`studies/accuracy/left_out.csv` and those of left-out ops to `left_out_ops.csv` beside it.
"""

import argparse
import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.predict.cost.learned import Quantiles
from epochcast.predict.cost.op_bounds import as_run
from epochcast.predict.cost.software_setting import GENERATIONS
from epochcast.predict.cost.spreads import (
    MEASURED,
    OPERATORS,
    UNSEEN,
    Spreads,
    group_of,
    hardware_group,
    kernel_shares,
    step_kind,
    trains,
)
from training.card import model_card
from training.examples import select
from training.files import DOCS, PACKAGE, ROOT, say, write
from training.fractions import device_fractions, profiles_toml
from training.left_out import MANY_OPS, LeftOut, left_out, summary
from training.material import Material, gather
from training.network import SUSTAINED, EfficiencyNet, NetRow, distinct_ops
from training.quantiles import fit_quantiles
from training.spreads import (
    KNOWN_RUNS,
    LeftOutSteps,
    cells_of,
    earned,
    fitted_spreads,
    has_kin,
    is_known_elsewhere,
    known_kinds,
)


def exported(models: Sequence[EfficiencyNet], quantiles: Quantiles, spreads: Spreads) -> str:
    """The ensemble as text, rounded to what matters."""

    def layer(module: torch.nn.Linear) -> dict[str, object]:
        weight = np.round(module.weight.detach().numpy().T.astype(float), 4)
        return {"weight": weight.tolist(), "bias": np.round(module.bias.detach().numpy().astype(float), 4).tolist()}

    document = {
        "format": 5,
        "trained": datetime.now(UTC).date().isoformat(),
        "spreads": {
            **{part: _rounded(getattr(spreads, part)) for part in ("devices", "frameworks", "kernels")},
            "scales": {group: [round(z, 3) for z in scale] for group, scale in spreads.scales.items()},
        },
        "quantiles": {"weight": quantiles.weight.tolist(), "bias": quantiles.bias.tolist()},
        "laws": exported_laws(models),
        "seen": np.round(models[0].seen.numpy().astype(float), 4).tolist(),
        "nets": [
            [[layer(m) for m in tower.children() if isinstance(m, torch.nn.Linear)] for tower in model.towers]
            for model in models
        ],
    }
    return json.dumps(document, separators=(",", ":"))


def _rounded(variances: Mapping[str, float]) -> dict[str, float]:
    return {part: round(variance, 5) for part, variance in variances.items()}


def exported_laws(models: Sequence[EfficiencyNet]) -> dict[str, list[float]]:
    """What holds for all devices, as the mean of the members."""
    compute, bandwidth = np.mean([m.data_sheet_losses().detach().numpy() for m in models], axis=0)
    tiles = np.mean([m.tile_costs.detach().numpy() for m in models], axis=0)
    laws = {"tile_costs": tiles, "compute_losses": compute, "bandwidth_losses": bandwidth}
    return {name: np.round(values.astype(float), 4).tolist() for name, values in laws.items()}


# A step is bound by its kernels if they last this much longer than their launches.
KERNEL_BOUND = 2.0


def is_kernel_bound(models: Sequence[EfficiencyNet], nets: Sequence[NetRow]) -> NDArray[np.bool_]:
    """Which steps are bound by their kernels, not by the host that launches them."""
    launch = np.mean([m.launch.detach().numpy() for m in models], axis=0)
    kernels = np.array([np.mean([m.kernel_seconds(net).sum() for m in models]) for net in nets])
    host = np.array([net.launches * np.exp(launch[net.stack]) for net in nets])
    longer: NDArray[np.bool_] = kernels > KERNEL_BOUND * host
    return longer


def step_shares(models: Sequence[EfficiencyNet], material: Material) -> NDArray[np.float64]:
    """The shares of kernels (`spreads.KERNEL_PARTS`) in every step, as the shipped ensemble has them."""
    shares = []
    for example, net in zip(material.examples, material.nets, strict=True):
        seconds = np.mean([model.kernel_seconds(net) for model in models], axis=0)
        columns = as_run(select(example.columns, distinct_ops(example.columns)[0]), example.device)
        shares.append(kernel_shares(columns, seconds))
    return np.array(shares)


def left_out_steps(
    material: Material, errors: LeftOut, shares: NDArray[np.float64], is_kernels: NDArray[np.bool_]
) -> LeftOutSteps:
    """Every kernel-bound step by every split, with what was known of its device in that split."""
    examples = material.examples
    names, kinds, sources = labels(material)
    cells = cells_of(names, kinds)
    runs = {cell: int(np.sum(cells == cell)) for cell in np.unique(cells).tolist()}
    is_known = np.array([runs[cell] >= KNOWN_RUNS for cell in cells.tolist()])
    timed = timed_maths(material)
    has_ops = np.array(
        [(name, kind.partition("-")[0]) in timed for name, kind in zip(names.tolist(), kinds.tolist(), strict=True)]
    )
    elsewhere = is_known_elsewhere(names, kinds, sources)
    by_split = (
        (errors.family, np.where(is_known, MEASURED, OPERATORS)),
        (
            np.where(has_kin(names, sources), errors.source, np.nan),
            np.where(elsewhere, MEASURED, np.where(has_ops, OPERATORS, UNSEEN)),
        ),
        (np.where(has_kin(names), errors.device, np.nan), np.full(len(names), UNSEEN)),
    )
    hardware = np.array([hardware_group(e.device) for e in examples])
    generation = np.array([GENERATIONS[e.setting.generation] for e in examples])
    group = np.array([group_of(e.columns, e.device) for e in examples])
    is_training = np.array([trains(e.columns) for e in examples])
    parts = []
    for logs, known_by in by_split:
        steps = LeftOutSteps(logs, shares, known_by, hardware, generation, group, cells, is_training)
        parts.append(steps.where(is_kernels & np.isfinite(logs)))
    return LeftOutSteps.joined(parts)


def labels(material: Material) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.str_]]:
    """Device, kind and source of every step."""
    examples = material.examples
    return (
        np.array([e.device.name for e in examples]),
        np.array([step_kind(as_run(e.columns, e.device), e.setting) for e in examples]),
        np.array([e.source for e in examples]),
    )


def often_timed(material: Material) -> set[str]:
    """Devices with many timed operators."""
    names, counts = np.unique(material.op_devices[material.ops.is_large], return_counts=True)
    return set(names[counts >= MANY_OPS].tolist())


def timed_maths(material: Material) -> set[tuple[str, str]]:
    """Devices and formats in which single products were timed."""
    names, ops = list(material.names.devices.names), material.ops
    pairs = torch.unique(torch.stack([ops.device, ops.kernels.math]), dim=1).numpy()
    return {(names[device], SUSTAINED[math]) for device, math in pairs.T.tolist()}


def error_table(material: Material, errors: LeftOut, shares: NDArray[np.float64], is_kernels: NDArray[np.bool_]) -> str:
    """Predicted over measured of every step by every split, with what identifies the step; without the measurement."""
    out = io.StringIO()
    add = csv.writer(out, lineterminator="\n").writerow
    names = ["source", "device", "model", "family", "precision", "mode", "layout", "batch", "age", "framework", "kind"]
    names += ["bound", "shares"]
    add([*names, *(f"without_{split}" for split in SPLITS)])
    for place, e in enumerate(material.examples):
        layout = "channels_last" if e.setting.channels_last else "nchw"
        ratios = [_ratio(getattr(errors, split)[place]) for split in SPLITS]
        step = [e.source, e.device.name, e.model, e.family, e.recipe.precision_label, e.recipe.mode, layout]
        kind = step_kind(as_run(e.columns, e.device), e.setting)
        facts = [e.recipe.batch, f"{e.setting.framework_age:.2f}", e.setting.framework, kind]
        facts += ["kernels" if is_kernels[place] else "host", " ".join(f"{share:.3g}" for share in shares[place])]
        add([*step, *facts, *ratios])
    return out.getvalue()


def op_table(errors: LeftOut) -> str:
    """Errors of large single ops by split, device, group and math."""
    out = io.StringIO()
    add = csv.writer(out, lineterminator="\n").writerow
    add(["split", "device", "group", "math", "rows", "mape", "median_ape", "bias"])
    for score in sorted(errors.ops, key=lambda s: (s.split, s.device, s.group, s.math)):
        ape = np.abs(np.exp(score.log_errors) - 1)
        bias = np.exp(np.median(score.log_errors)) - 1
        figures = [f"{ape.mean():.4f}", f"{np.median(ape):.4f}", f"{bias:.4f}"]
        add([score.split, score.device, score.group, score.math, len(ape), *figures])
    return out.getvalue()


def measured_toml(material: Material) -> str:
    """How many steps were measured of each device."""
    pieces = [_MEASURED_HEAD]
    for name, steps in sorted(Counter(e.device.name for e in material.examples).items()):
        pieces.append(f'[[device]]\nname = "{name}"\nsteps = {steps}\nsource = "studies/accuracy/left_out.csv"\n')
    return "\n".join(pieces)


_MEASURED_HEAD = """# Devices of which whole steps were measured, and how many: rows of studies/accuracy/left_out.csv.
# Some have no row in profiles.toml: similar devices forecast them better than a profile of their own.
# Written by `make model`; a test compares both files.
"""

SPLITS = ("family", "device", "source")


def _ratio(log_error: float) -> str:
    return f"{np.exp(log_error):.4f}" if np.isfinite(log_error) else ""


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
    errors = left_out(material, arguments.folds, arguments.steps)
    quantiles = fit_quantiles(errors.members, material.ops)
    # Launch-bound steps say nothing of kernels: the host has an interval of its own.
    is_kernels = is_kernel_bound(errors.members, material.nets)
    shares = step_shares(errors.members, material)
    spreads = fitted_spreads(left_out_steps(material, errors, shares, is_kernels))
    names, kinds, _ = labels(material)
    own = known_kinds(names, kinds)
    without = sorted(set(names.tolist()) - earned(errors.family, errors.device, names, often_timed(material)))
    fractions = device_fractions(errors.members, material, own, without=without)
    say(f"no profile, because similar devices forecast them better: {', '.join(without) or 'none'}")
    card, groups = model_card(material, errors, spreads, without)
    texts = {
        PACKAGE / "predict" / "cost" / "learned.json": exported(errors.members, quantiles, spreads),
        PACKAGE / "hardware" / "profiles.toml": profiles_toml(material, fractions),
        PACKAGE / "hardware" / "measured.toml": measured_toml(material),
        DOCS / "accuracy" / "model-card.md": card,
        DOCS / "accuracy" / "model-card.csv": groups,
        ROOT / "studies" / "accuracy" / "left_out.csv": error_table(material, errors, shares, is_kernels),
        ROOT / "studies" / "accuracy" / "left_out_ops.csv": op_table(errors),
    }
    for path, text in texts.items():
        write(path, text.encode())
    say(f"left-out families {summary(errors.family)}; left-out devices {summary(errors.device)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
