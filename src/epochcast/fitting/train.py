"""`make model`: from the measurements to the shipped cost model. Fixed seeds; about half an hour, most of it training
what is then left aside: the models that show how the shipped one does on families and devices it has not seen.

    python -m epochcast.fitting.train [--steps N] [--folds N]

Reads EPOCHCAST_DATA (`ops`, `runs`, `inference_runs`, `transformer_runs`); writes `cost/learned.json` (the nets and
their intervals), `hardware/profiles.toml` (what devices sustain), `docs/model-card.md`, and the errors of every
left-out step to `studies/accuracy/left_out.csv`.
"""

import argparse
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from epochcast.cost.learned import Quantiles, is_fp32_products
from epochcast.fitting.card import model_card
from epochcast.fitting.fractions import device_fractions, profiles_toml
from epochcast.fitting.left_out import LeftOut, left_out, summary
from epochcast.fitting.material import Material, gather, say
from epochcast.fitting.network import EfficiencyNet
from epochcast.fitting.quantiles import fit_quantiles, step_widths
from epochcast.fitting.spreads import group_spreads, own_spreads


def exported(models: Sequence[EfficiencyNet], quantiles: Quantiles, spreads: dict[str, tuple[float, float]]) -> str:
    """The ensemble as text, rounded to what matters."""

    def layer(module: torch.nn.Linear) -> dict[str, object]:
        weight = np.round(module.weight.detach().numpy().T.astype(float), 4)
        return {"weight": weight.tolist(), "bias": np.round(module.bias.detach().numpy().astype(float), 4).tolist()}

    document = {
        "format": 3,
        "spreads": {name: [round(low, 4), round(high, 4)] for name, (low, high) in spreads.items()},
        "quantiles": {
            "weight": quantiles.weight.tolist(),
            "bias": quantiles.bias.tolist(),
            "typical": quantiles.typical,
        },
        "seen": np.round(models[0].seen.numpy().astype(float), 4).tolist(),
        "nets": [[layer(m) for m in model.body if isinstance(m, torch.nn.Linear)] for model in models],
    }
    return json.dumps(document, separators=(",", ":"))


def error_table(material: Material, found: LeftOut, widths: NDArray[np.float64]) -> str:
    """Predicted over measured of every step by every split, with what tells the step apart; no measurement."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    names = ["source", "device", "model", "family", "precision", "mode", "layout", "batch", "age", "products", "width"]
    write([*names, *(f"without_{split}" for split in SPLITS)])
    for place, e in enumerate(material.examples):
        layout = "channels_last" if e.setting.channels_last else "nchw"
        ratios = [_ratio(getattr(found, split)[place]) for split in SPLITS]
        is_products = "fp32" if is_fp32_products(e.columns) else ""
        step = [e.source, e.device.name, e.model, e.family, e.recipe.precision, e.recipe.mode, layout]
        told = [e.recipe.batch, f"{e.setting.framework_age:.2f}", is_products, f"{widths[place]:.3f}"]
        write([*step, *told, *ratios])
    return out.getvalue()


SPLITS = ("family", "device", "random")


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
    found = left_out(material, arguments.folds, arguments.steps)
    quantiles = fit_quantiles(found.members, material.ops, material.nets)
    widths = step_widths(found.members[0], material.nets, quantiles)
    names: NDArray[np.str_] = np.array([e.device.name for e in material.examples])
    is_products = [is_fp32_products(e.columns) for e in material.examples]
    # What is unsure by its kind may be further off: a spread is that of a typical step.
    spreads = group_spreads(found.family / widths, found.device / widths, names, is_products)
    own = own_spreads(found.family / widths, names)
    known = device_fractions(found.members, material, own)
    package = Path(__file__).parents[1]
    root = package.parents[1]
    _write(package / "cost" / "learned.json", exported(found.members, quantiles, spreads))
    _write(package / "hardware" / "profiles.toml", profiles_toml(found.members, material, known))
    _write(root / "docs" / "model-card.md", model_card(material, found, {**spreads, **own}))
    _write(root / "studies" / "accuracy" / "left_out.csv", error_table(material, found, widths))
    say(f"left-out families {summary(found.family)}; left-out devices {summary(found.device)}")
    return 0


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())
