"""Parameters by hand, or of the published network where leaving activations and shortcuts out changes none."""

import pytest
from tests.every import every

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo.kernelbench import PROBLEMS
from epochcast.errors import BadInput, UnknownName

COUNTS = {
    "MLP": 2 * 16384 * 16385 + 8192 * 16385,
    "ShallowWideMLP": 32768 * 16385 + 32768 * 32769 + 16384 * 32769,
    "LeNet5": 61_706 + 10 * 85,  # ten classes more than LeCun et al. 1998
    "AlexNet": 62_378_344,  # one tower of the paper's filters
    "GoogleNetInceptionV1": 6_998_552,
    "MobileNetV2": 3_504_872,  # torchvision's: shortcuts have no parameters
    "ResNetBasicBlock": 64 * 3 * 9 + 64 * 64 * 9 + 64 * 3 + 3 * 128,
    "SqueezeNetFireModule": 6 * 4 + 64 * 7 + 64 * (54 + 1),
    "DenseNet121TransitionLayer": 64 + 32 * 64,
    "DenseNet121DenseBlock": sum((32 + 32 * i) * (2 + 32 * 9) for i in range(6)),
    "EfficientNetMBConv": 112 * 672 + 25 * 672 + 672 * 192 + 2 * (672 + 672 + 192),
    "MiniGPTBlock": 12 * 768**2 + 13 * 768,
}


@every("name", PROBLEMS)
def test_every_problem_is_built_and_run(name: str) -> None:
    graph = find_model(f"kernelbench:{name}", allow_code=False).graph(2)
    assert graph.parameter_count == COUNTS.get(name, graph.parameter_count) > 0


def test_the_pooled_gate_is_all_that_goes_on() -> None:
    """EfficientNetB2: behind the first block every image is one pixel."""
    graph = find_model("kernelbench:EfficientNetB2").graph(2)
    convolved = [op.output.shape[2:] for op in graph.ops if type(op.kind).__name__ == "Conv"]
    assert convolved[:2] == [(112, 112), (112, 112)] and set(convolved[4:]) == {(1, 1)}


def test_names_and_sizes_are_checked() -> None:
    with pytest.raises(UnknownName, match="no problem of KernelBench called 'SwinMLP'"):
        find_model("kernelbench:SwinMLP")
    with pytest.raises(BadInput, match="AlexNet takes an input of 3 sizes, got 1"):
        find_model("kernelbench:AlexNet", (224,))
