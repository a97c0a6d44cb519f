import json
from dataclasses import replace
from math import exp, log1p

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.every import every

from epochcast.base.caching import Cache
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.math_modes import OP_MATHS, op_math_index
from epochcast.describe.graph.op_work import OpClass
from epochcast.describe.graph.precision import PRECISIONS
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import CLASSES, Columns, Trace
from epochcast.hardware.catalogue import find_device
from epochcast.hardware.sustained import sustained
from epochcast.predict.cost.cost_contract import check_op_cost
from epochcast.predict.cost.cost_model import fill_gaps
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.features import features, math_features
from epochcast.predict.cost.learned import (
    KERNEL_SECONDS,
    LIMBS,
    POWERS,
    ROWS_AT_ONCE,
    Learned,
    load_learned,
    read_learned,
)
from epochcast.predict.cost.op_bounds import GROUPS, TOWERS, as_run, caps, log_bounds, op_groups
from epochcast.predict.cost.product import product_columns
from epochcast.predict.cost.roofline import Analytic, bounds
from epochcast.predict.cost.software_setting import GENERATIONS, TODAY, SoftwareSetting
from epochcast.predict.cost.spreads import EVIDENCE, KERNEL_PARTS, NO_TENSOR_CORES, OTHER_VENDOR, TENSOR_CORES
from epochcast.predict.cost.waves import TILES

# No board has so many multiprocessors.
UNMEASURED = replace(find_device("H100"), name="made up", compute_units=97)
HARDWARE = (TENSOR_CORES, NO_TENSOR_CORES, OTHER_VENDOR)
VARIANCES = dict(zip(EVIDENCE, (0.01, 0.04, 0.09, 0.16), strict=True))


@pytest.fixture(scope="module")
def trace() -> Trace:
    return zoo_model("resnet18").trace(Recipe(32, "momentum", "amp_fp16"))


def flat_net(trace: Trace, *outputs: float, unsure: float = 0.0) -> Learned:
    """Nets whose last layer ignores its input and always says `outputs`, one for each power; no law but the bound."""
    width = features(trace.columns, SoftwareSetting()).shape[1]
    document = {
        "spreads": {
            "devices": {f"{known_by}, {hardware}": v for known_by, v in VARIANCES.items() for hardware in HARDWARE},
            "frameworks": dict.fromkeys(GENERATIONS, 0.0),
            "kernels": dict.fromkeys(KERNEL_PARTS, 0.0),
            "scales": {f"{hardware}, {mode}": [1, 2] for hardware in HARDWARE for mode in ("training", "forward")},
        },
        "quantiles": {"weight": [[0.0, 0.0]] * width, "bias": [unsure, unsure]},
        "seen": [[-1e9] * width, [1e9] * width],
        "laws": {
            "tile_costs": [50.0] * len(TILES) + [0.0],  # the inner size is always divided: no padding
            "compute_losses": [0.0] * len(GROUPS),
            "bandwidth_losses": [0.0] * len(GROUPS),
        },
        "nets": [[[{"weight": [[0.0] * len(outputs)] * width, "bias": outputs}]] * len(TOWERS)],
    }
    return read_learned(json.dumps(document))


def only_bound(output: float) -> tuple[float, ...]:
    """What a net says that knows no other power than the first."""
    return (*(output if power == (1, 0) else -40.0 for power in POWERS), *[-40.0] * LIMBS)


def test_a_flat_net_by_hand(trace: Trace) -> None:
    """seconds = bound · e^(softplus(0) - cap), softplus(0) = log 2, bound = factors · max(flops/(g·peak), …)."""
    device = find_device("RTX 3090")
    columns, kept = trace.columns, sustained(device)
    compute, memory = (np.exp(logs) for logs in log_bounds(columns, device, bounds(columns, device)))
    g = np.array([kept.math_fraction(math) for math in OP_MATHS])[columns.math]
    arithmetic = compute / np.where(columns.is_matrix, g, kept.vector_fraction)
    bound = np.maximum(arithmetic, memory / kept.bandwidth_fraction)
    factor = np.array([kept.group_factors[GROUPS[place]] for place in op_groups(columns, SoftwareSetting())])
    factor = factor * kept.generation_factors["pytorch_2"]
    expected = np.maximum(factor * bound * 2 * np.exp(-caps(columns)), KERNEL_SECONDS)
    assert flat_net(trace, *only_bound(0.0)).costs(trace.columns, device, TODAY).mid == pytest.approx(
        expected, rel=1e-6
    )


