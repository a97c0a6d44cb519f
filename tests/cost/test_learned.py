import json
from math import exp, log, log1p

import numpy as np
import pytest

from epochcast.capture.zoo import zoo_model
from epochcast.cost.contract import check_op_cost
from epochcast.cost.features import Setting, features
from epochcast.cost.learned import KERNEL_SECONDS, Learned, caps, load_learned, read_learned
from epochcast.cost.roofline import limits
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import MATHS, Trace
from epochcast.hardware.catalogue import find_device


@pytest.fixture(scope="module")
def trace() -> Trace:
    return zoo_model("resnet18").trace(Recipe(32, "momentum", "amp_fp16"))


def flat_net(trace: Trace, output: float) -> Learned:
    """A net whose last layer ignores its input and always says `output`."""
    width = features(trace.columns, find_device("V100"), Setting()).shape[1]
    fractions = {m: log(0.5) for m in MATHS} | {"vector": log(0.5), "bandwidth": log(0.5)}
    document = {
        "spreads": {"known": [0.9, 1.1], "unseen": [0.5, 2.0]},
        "devices": {"V100-SXM2-16GB": fractions},
        "generations": {"any": fractions},
        "launch_seconds": {},
        "seen": [[-1e9] * width, [1e9] * width],
        "nets": [[{"weight": [[0.0]] * width, "bias": [output]}]],
    }
    return read_learned(json.dumps(document))


def test_a_flat_net_by_hand(trace: Trace) -> None:
    """seconds = max(flops/(½ peak), bytes/(½ bandwidth)) · e^(softplus(0) - cap), softplus(0) = log 2."""
    device = find_device("V100")
    costs = flat_net(trace, 0.0).costs(trace, device)
    limit = limits(trace.columns, device)
    bound = 2 * np.maximum(limit.compute, limit.memory)
    expected = np.maximum(bound * 2 * np.exp(-caps(trace.columns)), KERNEL_SECONDS)
    assert costs.mid == pytest.approx(expected, rel=1e-6)


def test_the_net_only_ever_slows_down(trace: Trace) -> None:
    device = find_device("V100")
    fast, slow = (flat_net(trace, output).costs(trace, device).mid for output in (-30.0, 2.0))
    assert np.all(fast <= slow)
    assert slow.sum() <= fast.sum() * exp(log1p(exp(2.0))) * 1.001


def test_a_device_nobody_measured_gets_the_wider_interval(trace: Trace) -> None:
    model = flat_net(trace, 0.0)
    assert model.spread(find_device("V100")) == (0.9, 1.1)
    assert model.spread(find_device("H100")) == (0.5, 2.0)


def test_the_shipped_model_keeps_the_contract(trace: Trace) -> None:
    for name in ("RTX 3090", "V100", "H100", "MI300X"):
        check_op_cost(load_learned(), trace, find_device(name))


def test_the_shipped_model_is_faster_on_a_faster_device(trace: Trace) -> None:
    seconds = [load_learned().costs(trace, find_device(name)).mid.sum() for name in ("T4", "V100", "A100")]
    assert seconds == sorted(seconds, reverse=True)


def test_more_samples_never_take_less_time_in_the_shipped_model() -> None:
    model = zoo_model("resnet50")
    device = find_device("RTX 3090")
    steps = [
        load_learned().costs(model.trace(Recipe(batch, "momentum", "amp_fp16")), device).mid.sum()
        for batch in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    ]
    assert steps == sorted(steps)
