"""keras.applications against Keras itself: trainable parameters and the output shape of every layer."""

import os
from typing import Any

import pytest
from tests.every import every

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from epochcast.describe.capture.keras import from_keras, layer_shapes  # noqa: E402
from epochcast.describe.graph.recipe import Recipe  # noqa: E402

DOZEN = [
    "ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0", "InceptionResNetV2", "InceptionV3",
    "MobileNet", "MobileNetV2", "MobileNetV3Small", "ResNet50", "ResNet50V2", "VGG16", "Xception",
]  # fmt: skip


def built(make: Any, **options: Any) -> Any:
    """A model without memory where the backend can."""
    if keras.backend.backend() != "torch":
        return make(**options)
    with keras.device("meta"):
        return make(**options)


def keras_shapes(model: Any, prefix: str = "") -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for layer in model.layers:
        if type(layer).__name__ == "InputLayer":
            continue
        outputs = layer.output if isinstance(layer.output, list) else [layer.output]
        found[f"{prefix}{layer.name}"] = [tuple(t.shape[1:]) for t in outputs]
        if hasattr(layer, "layers"):
            found |= keras_shapes(layer, f"{prefix}{layer.name}.")
    return found


def trainable(model: Any) -> int:
    total = 0
    for weight in model.trainable_weights:
        size = 1
        for n in weight.shape:
            size *= n
        total += size
    return total


@pytest.mark.slow
@every("name", DOZEN)
def test_a_network_is_read_as_keras_describes_it(name: str) -> None:
    open_input = {"MobileNetV3Small": {"input_shape": (224, 224, 3)}}
    model = built(getattr(keras.applications, name), weights=None, **open_input.get(name, {}))
    graph = from_keras(model).graph(2)
    assert graph.trainable_parameter_count == trainable(model)
    ours = layer_shapes(model)
    theirs = keras_shapes(model)
    assert {path: [s[1:] for s in ours[path]] for path in theirs} == theirs


# forward GMAC as published with the networks (keras.io/api/applications links the papers)
@pytest.mark.parametrize(("name", "gmac"), [("MobileNet", 0.569), ("VGG16", 15.47)])
def test_forward_work_is_the_published(name: str, gmac: float) -> None:
    model = built(getattr(keras.applications, name), weights=None)
    trace = from_keras(model).trace(Recipe(4, mode="forward"))
    assert trace.flops["forward"] / 4 == pytest.approx(2e9 * gmac, rel=0.01)
    assert trace.opaque == ()
