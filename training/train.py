"""`make model`: from the measurements to the shipped cost model. Fixed seeds; about half an hour, most of it training
what is then left aside: the models that show how the shipped one does on families and devices it has not seen.

    python -m training.train [--steps N] [--folds N]

Reads EPOCHCAST_DATA (`ops`, `runs`, `inference_runs`, `transformer_runs`); writes `cost/learned.json` (the nets and
their intervals), `hardware/profiles.toml` (what devices sustain), `docs/model-card.md`, and the errors of every
left-out step to `studies/accuracy/left_out.csv`.
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

from epochcast.cost.learned import Quantiles, is_fp32_products
from training.card import model_card
from training.files import DOCS, PACKAGE, ROOT, say, write
from training.fractions import device_fractions, profiles_toml
from training.left_out import LeftOut, left_out, summary
from training.material import Material, gather
from training.network import EfficiencyNet
from training.quantiles import fit_quantiles, step_widths
from training.spreads import group_spreads, own_spreads


def exported(models: Sequence[EfficiencyNet], quantiles: Quantiles, spreads: dict[str, tuple[float, float]]) -> str:
    """The ensemble as text, rounded to what matters."""

    def layer(module: torch.nn.Linear) -> dict[str, object]:
        weight = np.round(module.weight.detach().numpy().T.astype(float), 4)
        return {"weight": weight.tolist(), "bias": np.round(module.bias.detach().numpy().astype(float), 4).tolist()}

    document = {
        "format": 3,
        "trained": datetime.now(UTC).date().isoformat(),
        "spreads": {name: [round(low, 4), round(high, 4)] for name, (low, high) in spreads.items()},
        "quantiles": {
            "weight": quantiles.weight.tolist(),
            "bias": quantiles.bias.tolist(),
            "typical": quantiles.typical,
        },
        "seen": np.round(models[0].seen.numpy().astype(float), 4).tolist(),
        "nets": [
            [[layer(m) for m in tower.children() if isinstance(m, torch.nn.Linear)] for tower in model.towers]
            for model in models
        ],
    }
    return json.dumps(document, separators=(",", ":"))


def error_table(material: Material, errors: LeftOut, widths: NDArray[np.float64]) -> str:
    """Predicted over measured of every step by every split, with what identifies the step; without the measurement."""
    out = io.StringIO()
    add = csv.writer(out, lineterminator="\n").writerow
    names = ["source", "device", "model", "family", "precision", "mode", "layout", "batch", "age", "products", "width"]
    add([*names, *(f"without_{split}" for split in SPLITS)])
    for place, e in enumerate(material.examples):
        layout = "channels_last" if e.setting.channels_last else "nchw"
        ratios = [_ratio(getattr(errors, split)[place]) for split in SPLITS]
        is_products = "fp32" if is_fp32_products(e.columns) else ""
        step = [e.source, e.device.name, e.model, e.family, e.recipe.precision, e.recipe.mode, layout]
        facts = [e.recipe.batch, f"{e.setting.framework_age:.2f}", is_products, f"{widths[place]:.3f}"]
        add([*step, *facts, *ratios])
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
    errors = left_out(material, arguments.folds, arguments.steps)
    quantiles = fit_quantiles(errors.members, material.ops, material.nets)
    widths = step_widths(errors.members[0], material.nets, quantiles)
    names: NDArray[np.str_] = np.array([e.device.name for e in material.examples])
    is_products = [is_fp32_products(e.columns) for e in material.examples]
    # What is unsure by its kind may be further off: a spread is that of a typical step.
    spreads = group_spreads(errors.family / widths, errors.device / widths, names, is_products)
    own = own_spreads(errors.family / widths, names)
    fractions = device_fractions(errors.members, material, own)
    texts = {
        PACKAGE / "cost" / "learned.json": exported(errors.members, quantiles, spreads),
        PACKAGE / "hardware" / "profiles.toml": profiles_toml(errors.members, material, fractions),
        DOCS / "model-card.md": model_card(material, errors, {**spreads, **own}),
        ROOT / "studies" / "accuracy" / "left_out.csv": error_table(material, errors, widths),
    }
    for path, text in texts.items():
        write(path, text.encode())
    say(f"left-out families {summary(errors.family)}; left-out devices {summary(errors.device)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
