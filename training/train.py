"""`make model`: from the measurements to the shipped cost model. Fixed seeds; about half an hour, most of it training
what is then left aside: the models that show how the shipped one does on families and devices it has not seen.

    python -m training.train [--steps N] [--folds N]

Reads EPOCHCAST_DATA (`ops`, `gemm_modern`, `conv_amd`, `attention_modern`, `moe_modern`, `ops_training`, `runs`,
`runs_more`, `inference_runs`, `transformer_runs`); writes `predict/cost/learned.json` (the nets and their intervals),
`hardware/profiles.toml` (what devices sustain), `docs/model-card.md`, the errors of every left-out step to
`studies/accuracy/left_out.csv` and those of left-out ops to `left_out_ops.csv` beside it.
"""

import argparse
import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.predict.cost.learned import Quantiles
from epochcast.predict.cost.op_bounds import as_run, is_fp32_products
from epochcast.predict.cost.spreads import step_group, step_kind
from training.card import model_card
from training.files import DOCS, PACKAGE, ROOT, say, write
from training.fractions import device_fractions, profiles_toml
from training.left_out import LeftOut, left_out, summary
from training.material import Material, gather
from training.network import EfficiencyNet, NetRow
from training.quantiles import fit_quantiles, step_widths
from training.spreads import earned, group_spreads, is_known_elsewhere, known_kinds


def exported(models: Sequence[EfficiencyNet], quantiles: Quantiles, spreads: dict[str, tuple[float, float]]) -> str:
    """The ensemble as text, rounded to what matters."""

    def layer(module: torch.nn.Linear) -> dict[str, object]:
        weight = np.round(module.weight.detach().numpy().T.astype(float), 4)
        return {"weight": weight.tolist(), "bias": np.round(module.bias.detach().numpy().astype(float), 4).tolist()}

    document = {
        "format": 4,
        "trained": datetime.now(UTC).date().isoformat(),
        "spreads": {name: [round(low, 4), round(high, 4)] for name, (low, high) in spreads.items()},
        "quantiles": {
            "weight": quantiles.weight.tolist(),
            "bias": quantiles.bias.tolist(),
            "typical": quantiles.typical,
        },
        "laws": exported_laws(models),
        "seen": np.round(models[0].seen.numpy().astype(float), 4).tolist(),
        "nets": [
            [[layer(m) for m in tower.children() if isinstance(m, torch.nn.Linear)] for tower in model.towers]
            for model in models
        ],
    }
    return json.dumps(document, separators=(",", ":"))


def exported_laws(models: Sequence[EfficiencyNet]) -> dict[str, list[float]]:
    """What holds for all devices, as the mean of the members."""
    compute, bandwidth = np.mean([m.data_sheet_losses().detach().numpy() for m in models], axis=0)
    tiles = np.mean([m.tile_costs.detach().numpy() for m in models], axis=0)
    laws = {"tile_costs": tiles, "compute_losses": compute, "bandwidth_losses": bandwidth}
    return {name: np.round(values.astype(float), 4).tolist() for name, values in laws.items()}


# A step is bound by its kernels if they last this much longer than their launches.
KERNEL_BOUND = 1.5


def is_kernel_bound(models: Sequence[EfficiencyNet], nets: Sequence[NetRow]) -> NDArray[np.bool_]:
    """Which steps are bound by their kernels, not by the host that launches them."""
    launch = np.mean([m.launch.detach().numpy() for m in models], axis=0)
    kernels = np.array([np.mean([m.kernel_seconds(net).sum() for m in models]) for net in nets])
    host = np.array([net.launches * np.exp(launch[net.stack]) for net in nets])
    longer: NDArray[np.bool_] = kernels > KERNEL_BOUND * host
    return longer


def error_table(material: Material, errors: LeftOut, widths: NDArray[np.float64], is_kernels: NDArray[np.bool_]) -> str:
    """Predicted over measured of every step by every split, with what identifies the step; without the measurement."""
    out = io.StringIO()
    add = csv.writer(out, lineterminator="\n").writerow
    names = ["source", "device", "model", "family", "precision", "mode", "layout", "batch", "age", "products", "kind"]
    names += ["bound", "width"]
    add([*names, *(f"without_{split}" for split in SPLITS)])
    for place, e in enumerate(material.examples):
        layout = "channels_last" if e.setting.channels_last else "nchw"
        ratios = [_ratio(getattr(errors, split)[place]) for split in SPLITS]
        is_products = "fp32" if is_fp32_products(e.columns) else ""
        step = [e.source, e.device.name, e.model, e.family, e.recipe.precision_label, e.recipe.mode, layout]
        kind = step_kind(as_run(e.columns, e.device), e.setting)
        facts = [e.recipe.batch, f"{e.setting.framework_age:.2f}", is_products, kind]
        facts += ["kernels" if is_kernels[place] else "host", f"{widths[place]:.3f}"]
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


SPLITS = ("family", "device", "source")


def _ratio(log_error: float) -> str:
    return f"{np.exp(log_error):.4f}" if np.isfinite(log_error) else ""


def main() -> int:
    """Train, check on what was left out, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--folds", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    material = gather()
    say(
        f"{len(material.nets)} runs, {len(material.ops.weight)} op rows, {len(material.failures)} networks not captured"
    )
    errors = left_out(material, arguments.folds, arguments.steps)
    quantiles = fit_quantiles(errors.members, material.ops, material.nets)
    widths = step_widths(errors.members[0], material.nets, quantiles)
    names: NDArray[np.str_] = np.array([e.device.name for e in material.examples])
    kinds: NDArray[np.str_] = np.array([step_kind(as_run(e.columns, e.device), e.setting) for e in material.examples])
    groups: NDArray[np.str_] = np.array([step_group(as_run(e.columns, e.device)) for e in material.examples])
    # What is unsure by its kind may be further off: a spread is that of a typical step.
    # Launch-bound steps say nothing of kernels: the host has an interval of its own.
    is_kernels = is_kernel_bound(errors.members, material.nets)
    splits = (errors.family, errors.source, errors.device)
    family, source, device = (np.where(is_kernels, split / widths, np.nan) for split in splits)
    sources: NDArray[np.str_] = np.array([e.source for e in material.examples])
    source = np.where(is_known_elsewhere(names, kinds, sources), source, np.nan)
    spreads = group_spreads(family, source, device, names, kinds, groups)
    families: NDArray[np.str_] = np.array([e.family for e in material.examples])
    own = known_kinds(family, names, kinds, families)
    without = sorted(set(names.tolist()) - earned(errors.family, errors.device, names))
    fractions = device_fractions(errors.members, material, own, without=without)
    say(f"no profile, because similar devices forecast them better: {', '.join(without) or 'none'}")
    texts = {
        PACKAGE / "cost" / "learned.json": exported(errors.members, quantiles, spreads),
        PACKAGE / "hardware" / "profiles.toml": profiles_toml(errors.members, material, fractions),
        DOCS / "model-card.md": model_card(material, errors, spreads, own, without),
        ROOT / "studies" / "accuracy" / "left_out.csv": error_table(material, errors, widths, is_kernels),
        ROOT / "studies" / "accuracy" / "left_out_ops.csv": op_table(errors),
    }
    for path, text in texts.items():
        write(path, text.encode())
    say(f"left-out families {summary(errors.family)}; left-out devices {summary(errors.device)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
