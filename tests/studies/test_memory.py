"""PyTorch's own counters on a few networks; the study has more."""

import pytest

pytest.importorskip("torch")

from studies.memory.truth import profiled, tracked


@pytest.mark.parametrize(("network", "optimizer"), [("mnasnet1_0", "momentum"), ("mobilenet_v3_small", "adam")])
def test_a_real_step_allocates_what_is_forecast(network: str, optimizer: str) -> None:
    assert abs(profiled(network, optimizer, 96, 8).error) < 0.03


@pytest.mark.parametrize("network", ["squeezenet1_1", "densenet121", "mobilenet_v3_small"])
def test_the_forecast_is_what_memtracker_says(network: str) -> None:
    assert abs(tracked(network, "adam", 64, 8).error) < 0.001
