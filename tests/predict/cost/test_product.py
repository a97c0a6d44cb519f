"""One measured product: how it is written, what it says of a device, and when it is refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.cost_models import find_cost_model
from epochcast.predict.cost.product import Product, parse_product, product_columns, with_product
from epochcast.predict.cost.software_setting import SoftwareSetting

A100, LEARNED = find_device("A100"), find_cost_model("learned")


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("2.1ms", Product(2.1e-3)),
        ("0.0021s", Product(2.1e-3)),
        ("4096x2048x1024=0.5 ms", Product(5e-4, 4096, 2048, 1024)),
        ("4096=1ms", Product(1e-3, 4096, 4096, 4096)),
        ("bf16:8192x8192x8192=2.1ms", Product(2.1e-3, precision="bf16")),
        ("amp:2.1ms", Product(2.1e-3, precision="amp_fp16")),
    ],
)
def test_a_product_is_written_in_short_or_in_full(text: str, product: Product) -> None:
    parsed = parse_product(text)
    assert parsed.seconds == pytest.approx(product.seconds)
    assert replace(parsed, seconds=product.seconds) == product


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fast", "'fast' is not a time"),
        ("8192x8192=1ms", "a product has three sizes, m x n x k, got '8192x8192'"),
        ("0ms", "the seconds of a product must be above 0, got 0"),
        ("-1ms", "'-1ms' is not a time"),
        ("64=1ms", "a product of 64x64x64 is too small to tell"),
        ("bf16:8192=1ms=2ms", "is no measured product; write it like"),
    ],
)
def test_what_is_no_product_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse_product(text)


def test_a_product_in_no_format_of_products_is_refused() -> None:
    with pytest.raises(UnknownName, match="no precision called 'int9'"):
        parse_product("int9:1ms")


def seconds_of(product: Product, precision: str, device: object) -> float:
    columns = product_columns((product.m, product.n, product.k), precision)
    return float(LEARNED.costs(columns, device, SoftwareSetting()).mid[0])  # type: ignore[arg-type]


@every("precision", ["fp32", "tf32", "fp16", "bf16"])
@every("slower", [0.8, 1.0, 2.0])
def test_the_model_then_answers_what_was_measured(precision: str, slower: float) -> None:
    product = Product(2 * 8192**3 / (0.6 * A100.peak(precision)) * slower, precision=precision)
    device = with_product(A100, product, LEARNED)
    assert seconds_of(product, precision, device) == pytest.approx(product.seconds, rel=0.02)


def test_a_slower_product_makes_every_product_of_that_format_slower_and_no_other() -> None:
    fast, slow = (with_product(A100, Product(ms * 1e-3, precision="fp32"), LEARNED) for ms in (70, 140))
    small = Product(1.0, 1024, 4096, 512)
    assert seconds_of(small, "fp32", slow) > 1.5 * seconds_of(small, "fp32", fast)
    assert seconds_of(small, "bf16", slow) == seconds_of(small, "bf16", fast)


def test_fp16_and_bf16_run_on_the_same_units() -> None:
    device = with_product(A100, Product(8e-3), LEARNED, "bf16")
    assert device.measured_fractions["fp16"] == device.measured_fractions["bf16"]
    # MI100: bf16 at half the rate of fp16
    apart = with_product(find_device("MI100"), Product(20e-3), LEARNED, "bf16")
    assert set(apart.measured_fractions) == {"bf16"}


def test_two_products_can_be_given_one_after_the_other() -> None:
    device = with_product(A100, Product(8e-3, precision="bf16"), LEARNED)
    both = with_product(device, Product(70e-3, precision="fp32"), LEARNED)
    assert set(both.measured_fractions) == {"fp16", "bf16", "fp32"}


def test_a_rate_above_the_peak_is_refused() -> None:
    with pytest.raises(BadInput, match=r"in 3 ms is 367 TFLOPS, above the peak of A100-SXM4-40GB in bf16, 312 TFLOPS"):
        with_product(A100, Product(3e-3, precision="bf16"), LEARNED)


def test_another_unit_is_noticed() -> None:
    with pytest.raises(BadInput, match="less than 1% of the peak of A100-SXM4-40GB in bf16, 312 TFLOPS: is the unit"):
        with_product(A100, Product(2.1, precision="bf16"), LEARNED)


def test_a_format_is_needed() -> None:
    with pytest.raises(BadInput, match="the format of the measured product is missing"):
        with_product(A100, Product(8e-3), LEARNED)


def test_where_the_model_does_not_go_by_it_the_product_is_refused() -> None:
    """A processor is answered by a formula."""
    host = find_device("Core i9-10940X")
    with pytest.raises(BadInput, match="cannot be had on Core i9-10940X in fp32"):
        with_product(host, Product(2 * 8192**3 / 1e12), LEARNED, "fp32")


def test_the_catalogue_is_not_changed() -> None:
    with_product(A100, Product(8e-3, precision="bf16"), LEARNED)
    assert find_device("A100") == replace(A100, measured_fractions={})
    assert np.isfinite(seconds_of(Product(1.0), "bf16", A100))
