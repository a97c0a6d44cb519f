import json
from dataclasses import replace
from math import exp, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.caching import Cache
from epochcast.capture.zoo import zoo_model
from epochcast.cost.contract import check_op_cost
from epochcast.cost.features import features
from epochcast.cost.learned import (
    GROUPS,
    KERNEL_SECONDS,
    LIMBS,
    POWERS,
    ROWS_AT_ONCE,
    Learned,
    caps,
    load_learned,
    log_bounds,
    op_groups,
    read_learned,
)
from epochcast.cost.setting import TODAY, Setting
from epochcast.graph.maths import OP_MATHS
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.sustained import sustained


@pytest.fixture(scope="module")
def trace() -> Trace:
    return zoo_model("resnet18").trace(Recipe(32, "momentum", "amp_fp16"))


def flat_net(trace: Trace, *outputs: float, unsure: float = 0.0) -> Learned:
    """A net whose last layer ignores its input and always says `outputs`, one for each power."""
    width = features(trace.columns, Setting()).shape[1]
    document = {
        "spreads": {
            "known": [0.9, 1.1],
            "unseen": [0.5, 2.0],
            "known, fp32 products": [0.95, 1.05],
            "unseen, fp32 products": [0.8, 1.2],
        },
        "quantiles": {"weight": [[0.0, 0.0]] * width, "bias": [unsure, unsure], "typical": log1p(exp(unsure))},
        "seen": [[-1e9] * width, [1e9] * width],
        "nets": [[{"weight": [[0.0] * len(outputs)] * width, "bias": outputs}]],
    }
    return read_learned(json.dumps(document))


def only_bound(output: float) -> tuple[float, ...]:
    """What a net says that knows no other power than the first."""
    return (*(output if power == (1, 0) else -40.0 for power in POWERS), *[-40.0] * LIMBS)


def test_a_flat_net_by_hand(trace: Trace) -> None:
    """seconds = bound · e^(softplus(0) - cap), softplus(0) = log 2, bound = factors · max(flops/(g·peak), …)."""
    device = find_device("RTX 3090")
    columns, kept = trace.columns, sustained(device)
    compute, memory = (np.exp(logs) for logs in log_bounds(columns, device))
    g = np.array([kept.math_fraction(math) for math in OP_MATHS])[columns.math]
    arithmetic = compute / np.where(columns.is_matrix, g, kept.vector_fraction)
    bound = np.maximum(arithmetic, memory / kept.bandwidth_fraction)
    factor = np.array([kept.group_factors[GROUPS[place]] for place in op_groups(columns, Setting())])
    factor = factor * kept.generation_factors["pytorch_2"]
    expected = np.maximum(factor * bound * 2 * np.exp(-caps(columns)), KERNEL_SECONDS)
    assert flat_net(trace, *only_bound(0.0)).costs(trace.columns, device, TODAY).mid == pytest.approx(
        expected, rel=1e-6
    )


def test_traffic_that_fits_the_cache_is_four_times_as_fast(trace: Trace) -> None:
    device = find_device("A100")
    assert device.l2_bytes is not None
    tiny, huge = (replace(device, l2_bytes=size) for size in (2**16, 2**40))
    ratio = np.exp(log_bounds(trace.columns, tiny)[1] - log_bounds(trace.columns, huge)[1])
    moved = trace.columns.bytes > 100 * 2**16
    assert ratio[moved] == pytest.approx(4, rel=0.04)


def test_the_net_only_ever_slows_down(trace: Trace) -> None:
    device = find_device("V100")
    fast, slow = (
        flat_net(trace, *only_bound(output)).costs(trace.columns, device, TODAY).mid for output in (-30.0, 2.0)
    )
    assert np.all(fast <= slow)
    assert slow.sum() <= fast.sum() * exp(log1p(exp(2.0))) * 1.001


def test_a_small_op_is_further_from_its_bound_than_a_large_one(trace: Trace) -> None:
    """The term with power 0: ten microseconds beside whatever the bound is."""
    outputs = [*(0.0 if power == (0, 0) else -40.0 for power in POWERS), *[-40.0] * LIMBS]
    costs = flat_net(trace, *outputs).costs(trace.columns, find_device("V100"), TODAY)
    alone = flat_net(trace, *only_bound(-40.0)).costs(trace.columns, find_device("V100"), TODAY)
    late = costs.mid / alone.mid
    large, small = alone.mid > 1e-4, alone.mid < 1e-5
    assert late[large].max() < 1.2 < np.median(late[small])


def test_a_device_nobody_measured_gets_the_wider_interval(trace: Trace) -> None:
    known, unseen = (
        flat_net(trace, *only_bound(0.0)).costs(trace.columns, find_device(name), TODAY)
        for name in ("P100-PCIE-16GB", "H100")
    )
    assert known.high / known.mid == pytest.approx(1.1)
    assert unseen.high / unseen.mid == pytest.approx(2.0)


