"""Reads every network of keras.applications and holds parameters and layer shapes against Keras' own.

KERAS_BACKEND=torch python studies/coverage/keras_run.py        writes docs/accuracy/coverage-keras.md
"""

import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
# Networks that leave their input open unless told.
OPTIONS: dict[str, Any] = {f"MobileNetV3{size}": {"input_shape": (224, 224, 3)} for size in ("Large", "Small")}
DOCS = Path(__file__).parents[2] / "docs" / "accuracy" / "coverage-keras.md"


def networks() -> dict[str, Any]:
    """Every function of keras.applications that makes a network."""
    import keras

    return {name: f for name, f in sorted(vars(keras.applications).items()) if callable(f) and name[:1].isupper()}


def shapes_of(model: Any, prefix: str = "") -> dict[str, list[tuple[Any, ...]]]:
    """Output shapes of all layers by path, as Keras says."""
    found = {}
    for layer in model.layers:
        path = f"{prefix}{layer.name}"
        if type(layer).__name__ == "InputLayer":
            continue
        outputs = layer.output if isinstance(layer.output, list) else [layer.output]
        found[path] = [tuple(t.shape[1:]) for t in outputs]
        if hasattr(layer, "layers"):
            found |= shapes_of(layer, f"{path}.")
    return found


def check(model: Any) -> dict[str, Any]:
    """What we read against what Keras says."""
    from epochcast.describe.capture.keras import from_keras, layer_shapes
    from epochcast.describe.graph.recipe import Recipe

    began = time.perf_counter()
    ours = from_keras(model)
    graph = ours.graph(2)
    trace = ours.trace(Recipe(8))
    seconds = time.perf_counter() - began
    mine, theirs = layer_shapes(model), shapes_of(model)
    wrong = [p for p, shapes in theirs.items() if [s[1:] for s in mine.get(p, [])][: len(shapes)] != shapes]
    counted = sum(
        int(w.value.numel()) if hasattr(w.value, "numel") else int(w.value.size) for w in model.trainable_weights
    )
    return {
        "parameters": graph.trainable_parameter_count,
        "keras": counted,
        "layers": len(theirs),
        "wrong_shapes": wrong,
        "gmac": trace.flops["forward"] / 8 / 2e9,
        "opaque": trace.opaque,
        "notes": graph.notes,
        "seconds": seconds,
    }


def main() -> None:
    """Runs all, writes the table, fails if anything differs."""
    import keras

    rows, bad = [], 0
    names = sys.argv[1:] or list(networks())
    for name in names:
        try:
            with keras.device("meta"):  # shapes without memory
                model = networks()[name](weights=None, **OPTIONS.get(name, {}))
            found = check(model)
        except Exception as error:  # a study reports every failure
            rows.append(f"| {name} | failed: {type(error).__name__}: {str(error).splitlines()[0][:100]} | | | | | |")
            bad += 1
            print(rows[-1], flush=True)
            continue
        fine = found["parameters"] == found["keras"] and not found["wrong_shapes"] and not found["opaque"]
        bad += not fine
        rows.append(
            f"| {name} | {found['parameters']:,} | {found['keras']:,} | {found['layers']} "
            f"| {len(found['wrong_shapes'])} | {found['gmac']:.2f} | {', '.join(found['opaque']) or 'none'} |"
        )
        print(rows[-1], found["wrong_shapes"][:3], found["notes"], f"{found['seconds']:.2f} s", flush=True)
        del model
        gc.collect()
    if not sys.argv[1:]:
        head = [
            "# Coverage: keras.applications", "",
            f"{len(rows) - bad} of {len(rows)} networks agree with Keras in the number of trainable parameters and in",
            "the output shape of every layer, with no layer opaque. Written by `studies/coverage/keras_run.py`.", "",
            "Keras' `count_params` is larger: it includes the moving mean and variance of batch normalisation, which",
            "are state and not parameters here. Multiply-adds are those of convolutions and products, one sample.", "",
            "Keras refuses to build NASNetMobile on its torch backend. Its configuration, written by Keras on the JAX",
            "backend, reads as 5,289,978 trainable parameters, which is what Keras counts there.", "",
            "| network | parameters read | trainable in Keras | layers | shapes that differ | forward GMAC | opaque |",
            "|---|---|---|---|---|---|---|",
        ]  # fmt: skip
        DOCS.write_text("\n".join([*head, *rows]) + "\n", encoding="utf-8")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
