import pytest

from epochcast.measure.tables.model_lookup import by_squeezed, reference_of


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("resnet50", "resnet50"),
        ("ResNet-50", "resnet50"),
        ("VGG 16", "vgg16"),
        ("meta-llama/Llama-3.1-8B", "llama3_1_8b"),
        ("torchvision:resnet18", "torchvision:resnet18"),
        ("model.onnx", "model.onnx"),
        ("nonet", "nonet"),
    ],
)
def test_a_name_differs_by_its_punctuation_alone(name: str, reference: str) -> None:
    assert reference_of(name) == reference


def test_names_of_the_libraries_are_found_there() -> None:
    pytest.importorskip("timm")
    assert reference_of("convnext_tiny") == "torchvision:convnext_tiny"
    assert reference_of("resnet50d") == "timm:resnet50d"
    assert reference_of("resnet50d.ra2_in1k") == "timm:resnet50d"


def test_names_that_become_the_same_are_nobodys() -> None:
    assert by_squeezed(["a-b", "a_b", "c"]) == {"c": "c"}