def test_traffic_that_fits_the_cache_is_four_times_as_fast(trace: Trace) -> None:
    device = find_device("A100")
    assert device.l2_bytes is not None
    tiny, huge = (replace(device, l2_bytes=size) for size in (2**16, 2**40))
    slow, quick = (log_bounds(trace.columns, cached, bounds(trace.columns, cached))[1] for cached in (tiny, huge))
    ratio = np.exp(slow - quick)
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
    measured = find_device("RTX 3090")
    assert "fp16-nchw-training" in sustained(measured).known_kinds
    known, unseen = (
        flat_net(trace, *only_bound(0.0)).costs(trace.columns, device, TODAY) for device in (measured, UNMEASURED)
    )
    assert known.high / known.mid == pytest.approx(exp(2 * 0.1))
    assert unseen.high / unseen.mid == pytest.approx(exp(2 * 0.4))
    assert unseen.low / unseen.mid == pytest.approx(exp(-0.4))


def test_an_op_has_quantiles_of_its_own(trace: Trace) -> None:
    """Asked alone it lies between e^-softplus(1) and e^softplus(1) of the middle; in a step it shares the step's."""
    model, device = flat_net(trace, *only_bound(0.0), unsure=1.0), find_device("P100-PCIE-16GB")
    alone = model.alone(trace.columns, device, SoftwareSetting())
    assert alone.high / alone.mid == pytest.approx(exp(log1p(exp(1.0))))
    assert alone.low / alone.mid == pytest.approx(exp(-log1p(exp(1.0))))


def test_the_shipped_model_is_surer_of_some_kinds_of_op_than_of_others(trace: Trace) -> None:
    costs = load_learned().alone(trace.columns, find_device("V100"), TODAY)
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


@every("precision", ["fp32", "amp_fp16"])
@every("model", ["resnet50", "vgg16", "mobilenet_v2", "densenet121", "bert_base", "vit_b_16"])
def test_no_op_gets_cheaper_in_a_larger_batch(model: str, precision: str) -> None:
    """By construction: nothing the nets see grows with the batch."""
    step = zoo_model(model).trace(Recipe(1, "momentum", precision))
    seconds = [load_learned().costs(step.rebatch(batch).columns, find_device("RTX 3090"), TODAY) for batch in BATCHES]
    assert np.all(np.diff([costs.mid for costs in seconds], axis=0) >= -1e-12)
    for end in ("low", "high"):  # how sure an op is depends on the step it is in
        assert np.all(np.diff([getattr(costs, end).sum() for costs in seconds]) >= -1e-12)


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
        load_learned().costs(c, find_device("T4"), SoftwareSetting()).mid[columns.is_matrix] for c in (columns, more)
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
    largest = max(weight.size for member in load_learned().members for net in member for weight in net.weights)
    assert ROWS_AT_ONCE * largest <= 4 * 65_536