def test_fp32_products_have_an_interval_of_their_own(trace: Trace) -> None:
    bert = zoo_model("bert_base").trace(Recipe(4))
    costs = flat_net(trace, *only_bound(0.0)).costs(bert.columns, find_device("H100"), TODAY)
    assert costs.high / costs.mid == pytest.approx(1.2)


def test_an_op_has_quantiles_of_its_own(trace: Trace) -> None:
    """Asked alone it lies between e^-softplus(1) and e^softplus(1) of the middle; in a step it shares the step's."""
    model, device = flat_net(trace, *only_bound(0.0), unsure=1.0), find_device("P100-PCIE-16GB")
    alone = model.alone(trace.columns, device, Setting())
    assert alone.high / alone.mid == pytest.approx(exp(log1p(exp(1.0))))
    assert alone.low / alone.mid == pytest.approx(exp(-log1p(exp(1.0))))


def test_the_shipped_model_is_surer_of_some_kinds_of_op_than_of_others(trace: Trace) -> None:
    costs = load_learned().costs(trace.columns, find_device("V100"), TODAY)
    width = costs.high / costs.mid
    assert width.max() > 1.05 * width.min() > 1


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
    slow, fast = (load_learned().costs(trace.columns, one, TODAY).mid for one in (device, faster))
    assert np.all(fast <= slow * (1 + 1e-12))


def test_the_shipped_model_keeps_the_contract(trace: Trace) -> None:
    for name in ("RTX 3090", "V100", "H100", "MI300X"):
        check_op_cost(load_learned(), trace, find_device(name))


def test_the_shipped_model_is_faster_on_a_faster_device(trace: Trace) -> None:
    seconds = [
        load_learned().costs(trace.columns, find_device(name), TODAY).mid.sum() for name in ("T4", "V100", "A100")
    ]
    assert seconds == sorted(seconds, reverse=True)


BATCHES = (1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 31, 32, 48, 64, 96, 128, 192, 255, 256)


@pytest.mark.parametrize("precision", ["fp32", "amp_fp16"])
@pytest.mark.parametrize("model", ["resnet50", "vgg16", "mobilenet_v2", "densenet121", "bert_base", "vit_b_16"])
def test_no_op_gets_cheaper_in_a_larger_batch(model: str, precision: str) -> None:
    """By construction: nothing the nets see grows with the batch."""
    step = zoo_model(model).trace(Recipe(1, "momentum", precision))
    seconds = [load_learned().costs(step.rebatch(batch).columns, find_device("RTX 3090"), TODAY) for batch in BATCHES]
    for end in ("low", "mid", "high"):
        assert np.all(np.diff([getattr(costs, end) for costs in seconds], axis=0) >= -1e-12)


@settings(max_examples=20, deadline=None)
@given(flops=st.floats(1.0, 100.0), traffic=st.floats(1.0, 100.0))
def test_more_flops_or_bytes_never_make_an_op_cheaper(flops: float, traffic: float) -> None:
    columns = zoo_model("mobilenet_v2").trace(Recipe(8, "momentum", "amp_fp16")).columns
    more = replace(
        columns,
        flops=flops * columns.flops,
        read_bytes=traffic * columns.read_bytes,
        written_bytes=traffic * columns.written_bytes,
    )
    less, larger = (
        load_learned().costs(c, find_device("T4"), Setting()).mid[columns.is_matrix] for c in (columns, more)
    )
    assert np.all(larger >= less * (1 - 1e-12))


def test_the_nets_are_asked_once_for_every_batch_and_device(trace: Trace) -> None:
    model = replace(load_learned(), net_outputs=Cache(8))
    for batch in (1, 8, 64):
        for name in ("T4", "V100"):
            model.costs(trace.rebatch(batch).columns, find_device(name), TODAY)
    assert len(model.net_outputs) == 1
    model.costs(trace.columns, find_device("T4"), replace(TODAY, channels_last=True))
    assert len(model.net_outputs) == 2


def test_an_op_costs_the_same_wherever_it_stands(trace: Trace) -> None:
    columns = trace.columns
    turned = columns.at(slice(None, None, -1))
    there, back = (load_learned().costs(each, find_device("V100"), TODAY).mid for each in (columns, turned))
    assert back[::-1] == pytest.approx(there, rel=1e-12)


def test_no_product_of_a_net_is_large_enough_for_threads() -> None:
    largest = max(weight.size for net in load_learned().nets for weight in net.weights)
    assert ROWS_AT_ONCE * largest <= 4 * 65_536
