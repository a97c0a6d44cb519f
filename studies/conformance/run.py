"""How the counts agree: built by the zoo, captured from torchvision, read from ONNX, and torch's own counter on `meta`.

    python -m studies.conformance.run        writes docs/accuracy/conformance.md

Flops are matrix work (convolution, matmul, attention), a multiply-add is two; bytes are of a whole training step.
Fails where parameters differ, flops differ by more than 1 % or bytes by more than 10 %.
"""

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NEEDS_DATA = False
PAGE = Path(__file__).parents[2] / "docs" / "accuracy" / "conformance.md"
ZOO_AND_TORCHVISION = (
    "alexnet", "vgg11", "vgg16", "vgg19", "googlenet", "inception_v3", "resnet18", "resnet34", "resnet50", "resnet101",
    "resnet152", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "densenet169", "densenet201", "mobilenet_v2",
    "mobilenet_v3_large", "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
    "squeezenet1_0", "squeezenet1_1", "vit_b_16", "vit_l_16", "swin_t",
)  # fmt: skip
EXPORTED = ("resnet18", "resnet50", "vgg11", "mobilenet_v2")
BATCH = 8


def main() -> int:
    """Compare everything, write the page, fail on a difference."""
    rows = [*built_and_captured(), *read_from_onnx()]
    wrong = [row for row in rows if not row["agrees"]]
    counter = list(against_torch())
    PAGE.write_text(page(rows, counter), encoding="utf-8")
    for row in wrong:
        print("differs:", row)
    print(f"{len(rows) - len(wrong)} of {len(rows)} pairs agree")
    return 1 if wrong else 0


def _row(name: str, what: str, ours: Any, other: Any) -> dict[str, Any]:
    """Two traces of one network side by side."""
    count = [sum(p.elements for p in trace.parameters) for trace in (ours, other)]
    forward, backward = (other.flops[phase] / ours.flops[phase] for phase in ("forward", "backward"))
    moved = float(other.columns.bytes.sum() / ours.columns.bytes.sum())
    agrees = count[0] == count[1] and abs(forward - 1) < 0.01 and abs(backward - 1) < 0.01 and abs(moved - 1) < 0.1
    return {
        "name": name, "what": what, "parameters": count, "forward": forward, "backward": backward, "bytes": moved,
        "agrees": agrees,
    }  # fmt: skip


def built_and_captured() -> Iterator[dict[str, Any]]:
    """The zoo's networks that torchvision has too."""
    from epochcast.describe.capture.torch import load_torch
    from epochcast.describe.capture.zoo import zoo_model
    from epochcast.describe.graph.recipe import Recipe

    recipe = Recipe(BATCH, optimizer="adam")
    for name in ZOO_AND_TORCHVISION:
        built = zoo_model(name).trace(recipe)
        yield _row(name, "captured / built", built, load_torch(f"torchvision:{name}").trace(recipe))


def read_from_onnx() -> Iterator[dict[str, Any]]:
    """Files that torch exports in training mode, against the zoo."""
    import torch

    from epochcast.describe.capture.onnx import load_onnx
    from epochcast.describe.capture.torch.torchvision_shim import import_torchvision
    from epochcast.describe.capture.zoo import zoo_model
    from epochcast.describe.graph.recipe import Recipe

    torchvision = import_torchvision()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in EXPORTED:
            path = Path(folder) / f"{name}.onnx"
            module = torchvision.models.get_model(name, weights=None).train()
            torch.onnx.export(
                module, (torch.zeros(2, 3, 224, 224),), str(path), input_names=["x"], dynamo=False,
                training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamic_axes={"x": {0: "batch"}},
            )  # fmt: skip
            recipe = Recipe(BATCH, optimizer="adam")
            yield _row(name, "ONNX / built", zoo_model(name).trace(recipe), load_onnx(path).trace(recipe))


def against_torch() -> Iterator[tuple[str, float, float]]:
    """Our forward and backward matrix flops over those of `FlopCounterMode`, captured networks on `meta`."""
    from torch.utils.flop_counter import FlopCounterMode

    from epochcast.describe.capture.torch import TorchModel
    from epochcast.describe.capture.torch.torch_load import load_torch  # the module itself, not what was kept of it
    from epochcast.describe.graph.recipe import Recipe

    for name in (*ZOO_AND_TORCHVISION, "convnext_tiny", "regnet_y_400mf", "maxvit_t"):
        model = load_torch(f"torchvision:{name}")
        assert isinstance(model, TorchModel)
        with FlopCounterMode(display=False) as forward:
            result = model.module(*model.example.at(BATCH).args)
        outputs = result if isinstance(result, tuple) else (result,)
        with FlopCounterMode(display=False) as backward:
            sum(output.sum() for output in outputs).backward()
        ours = model.trace(Recipe(BATCH, mode="forward_backward", with_loss=False)).flops
        yield name, ours["forward"] / forward.get_total_flops(), ours["backward"] / backward.get_total_flops()


def page(rows: list[dict[str, Any]], counter: list[tuple[str, float, float]]) -> str:
    """docs/accuracy/conformance.md"""
    lines = [
        "# Conformance of the counts", "",
        "Written by `python -m studies.conformance.run`. Ratios are of the second to the first; a training step with",
        f"Adam at batch {BATCH}, fp32. Parameters must be equal, flops within 1 %, bytes within 10 %.", "",
        "| network | pair | parameters | forward flops | backward flops | bytes of the step |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for row in rows:
        one, other = row["parameters"]
        counts = f"{one:,}" if one == other else f"{one:,} and {other:,}"
        numbers = " | ".join(f"{row[key]:.4f}" for key in ("forward", "backward", "bytes"))
        lines.append(f"| {row['name']} | {row['what']} | {counts} | {numbers} |")
    lines += [
        "", "## Against torch's own counter", "",
        "Ours over `torch.utils.flop_counter.FlopCounterMode` on `meta`. Two differences are known. The backward pass",
        "of a fused attention computes the scores again, five products where the counter has four. The counter's",
        "backward pass of a grouped or depthwise convolution forgets the groups, so that it counts many times too",
        "much; ours is twice forward.",
        "", "| network | forward | backward |", "|---|---|---|",
    ]  # fmt: skip
    lines += [f"| {name} | {forward:.4f} | {backward:.4f} |" for name, forward, backward in counter]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