def test_tiles_and_losses_by_hand() -> None:
    """One product of one 128 x 128 tile at a time: padding is the number of multiprocessors; u = 0.5 of a peak that is
    four times the reference halves the gain.
    """
    device = find_device("V100")
    product = product_columns((128, 128, 2**20), "fp16")
    model = flat_net(zoo_model("resnet18").trace(Recipe(1)), *only_bound(-40.0))
    square = np.array([0.0 if tile == (128, 128) else 50.0 for tile in (*TILES, None)])

    def seconds(peak: float, losses: float, tile_costs: np.ndarray) -> float:
        laws = replace(model.laws, tile_costs=tile_costs, compute_losses=np.full(len(GROUPS), losses))
        peaks = {**device.peak_flops_per_second, "fp16": peak}
        one = replace(device, peak_flops_per_second=peaks, memory_bytes_per_second=1e14, watts=None)
        return float(replace(model, laws=laws).costs(product, one, TODAY).mid[0])

    free = model.laws.tile_costs
    assert seconds(2e14, 0.0, square) / seconds(2e14, 0.0, free) == pytest.approx(device.compute_units)
    assert seconds(2e14, 0.5, free) == pytest.approx(seconds(2e14, 0.0, free)), "the reference"
    assert seconds(2e14, 0.5, free) / seconds(8e14, 0.5, free) == pytest.approx(2)


def large(precision: str) -> Columns:
    return product_columns((8192, 8192, 8192), precision)


@every("precision", PRECISIONS)
def test_every_format_was_in_the_training(precision: str) -> None:
    """A feature that is constant over the training is clipped away: all formats like it would cost the same."""
    low, high = (math_features(end) for end in load_learned().seen)
    place = op_math_index(PRECISIONS[precision].math)
    assert (low[place], high[place]) == (0, 1)


@pytest.mark.parametrize(
    ("device", "precision"),
    [("H100-SXM5-80GB", "fp8"), ("B200", "mxfp8"), ("B200", "nvfp4"), ("RTX 4090", "fp8"), ("MI300X", "fp8")],
)
def test_narrow_products_are_answered_by_the_learned_model_where_the_device_has_the_format(
    device: str, precision: str
) -> None:
    columns, gpu = large(precision), find_device(device)
    assert as_run(columns, gpu) is columns
    costs = find_cost_model().costs(columns, gpu, TODAY)
    assert set(costs.time_fractions()) == {"learned"}
    assert costs.mid < find_cost_model().costs(large("bf16"), gpu, TODAY).mid


@pytest.mark.parametrize("device", ["A100-SXM4-80GB", "RTX 3090"])
@pytest.mark.parametrize("precision", ["fp8", "nvfp4"])
def test_a_device_without_the_format_computes_in_bfloat16(device: str, precision: str) -> None:
    """Arithmetic binds this product: that it is stored in fewer bytes hardly counts."""
    gpu = find_device(device)
    narrow, plain = (find_cost_model().costs(large(each), gpu, TODAY) for each in (precision, "bf16"))
    assert set(narrow.time_fractions()) == {"learned"}
    for end in ("low", "mid", "high"):
        assert getattr(narrow, end) == pytest.approx(getattr(plain, end), rel=0.05)


@pytest.mark.parametrize("precision", ["fp8", "nvfp4"])
def test_what_is_widened_is_the_same_op_but_for_what_it_moves(precision: str) -> None:
    columns, wide = large(precision), large("bf16")
    run = as_run(columns, find_device("A100-SXM4-80GB"))
    assert np.array_equal(features(run, TODAY), features(wide, TODAY))
    assert run.bytes == columns.bytes


def test_four_bits_run_in_eight_where_there_are_only_those() -> None:
    run = as_run(large("nvfp4"), find_device("H100-SXM5-80GB"))
    assert [OP_MATHS[math] for math in run.math] == ["fp8"]


@pytest.mark.parametrize("precision", ["fp8", "nvfp4", "fp64"])
def test_a_format_without_training_rows_gets_the_formula(precision: str) -> None:
    columns, device, model = large(precision), find_device("B200"), load_learned()
    low, high = (end.copy() for end in model.seen)
    math_features(high)[columns.math] = math_features(low)[columns.math]
    untrained = replace(model, seen=(low, high), net_outputs=Cache(4))
    costs = untrained.costs(columns, device, TODAY)
    formula = Analytic().costs(columns, device, TODAY)
    assert np.isnan(costs.mid).all() and not untrained.knows(columns, device).any()
    assert untrained.knows(large("bf16"), device).all()
    filled = fill_gaps(costs, formula)
    assert set(filled.time_fractions()) == {"analytic"}
    assert filled.mid == formula.mid


