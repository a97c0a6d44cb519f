import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.inductor_layout import turns_channels_last
from epochcast.describe.graph.recipe import Recipe


@pytest.mark.parametrize(
    ("model", "inference", "training"),
    [
        ("resnet50", True, True),
        ("mobilenet_v2", True, True),  # depthwise convolutions do not count as grouped
        ("resnext50_32x4d", True, False),  # grouped ones do, and weigh little in inference
        ("unet", True, False),  # its way up has fewer channels out than half of those in
        ("bert_base_classification", False, False),
    ],
)
def test_the_layout_follows_inductors_rules(model: str, inference: bool, training: bool) -> None:
    forward, whole = (zoo_model(model).trace(Recipe(2, mode=mode)) for mode in ("forward", "training"))
    assert turns_channels_last(forward) is inference
    assert turns_channels_last(whole) is training
