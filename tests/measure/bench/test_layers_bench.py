from dataclasses import asdict

import pytest
import torch

from epochcast.errors import UnknownName
from epochcast.measure.bench.campaign import measure
from epochcast.measure.bench.layers_bench import METHODS, BenchLayer, _as_in_report, _in_network, draw_layers, questions
from epochcast.measure.bench.random_shapes import OpLimits

LAYER = BenchLayer("conv2d", 2, 3, 4, 8, 3, 1, 1, "relu", "adam")


# by hand: 2 · 2 samples · 8² pixels · 3² taps · 3 · 4 channels
def test_flops_of_a_layer_by_hand() -> None:
    assert LAYER.output_size == 8
    assert LAYER.forward_flops == 2 * 2 * 64 * 9 * 12


def trained(way: str) -> set[tuple[int, ...]]:
    """Shapes of everything the optimizer changes in one step."""
    seen: set[tuple[int, ...]] = set()
    original = torch.optim.Adam.step

    def step(self: torch.optim.Adam) -> None:
        seen.update(tuple(p.shape) for group in self.param_groups for p in group["params"])
        original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        {"network": _in_network, "report": _as_in_report}[way](LAYER, "cpu")()
    return seen


def test_in_a_network_only_the_weights_are_updated() -> None:
    assert trained("network") == {(4, 3, 3, 3), (4,)}


def test_as_in_the_report_input_and_target_are_updated_too() -> None:
    assert trained("report") == {(4, 3, 3, 3), (4,), (2, 3, 8, 8), (2, 4, 8, 8)}


@pytest.mark.parametrize("way", METHODS)
def test_both_ways_are_measured(way: str) -> None:
    (asked,) = questions("cpu", way, [LAYER])
    row = measure(asked)
    assert row.failed is None
    assert (row.question["way"], row.question["layer"]) == (way, asdict(LAYER))


def test_both_ways_ask_for_the_same_random_layers() -> None:
    right, flawed = ([q.ask["layer"] for q in questions("cpu", way)] for way in METHODS)
    assert right == flawed and len(right) > 300


def test_random_layers_keep_to_the_limits() -> None:
    limits = OpLimits(1e9, 2**24)
    for layer in draw_layers(1, 100, limits):
        assert 3 * layer.forward_flops <= limits.flops and 3 * layer.data_bytes <= limits.bytes


def test_an_unknown_way_is_named() -> None:
    with pytest.raises(UnknownName, match="known: network, report"):
        questions("cpu", "reports")
