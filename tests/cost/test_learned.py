import json
from dataclasses import replace
from math import exp, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.capture.zoo import zoo_model
from epochcast.cost.contract import check_op_cost
from epochcast.cost.features import Setting, features
from epochcast.cost.learned import GROUPS, KERNEL_SECONDS, Learned, caps, load_learned, op_groups, read_learned
from epochcast.cost.roofline import limits
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import MATHS, Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.sustained import sustained


@pytest.fixture(scope="module")
def trace() -> Trace:
    return zoo_model("resnet18").trace(Recipe(32, "momentum", "amp_fp16"))


def flat_net(trace: Trace, output: float) -> Learned:
    """A net whose last layer ignores its input and always says `output`."""
    width = features(trace.columns, Setting()).shape[1]
    document = {
        "spreads": {
            "known": [0.9, 1.1],
            "unseen": [0.5, 2.0],
            "known, fp32 products": [0.95, 1.05],
            "unseen, fp32 products": [0.8, 1.2],
        },
        "seen": [[-1e9] * width, [1e9] * width],
        "nets": [[{"weight": [[0.0]] * width, "bias": [output]}]],
    }
    return read_learned(json.dumps(document))


def test_a_flat_net_by_hand(trace: Trace) -> None:
    """seconds = factor · max(flops/(g·peak), bytes/(b·bandwidth)) · e^(softplus(0) - cap), softplus(0) = log 2."""
    device = find_device("RTX 3090")
    columns, kept = trace.columns, sustained(device)
    limit = limits(columns, device)
    g = np.array([kept.math_fraction(math) for math in MATHS])[columns.math]
    arithmetic = limit.compute / np.where(columns.is_matrix, g, kept.vector_fraction)
    bound = np.maximum(arithmetic, limit.memory / kept.bandwidth_fraction)
    factor = np.array([kept.group_factors[GROUPS[place]] for place in op_groups(columns, Setting())])
    expected = np.maximum(factor * bound * 2 * np.exp(-caps(columns)), KERNEL_SECONDS)
    assert flat_net(trace, 0.0).costs(trace, device).mid == pytest.approx(expected, rel=1e-6)


def test_the_net_only_ever_slows_down(trace: Trace) -> None:
    device = find_device("V100")
    fast, slow = (flat_net(trace, output).costs(trace, device).mid for output in (-30.0, 2.0))
    assert np.all(fast <= slow)
    assert slow.sum() <= fast.sum() * exp(log1p(exp(2.0))) * 1.001


def test_a_device_nobody_measured_gets_the_wider_interval(trace: Trace) -> None:
    known, unseen = (flat_net(trace, 0.0).costs(trace, find_device(name)) for name in ("P100-PCIE-16GB", "H100"))
    assert known.high / known.mid == pytest.approx(1.1)
    assert unseen.high / unseen.mid == pytest.approx(2.0)


def test_fp32_products_have_an_interval_of_their_own(trace: Trace) -> None:
    bert = zoo_model("bert_base").trace(Recipe(4))
    costs = flat_net(trace, 0.0).costs(bert, find_device("H100"))
    assert costs.high / costs.mid == pytest.approx(1.2)


@settings(max_examples=20, deadline=None)
@given(peak=st.floats(1.0, 8.0), bandwidth=st.floats(1.0, 8.0))
def test_no_op_is_slower_on_a_faster_device(peak: float, bandwidth: float) -> None:
    """By construction: the nets do not see the device."""
    device = find_device("RTX 3090")  # measured: what it sustains is its own, whatever the data sheet says
    faster = replace(
        device,
        peak_flops_per_second={math: peak * rate for math, rate in device.peak_flops_per_second.items()},
        memory_bytes_per_second=bandwidth * device.memory_bytes_per_second,
    )
    trace = zoo_model("mobilenet_v2").trace(Recipe(8, "momentum", "amp_fp16"))
    slow, fast = (load_learned().costs(trace, one).mid for one in (device, faster))
    assert np.all(fast <= slow * (1 + 1e-12))


def test_the_shipped_model_keeps_the_contract(trace: Trace) -> None:
    for name in ("RTX 3090", "V100", "H100", "MI300X"):
        check_op_cost(load_learned(), trace, find_device(name))


def test_the_shipped_model_is_faster_on_a_faster_device(trace: Trace) -> None:
    seconds = [load_learned().costs(trace, find_device(name)).mid.sum() for name in ("T4", "V100", "A100")]
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("precision", ["fp32", "amp_fp16"])
@pytest.mark.parametrize("model", ["resnet50", "vgg16", "mobilenet_v2", "densenet121", "bert_base", "vit_b_16"])
def test_more_samples_never_take_less_time_in_the_shipped_model(model: str, precision: str) -> None:
    step = zoo_model(model).trace(Recipe(1, "momentum", precision))
    seconds = [
        load_learned().costs(step.rebatch(batch), find_device("RTX 3090")).mid.sum()
        for batch in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    ]
    assert seconds == sorted(seconds)
