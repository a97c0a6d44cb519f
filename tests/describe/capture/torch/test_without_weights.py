"""Scripts that would fetch weights are captured without them."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from epochcast.describe.capture.torch.torch_load import load_torch

if find_spec("timm") is None:
    pytest.skip("timm is absent", allow_module_level=True)

_TIMM = "import timm\nmodel = timm.create_model('resnet18', pretrained=True, num_classes=10)\n"
_TORCHVISION = """
from torchvision.models import ResNet18_Weights, resnet18

def make():
    return resnet18(weights=ResNet18_Weights.DEFAULT)
"""


@pytest.mark.parametrize(
    ("text", "name", "parameters"), [(_TIMM, "model", 11_181_642), (_TORCHVISION, "make", 11_689_512)]
)
def test_pretrained_networks_are_built_without_their_weights(
    tmp_path: Path, text: str, name: str, parameters: int
) -> None:
    (tmp_path / "train.py").write_text(text)
    model = load_torch(f"{tmp_path / 'train.py'}:{name}", (3, 64, 64))
    assert model.graph(1).parameter_count == parameters
