"""Real training over two processes, small networks, few steps: that it runs, exchanges and leaves nobody behind."""

import json
from importlib.util import find_spec

import pytest

from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, MissingExtra, UnknownName
from epochcast.measure.bench.timing import Timing
from studies.this_machine.distributed import ScalingRun, _check_alike, free_ports, measure_scaling

needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="TensorFlow is not installed")


def check(run: ScalingRun) -> None:
    """What holds for every way; how well it scales is the machine's business."""
    assert run.ranks == 2
    assert run.recipe.batch == 4
    assert len(run.efficiencies) >= 3
    assert 0 < run.alone.low_seconds <= run.alone.seconds
    assert 0 < run.together.seconds < 60
    assert run.gradient_bytes == 97_320  # 24,330 parameters of four bytes
    json.dumps(run.as_dict(), allow_nan=False)


def test_ddp_trains_one_network_in_two_processes() -> None:
    pytest.importorskip("torch")
    check(measure_scaling("ddp", "mnist_cnn", Recipe(4), limit_seconds=0.5))


@needs_tensorflow
@pytest.mark.slow
def test_mirrored_strategy_trains_on_two_logical_devices() -> None:
    check(measure_scaling("mirrored", "mnist_cnn", Recipe(4), limit_seconds=0.5))


@needs_tensorflow
@pytest.mark.slow
def test_multi_worker_mirrored_strategy_trains_in_two_processes() -> None:
    check(measure_scaling("multi_worker_mirrored", "mnist_cnn", Recipe(4), limit_seconds=0.5))


# By hand.


def run_of(alone_seconds: float, beside_seconds: float, together_seconds: float) -> ScalingRun:
    every = (alone_seconds, beside_seconds, together_seconds)
    alone, beside, together = (Timing(seconds, seconds, 0.1, 9) for seconds in every)
    return ScalingRun("ddp", "mnist_cnn", Recipe(4), 2, 97_320, alone, beside, together, (0.7, 0.8, 0.75))


def test_efficiency_is_the_middle_of_the_rounds() -> None:
    assert run_of(0.75, 0.9, 1.0).efficiency == 0.75


def test_the_exchange_is_what_together_adds_to_beside() -> None:
    assert run_of(0.75, 0.9, 1.0).exchange_seconds == pytest.approx(0.1)
    assert run_of(0.75, 1.1, 1.0).exchange_seconds == 0


def test_replicas_that_drift_apart_were_not_trained_together() -> None:
    _check_alike([{"weights": [100.0]}, {"weights": [100.0]}], "ddp")
    with pytest.raises(BadInput, match="do not have the same weights"):
        _check_alike([{"weights": [100.0]}, {"weights": [101.0]}], "ddp")


def test_ports_are_different_ones() -> None:
    assert len(set(free_ports(8))) == 8


# The messages a user meets.


def test_an_unknown_way_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="known: ddp, horovod, mirrored, multi_worker_mirrored"):
        measure_scaling("gossip", "mnist_cnn", Recipe(4))


def test_horovod_says_why_not() -> None:
    with pytest.raises(BadInput, match=r"Horovod is not measured.*C\+\+14"):
        measure_scaling("horovod", "mnist_cnn", Recipe(4))


def test_without_the_framework_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.this_machine.distributed.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match="tensorflow"):
        measure_scaling("mirrored", "mnist_cnn", Recipe(4))
