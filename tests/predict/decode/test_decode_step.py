"""Seconds of a step of an engine, by hand and by its laws."""

from dataclasses import replace
from math import hypot

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.hardware.catalogue import find_device, find_link
from epochcast.predict.decode.decode_rates import (
    AllReduceRate,
    AttentionRate,
    DecodeRates,
    EngineRate,
    ProductRate,
    decode_rates,
)
from epochcast.predict.decode.decode_step import ACTIVATION_BYTES, HIDDEN_PASSES, DecodeCost, StepLoad, decode_cost
from epochcast.predict.decode.decoder_shape import DecodeAttention, DecodeProduct, DecoderShape

H100 = find_device("H100-SXM5-80GB")
ENGINE = EngineRate("own", 1e-6, 1e-3, 256, 0.9, True, False, 0.8, 1.25)
PLAIN = ProductRate(0.0, 1.0, 1.0)
RATES = DecodeRates(
    {(H100.name, "bf16"): PLAIN},
    {(H100.name, "bf16"): AttentionRate(0.0, 1.0)},
    {(H100.name, 2): AllReduceRate(1e-5, 1e11)},
    {"own": ENGINE},
    {},
)
SHAPE = DecoderShape(
    "small",
    parameters=10**6 + 8000,
    hidden=1000,
    products=(DecodeProduct(1, 1000, 1000), DecodeProduct(1, 1000, 8, is_head=True)),
    attentions=(DecodeAttention(1, 4, 2, 100),),
)


def cost_of(gpus: int = 1, shape: DecoderShape = SHAPE, rates: DecodeRates = RATES) -> DecodeCost:
    return decode_cost(shape, H100, find_link("nvlink4"), gpus, ("bf16", "bf16"), ENGINE, rates)


def test_a_step_by_hand() -> None:
    parts = cost_of().step(StepLoad(sequences=4, context_tokens=400))
    bandwidth, peak = H100.memory_bytes_per_second, H100.peak("bf16")
    body = hypot((2 * 10**6 + 4 * 2 * 2000) / bandwidth, 2 * 4 * 10**6 / peak)
    head = hypot((2 * 8000 + 4 * 2 * 1008) / bandwidth, 2 * 4 * 8000 / peak)
    fused = 4 * (HIDDEN_PASSES * 1000 + 1000) * ACTIVATION_BYTES / bandwidth
    assert parts.products == pytest.approx(body + head + fused)
    assert parts.attention == pytest.approx(400 * 2 * 2 * 100 * 2 / bandwidth)
    assert parts.engine == pytest.approx(1e-3 + 1e-6)
    assert parts.all_reduce == 0
    assert parts.seconds == pytest.approx(parts.products + parts.attention + parts.engine)


def test_two_gpus_exchange_hidden_states_twice_per_layer() -> None:
    parts = cost_of(2).step(StepLoad(4, 400))
    assert parts.all_reduce == pytest.approx(2 * (1e-5 + 4 * 1000 * 2 / 1e11))


def test_a_key_head_is_copied_where_there_are_more_gpus() -> None:
    rates = replace(RATES, all_reduces={(H100.name, n): AllReduceRate(0, 1e12) for n in (2, 4)})
    two, four = (cost_of(n, rates=rates).step(StepLoad(4, 400)).attention for n in (2, 4))
    assert two == pytest.approx(four)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(0, 10**6))
def test_more_sequences_never_take_less_time(few: int, more: int, context: int) -> None:
    cost = cost_of()
    assert cost.step(StepLoad(few + more, context)).seconds >= cost.step(StepLoad(few, context)).seconds


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_longer_context_never_takes_less_time(short: int, more: int) -> None:
    cost = cost_of()
    assert cost.step(StepLoad(8, short + more)).seconds > cost.step(StepLoad(8, short)).seconds


def test_no_step_reads_its_weights_faster_than_memory_allows() -> None:
    rates = decode_rates()
    for name in sorted({device for device, _ in rates.products}):
        device = find_device(name)
        cost = decode_cost(SHAPE, device, find_link(device.interconnect), 1, ("bf16", "bf16"), ENGINE, rates)
        seconds = cost.step(StepLoad(1, 1)).products
        assert seconds >= 2 * SHAPE.parameters / device.memory_bytes_per_second, name


def test_a_device_nobody_timed_has_the_median_of_its_generation() -> None:
    rates = decode_rates()
    h20, hopper = (
        rates.product(find_device("H20"), "bf16"),
        [
            rate
            for (name, form), rate in rates.products.items()
            if form == "bf16" and find_device(name).generation == "hopper"
        ],
    )
    assert (
        min(r.bandwidth_fraction for r in hopper) <= h20.bandwidth_fraction <= max(r.bandwidth_fraction for r in hopper)
    )


def test_rates_without_a_device_have_no_row_of_it() -> None:
    rates = decode_rates().without(H100.name)
    assert not rates.is_measured(H100)
    assert decode_rates().is_measured(H100)
