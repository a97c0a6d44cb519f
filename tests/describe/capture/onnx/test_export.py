"""Files that torch exports, against the networks they were exported from and against the zoo."""

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")

from epochcast.describe.capture.onnx import load_onnx  # noqa: E402
from epochcast.describe.capture.zoo import zoo_model  # noqa: E402
from epochcast.describe.graph.recipe import Recipe  # noqa: E402


@pytest.fixture(scope="module")
def torchvision() -> Any:
    """torchvision beside a CPU build of torch lacks two operators that its import looks for."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return pytest.importorskip("torchvision")


def exported(path: Path, module: Any, example: Any, *, training: bool = False, dynamic: bool = True) -> Path:
    """By the exporter that needs no further package."""
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.train(training), (example,), str(path), input_names=["x"], dynamo=False, training=mode,
            do_constant_folding=not training, dynamic_axes={"x": {0: "batch"}} if dynamic else None,
        )  # fmt: skip
    return path


def count(module: Any) -> int:
    return sum(p.numel() for p in module.parameters())


@pytest.mark.slow
def test_resnet18_in_training_mode_is_the_resnet18_of_the_zoo(tmp_path: Path, torchvision: Any) -> None:
    module = torchvision.models.resnet18(weights=None)
    model = load_onnx(exported(tmp_path / "r.onnx", module, torch.zeros(2, 3, 224, 224), training=True))
    ours, zoo = (m.trace(Recipe(8)) for m in (model, zoo_model("resnet18")))
    assert model.graph(2).parameter_count == zoo_model("resnet18").graph(2).parameter_count == count(module)
    assert ours.flops["matrix"] == pytest.approx(zoo.flops["matrix"], rel=0.01)
    assert ours.columns.bytes.sum() == pytest.approx(zoo.columns.bytes.sum(), rel=0.1)
    assert ours.opaque == ()


@pytest.mark.slow
def test_a_file_exported_for_inference_says_that_its_norms_are_gone(tmp_path: Path, torchvision: Any) -> None:
    module = torchvision.models.resnet18(weights=None)
    graph = load_onnx(exported(tmp_path / "r.onnx", module, torch.zeros(1, 3, 64, 64), dynamic=False)).graph(2)
    assert "batch norms are folded into the convolutions" in graph.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [True, False])
def test_a_vision_transformer_counts_its_attention(tmp_path: Path, torchvision: Any, dynamic: bool) -> None:
    """ViT-B/16 with two of twelve layers; torch's own counter on meta tensors gives the same products."""
    from torch.utils.flop_counter import FlopCounterMode

    make = torchvision.models.vision_transformer.VisionTransformer
    module = make(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128)
    model = load_onnx(exported(tmp_path / "v.onnx", module, torch.zeros(1, 3, 64, 64), dynamic=dynamic))
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        make(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128)(
            torch.zeros(3, 3, 64, 64)
        )
    trace = model.trace(Recipe(3, mode="forward"))
    assert model.graph(3).parameter_count == count(module)
    assert trace.flops["forward"] == pytest.approx(counter.get_total_flops(), rel=0.01)


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_network_keeps_its_parameters(tmp_path: Path, cell: str) -> None:
    class Tagger(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(50, 8)
            self.cell = getattr(torch.nn, cell)(8, 12, num_layers=2, bidirectional=True, batch_first=True)
            self.head = torch.nn.Linear(24, 5)

        def forward(self, x: Any) -> Any:
            return self.head(self.cell(self.embed(x))[0])

    module = Tagger()
    graph = load_onnx(exported(tmp_path / "t.onnx", module, torch.zeros(2, 7, dtype=torch.long))).graph(3)
    assert graph.outputs[0].shape == (3, 7, 5)
    assert graph.parameter_count == count(module)
    assert [op.kind.label for op in graph.ops if op.kind.label != "view"][:2] == ["embedding", "recurrent"]