@pytest.mark.parametrize("precision", ["fp8", "nvfp4"])
def test_the_contract_holds_for_narrow_formats(precision: str) -> None:
    step = zoo_model("bert_base").trace(Recipe(4, precision=precision))
    for name in ("B200", "H100-SXM5-80GB", "A100-SXM4-80GB"):
        check_op_cost(load_learned(), step, find_device(name))


def test_what_no_gpu_is_gets_the_formula() -> None:
    costs = find_cost_model().costs(large("fp8"), find_device("TPU v3"), TODAY)
    assert set(costs.time_fractions()) == {"analytic"}


def convolution(batch: int, side: int, channels: tuple[int, int], taps: int, groups: int) -> Columns:
    into, out = (groups * each for each in channels)
    rows = float(batch * side * side)
    x, y, w = rows * into, rows * out, out * into / groups * taps * taps
    op_class = OpClass.CONV_GROUPED if groups > 1 else OpClass.CONV_POINTWISE if taps == 1 else OpClass.CONV
    return replace(
        product_columns((1, 1, 1), "fp32"),
        op_class=np.array([CLASSES.index(op_class)]),
        flops=np.array([2 * y * into / groups * taps * taps]),
        read_bytes=np.array([4 * (x + w)]),
        written_bytes=np.array([4 * y]),
        m=np.array([rows]),
        n=np.array([out / groups]),
        k=np.array([into / groups * taps * taps]),
        count=np.array([float(groups)]),
        kernel=np.array([float(taps * taps)]),
        groups=np.array([float(groups)]),
        channels_in=np.array([float(into)]),
        channels_out=np.array([float(out)]),
        samples=np.array([float(batch)]),
    )


def in_math(columns: Columns, math: str) -> Columns:
    return replace(columns, math=np.full(len(columns), op_math_index(math)))


AMPERE_AND_LATER = ("A100-SXM4-80GB", "H100-SXM5-80GB", "RTX 4090")


def assert_tf32_is_not_slower(columns: Columns) -> None:
    for name in AMPERE_AND_LATER:
        for setting in (TODAY, replace(TODAY, channels_last=True)):
            tf32, fp32 = (
                load_learned().costs(in_math(columns, math), find_device(name), setting).mid[0]
                for math in ("tf32", "fp32")
            )
            assert tf32 <= fp32, f"{name}: {tf32:.3g} s in tf32, {fp32:.3g} s in fp32"


@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.integers(1, 20_000)] * 3))
def test_a_product_in_tf32_is_never_slower_than_in_fp32(sizes: tuple[int, int, int]) -> None:
    assert_tf32_is_not_slower(product_columns(sizes, "fp32"))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 256),
    st.integers(1, 224),
    st.tuples(st.integers(1, 512), st.integers(1, 512)),
    st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 2, 32]),
)
def test_a_convolution_in_tf32_is_never_slower_than_in_fp32(
    batch: int, side: int, channels: tuple[int, int], taps: int, groups: int
) -> None:
    assert_tf32_is_not_slower(convolution(batch, side, channels, taps, groups))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 6000)] * 3),
    more=st.integers(0, 900),
    precision=st.sampled_from(sorted(PRECISIONS)),
    name=st.sampled_from(["B200", "H100-SXM5-80GB", "RTX 3090", "T4", "MI300X"]),
)
def test_more_rows_never_make_a_product_cheaper(
    sizes: tuple[int, int, int], more: int, precision: str, name: str
) -> None:
    """Whole tiles and waves included, in every format."""
    m, n, k = sizes
    few, many = (
        load_learned().costs(product_columns((rows, n, k), precision), find_device(name), TODAY)
        for rows in (m, m + more)
    )
    for end in ("low", "mid", "high"):
        assert getattr(many, end)[0] >= getattr(few, end)[0] * (1 - 1e-12)
