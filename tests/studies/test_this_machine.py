import pytest

pytest.importorskip("torch")

from epochcast.describe.capture.zoo import zoo_model
from studies.this_machine.measure import layers_of


def test_the_layers_of_the_reports_network() -> None:
    found = layers_of(zoo_model("cifar10_cnn").graph(8), "adam")
    assert [(layer.kind, layer.channels_in, layer.channels_out, layer.size) for layer in found] == [
        ("conv2d", 3, 64, 32),
        ("conv2d", 64, 64, 15),
        ("conv2d", 64, 32, 6),
        ("dense", 128, 512, 1),
        ("dense", 512, 256, 1),
        ("dense", 256, 128, 1),
        ("dense", 128, 10, 1),
    ]
    assert [layer.activation for layer in found] == ["relu"] * 6 + ["none"]
    assert {layer.padding for layer in found} == {0}
