from collections.abc import Callable
from math import inf, isclose
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast import units
from epochcast.errors import BadInput
from epochcast.units import (
    parse_bytes,
    parse_dollars_per_hour,
    parse_fraction,
    parse_rate,
    parse_seconds,
    parse_shape,
    parse_uneven,
    show_bytes,
    show_count,
    show_dollars,
    show_seconds,
)

PARSERS = (parse_bytes, parse_rate, parse_seconds, parse_dollars_per_hour, parse_fraction, parse_shape, parse_uneven)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("80 GiB", 80 * 2**30),
        ("80GiB", 80 * 2**30),
        ("80 gib", 80 * 2**30),
        ("  512 MB ", 512 * 10**6),
        ("1.5e9", 1_500_000_000),
        ("1.5E9 B", 1_500_000_000),
        ("40G", 40 * 10**9),
        ("2 KiB", 2048),
        ("1 PiB", 2**50),
        ("1 EB", 10**18),
        (".5 kB", 500),
        ("0", 0),
    ],
)
def test_sizes_by_hand(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "bytes_per_second"),
    [
        ("25 GB/s", 25e9),
        ("200 Gbit/s", 25e9),
        ("200gbit/s", 25e9),
        ("1 GiB/s", 2.0**30),
        ("8 Kibit/s", 1024.0),
        ("900 gB/s", 900e9),
        ("3.35 TB/s", 3.35e12),
        ("7 B/s", 7.0),
    ],
)
def test_rates_by_hand(text: str, bytes_per_second: float) -> None:
    assert parse_rate(text) == pytest.approx(bytes_per_second)


@pytest.mark.parametrize("text", ["200 Gb/s", "200 gb/s"])
def test_a_small_b_could_be_bits_or_bytes_and_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="'25 GB/s' or '200 Gbit/s'"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6h", 21600.0),
        ("1h30m", 5400.0),
        ("1 h 30 min", 5400.0),
        ("90 min", 5400.0),
        ("2d", 172800.0),
        ("1w", 604800.0),
        ("250 ms", 0.25),
        ("5 us", 5e-6),
        ("5 µs", 5e-6),  # micro sign
        ("5 μs", 5e-6),  # Greek mu
        ("3 ns", 3e-9),
        ("1.5s", 1.5),
        ("0", 0.0),
        ("1e3 s", 1000.0),
        (".5e1s", 5.0),
    ],
)
def test_times_by_hand(text: str, seconds: float) -> None:
    assert parse_seconds(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["2.50", "$2.50", "2.50/h", "$ 2.5 / hour", "2.5$/h"])
def test_prices_by_hand(text: str) -> None:
    assert parse_dollars_per_hour(text) == 2.5


@pytest.mark.parametrize(("text", "fraction"), [("5%", 0.05), ("0.05", 0.05), ("150 %", 1.5), ("5E-2", 0.05), ("0", 0)])
def test_fractions_by_hand(text: str, fraction: float) -> None:
    assert parse_fraction(text) == pytest.approx(fraction)


