"""PyTorch's own counters on a few networks; the study has more."""

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.memory.peak import peak_memory

pytest.importorskip("torch")

from studies.memory.decay import with_weight_decay
from studies.memory.truth import profiled, tracked


@pytest.mark.parametrize(("network", "optimizer"), [("mnasnet1_0", "momentum"), ("mobilenet_v3_small", "adam")])
def test_a_real_step_allocates_what_is_forecast(network: str, optimizer: str) -> None:
    assert abs(profiled(network, optimizer, 96, 8).error) < 0.03


@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
@pytest.mark.parametrize("network", ["resnet18", "squeezenet1_1", "densenet121", "mobilenet_v3_small"])
def test_the_forecast_is_what_memtracker_says(network: str, optimizer: str) -> None:
    assert abs(tracked(network, optimizer, 64, 8).error) < 0.001


# VGG's first product has 25,088 x 4,096 weights.
def test_weight_decay_holds_one_more_of_the_largest_parameter() -> None:
    trace = zoo_model("vgg11").trace(Recipe(1, optimizer="momentum", update_style="loop"))
    plain, decayed = (peak_memory(t).timeline for t in (trace, with_weight_decay(trace)))
    most = [
        max(n for n, phase in zip(t.total_bytes, t.phases, strict=True) if phase == "update") for t in (plain, decayed)
    ]
    assert most[1] - most[0] == 4 * 25_088 * 4_096
