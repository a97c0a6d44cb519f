"""From what a user writes to a model, and what they read when it does not work."""

import sys
from pathlib import Path

import pytest

from epochcast.describe.capture.torch import make_model as load_torch  # in this process: that is quicker
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput, EpochcastError, MissingExtra, UnknownName

SOURCE = """
import torch
from torch import nn
from helper import WIDTH

def plain():
    return nn.Sequential(nn.Conv2d(3, WIDTH, 3), nn.Flatten(), nn.LazyLinear(2) if False else nn.Linear(WIDTH * 36, 2))

def with_inputs():
    return nn.Linear(4, 2), torch.zeros(7, 9, 4)

class Carrying(nn.Linear):
    def __init__(self):
        super().__init__(4, 2)
        self.example_inputs = torch.zeros(7, 9, 4)

instance = nn.Linear(6, 2)

def tokens():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(8))
            self.table = nn.Embedding(10, 8)
        def forward(self, ids):
            return self.table(ids) * self.scale
    return Reader()

def schedule():
    rates = [x.item() for x in torch.linspace(0, 0.5, 3)]
    return nn.Sequential(*[nn.Sequential(nn.Linear(200, 200), nn.Dropout(rate)) for rate in rates])

def raising():
    raise RuntimeError("the checkpoint is not there\\nand never was")

def a_number():
    return 7
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("WIDTH = 8\n", encoding="utf-8")
    path = tmp_path / "mine.py"
    path.write_text(SOURCE, encoding="utf-8")
    sys.modules.pop("helper", None)
    return path


def test_a_file_and_a_function_and_a_size(source: Path) -> None:
    trace = load_torch(f"{source}:plain", (3, 8, 8)).trace(Recipe(4))
    assert sum(p.elements for p in trace.parameters) == 3 * 8 * 9 + 8 + 288 * 2 + 2
    assert str(source.parent) not in sys.path


@pytest.mark.parametrize("name", ["with_inputs", "Carrying"])
def test_a_factory_may_bring_example_inputs(source: Path, name: str) -> None:
    (given,) = load_torch(f"{source}:{name}").trace(Recipe(4)).inputs
    assert given.shape == (1, 9, 4)


def test_a_module_that_begins_with_a_linear_layer_tells_its_size(source: Path) -> None:
    assert load_torch(f"{source}:instance").trace(Recipe(4)).inputs[0].shape == (1, 6)


def test_any_other_module_must_be_told(source: Path) -> None:
    with pytest.raises(BadInput, match=r"input size of .*mine\.py:plain is not known; give `input_shape`"):
        load_torch(f"{source}:plain").trace(Recipe(4))


def test_an_embedding_is_fed_token_ids(source: Path) -> None:
    assert load_torch(f"{source}:tokens", (5,)).trace(Recipe(4)).inputs[0].dtype is DType.INT64


def test_a_constructor_that_looks_at_values_is_run_on_the_host(source: Path) -> None:
    trace = load_torch(f"{source}:schedule", (200,)).trace(Recipe(4, mode="forward"))
    assert [op.kind.label for op in trace.ops] == ["matmul", "matmul", "elementwise", "matmul", "elementwise"]


def test_a_package_and_a_function() -> None:
    trace = load_torch("torch.nn:Identity", (3,)).trace(Recipe(4, mode="forward"))
    assert trace.ops == ()


def test_a_factory_that_raises_is_one_line_and_the_tail_of_its_traceback(source: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load_torch(f"{source}:raising", (3,)).trace(Recipe(4))
    assert str(caught.value) == f"{source}:raising cannot be built: RuntimeError: the checkpoint is not there"
    assert any("in raising" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("plane", "no factory in .* called 'plane'; known: .*plain"),
        ("a_number", "a_number gives a int, not a torch.nn.Module"),
    ],
)
def test_what_is_no_factory_is_said(source: Path, name: str, says: str) -> None:
    with pytest.raises(EpochcastError, match=says):
        load_torch(f"{source}:{name}", (3,)).trace(Recipe(4))


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("nowhere.py:make", "there is no file 'nowhere.py'"),
        ("no_such_package.models:make", "there is no module 'no_such_package'"),
        ("mine.py:", "is not a factory; write it like file.py:make_model"),
    ],
)
def test_what_is_not_there_is_said(reference: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        load_torch(reference, (3,)).trace(Recipe(4))


def test_a_file_that_does_not_import_says_why(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_package_anywhere\n", encoding="utf-8")
    with pytest.raises(BadInput, match="cannot be imported: No module named 'no_such_package_anywhere'"):
        load_torch(f"{tmp_path}/broken.py:make", (3,)).trace(Recipe(4))


@pytest.mark.parametrize("family", ["timm", "torchvision"])
def test_an_unknown_name_is_offered_near_ones(family: str) -> None:
    with pytest.raises(UnknownName, match=f"no {family} model called 'resnet5'; near: .*resnet50"):
        load_torch(f"{family}:resnet5").trace(Recipe(4))


@pytest.mark.parametrize(
    ("reference", "parameters", "shape"),
    [
        ("timm:mixnet_s", 4_134_606, (3, 224, 224)),
        ("timm:ig_resnext101_32x16d", 194_026_792, (3, 224, 224)),
        ("timm:vit_tiny_patch16_224", 5_717_416, (3, 224, 224)),
        ("torchvision:googlenet", 13_004_888, (3, 224, 224)),
        ("torchvision:lraspp_mobilenet_v3_large", 3_221_538, (3, 520, 520)),
        ("torchvision:mc3_18", 11_695_440, (3, 16, 112, 112)),
    ],
)
def test_published_networks_come_at_their_own_size(reference: str, parameters: int, shape: tuple[int, ...]) -> None:
    trace = load_torch(reference).trace(Recipe(4, mode="forward_backward"))
    assert sum(p.elements for p in trace.parameters) == parameters
    assert trace.inputs[0].shape == (1, *shape)
    assert trace.flops["backward"] == pytest.approx(2 * trace.flops["forward"], rel=0.1)
    assert trace.opaque == ()


def test_a_detector_is_captured_by_its_backbone_and_says_so() -> None:
    trace = load_torch("torchvision:ssdlite320_mobilenet_v3_large").trace(Recipe(4, mode="forward"))
    assert "only the backbone" in trace.notes[0]


def test_a_network_of_fixed_size_is_built_for_the_size_asked_for() -> None:
    trace = load_torch("timm:vit_tiny_patch16_224", (3, 96, 96)).trace(Recipe(4, mode="forward"))
    attention = next(op for op in trace.ops if op.kind.label == "attention")
    assert attention.inputs[0].shape == (4, 3, 37, 64)


@pytest.mark.parametrize("reference", ["timm:resnet50", "torch_free:make"])
def test_without_torch_it_says_what_to_install(reference: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch_free.py").write_text("def make():\n    return 7\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[torch\]'"):
        load_torch(reference).trace(Recipe(4))