@pytest.mark.parametrize("text", ["3x224x224", "3×224×224", "3,224,224", "3 X 224 x 224"])
def test_shapes_by_hand(text: str) -> None:
    assert parse_shape(text) == (3, 224, 224)


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_bytes, "80 GX", "'80 GX' is not a size in bytes; write it like '80 GiB' or '512 MB'"),
        (parse_bytes, "8 iB", "not a size"),
        (parse_bytes, "-1 GB", "not a size"),
        (parse_rate, "25 GB", "'25 GB' is not a rate; write it like '25 GB/s' or '200 Gbit/s'"),
        (parse_rate, "25 iB/s", "not a rate"),
        (parse_seconds, "6 fortnights", "'6 fortnights' is not a time; write it like '6h', '1h30m' or '250 ms'"),
        (parse_seconds, "1h 30", "not a time"),
        (parse_seconds, "6", "6: give a unit, for example 6h"),
        (parse_seconds, "1.5e3", "1.5e3: give a unit, for example 1.5e3h"),
        (parse_seconds, "0.25", "0.25: give a unit, for example 0.25s"),
        (parse_seconds, "-6h", "not a time"),
        (parse_dollars_per_hour, "cheap", "'cheap' is not a price in dollars per hour; write it like 2.50"),
        (parse_fraction, "5 percent", "'5 percent' is not a fraction; write it like 5% or 0.05"),
        (parse_shape, "3x0x224", "'3x0x224' is not a shape; write it like 3x224x224"),
        (parse_shape, "3x²", "not a shape"),
    ],
)
def test_a_refusal_says_what_would_work(parse: Callable[[str], object], text: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(text)
    assert message in str(refused.value)


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", ["", " ", "nan", "inf"])
def test_nothing_and_no_number_are_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(BadInput):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "1e999"),
        (parse_rate, "1e999 GB/s"),
        (parse_seconds, "1e999"),
        (parse_seconds, "1e999h"),
        (parse_dollars_per_hour, "1e999"),
        (parse_fraction, "1e999%"),
    ],
)
def test_a_number_beyond_all_floats_is_refused(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(BadInput, match="too large a number"):
        parse(text)


@given(text=st.text(max_size=20))
def test_a_parser_answers_or_refuses_and_never_breaks(text: str) -> None:
    for parse in PARSERS:
        try:
            parse(text)
        except BadInput as refused:
            assert text.strip() in str(refused) or repr(text) in str(refused)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (3.2e-9, "3.2 ns"),
        (5e-6, "5 µs"),
        (0.00123, "1.23 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (12.34, "12.3 s"),
        (99.94, "99.9 s"),
        (99.96, "1 min 40 s"),
        (3599.4, "59 min 59 s"),
        (3599.9, "1 h 0 min"),
        (5400, "1 h 30 min"),
        (86399, "1 d 0 h"),
        (84600, "23 h 30 min"),
        (100_000, "1 d 4 h"),
        (-5, "-5 s"),
        (-5400, "-1 h 30 min"),
        (inf, "inf"),
    ],
)
def test_times_read_as_a_person_says_them(seconds: float, text: str) -> None:
    assert show_seconds(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1000 * 2**20, "1000 MiB"),
        (2**30 - 1, "1 GiB"),
        (80 * 2**30, "80 GiB"),
        (-3 * 2**20, "-3 MiB"),
        (2**53, "8192 TiB"),
        (inf, "inf TiB"),
    ],
)
def test_sizes_read_in_binary_units(size_bytes: float, text: str) -> None:
    assert show_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("count", "unit", "text"),
    [
        (0, "", "0"),
        (7, "FLOP", "7 FLOP"),
        (1000, "", "1 k"),
        (25_557_032, "", "25.6 M"),
        (999_999, "", "1 M"),
        (8.2e9, "FLOP", "8.2 GFLOP"),
        (3.12e14, "FLOP/s", "312 TFLOP/s"),
        (-4000, "", "-4 k"),
    ],
)
def test_counts_read_with_a_prefix(count: float, unit: str, text: str) -> None:
    assert show_count(count, unit) == text


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0, "$0"), (0.0123, "$0.012"), (2.5, "$2.50"), (999.5, "$999.50"), (12_345.6, "$12,346"), (-1234, "-$1,234")],
)
def test_dollars_have_cents_where_cents_matter(dollars: float, text: str) -> None:
    assert show_dollars(dollars) == text


@given(seconds=st.floats(min_value=1e-9, max_value=1e9))
def test_a_shown_time_reads_back_to_within_its_digits(seconds: float) -> None:
    """Three digits below 100 s; above, the smaller of the two units is rounded."""
    slack = 3600 if seconds >= 86370 else 60 if seconds >= 3599.5 else 1 if seconds >= 99.95 else 0.01 * seconds
    assert abs(parse_seconds(show_seconds(seconds)) - seconds) <= slack / 2


@given(size_bytes=st.integers(min_value=0, max_value=2**60))
def test_a_shown_size_reads_back_to_three_digits(size_bytes: int) -> None:
    assert isclose(parse_bytes(show_bytes(size_bytes)), size_bytes, rel_tol=0.005, abs_tol=0.5)


@given(shape=st.lists(st.integers(1, 10**6), min_size=1, max_size=6))
def test_a_written_shape_reads_back(shape: list[int]) -> None:
    assert parse_shape("x".join(map(str, shape))) == tuple(shape)


@given(amount=st.integers(0, 10**6), prefix=st.sampled_from(["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"]))
def test_a_byte_is_eight_bits(amount: int, prefix: str) -> None:
    assert parse_rate(f"{8 * amount} {prefix}bit/s") == parse_rate(f"{amount} {prefix}B/s")


def test_sides_drawn_anew_differ_by_the_spread_of_their_areas() -> None:
    areas = np.linspace(320, 608, 100_001) ** 2
    assert parse_uneven("320..608") == pytest.approx(areas.std() / areas.mean(), rel=1e-4)
    assert parse_uneven("0.36") == parse_uneven("36%") == 0.36


@pytest.mark.parametrize("text", ["608..320", "0..320", "320..", "wide"])
def test_what_is_no_range_of_sides_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=r"like 320\.\.608|not a fraction"):
        parse_uneven(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_shape, "9" * 5000),
        (units.parse_shape, "3x" + "9" * 400),
        (units.parse_uneven, "1.." + "9" * 400),
        (units.parse_seconds_per_sample, "1s/" + "9" * 5000),
        (units.parse_seconds, "9" * 100_000 + "x"),
        (units.parse_seconds, "1h" * 50_000 + "x"),
    ],
)
def test_numbers_that_are_too_long_are_refused_at_once(parse: Callable[[str], object], text: str) -> None:
    began = process_time()
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert len(str(caught.value)) <= 1001
    assert process_time() - began < 1
