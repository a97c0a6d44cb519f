import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.plan.billing import CLOUDS, UNITS, Billing, Extras, billing_of
from epochcast.errors import BadInput, UnknownName


@pytest.mark.parametrize(
    ("unit", "seconds", "billed"),
    [("second", 90.5, 90.5), ("minute", 90.5, 120), ("minute", 60, 60), ("hour", 90.5, 3600), ("hour", 3601, 7200)],
)
def test_time_is_billed_in_whole_units(unit: str, seconds: float, billed: float) -> None:
    assert billing_of("anyone", unit).billed_seconds(seconds) == billed


def test_a_cloud_bills_as_it_says() -> None:
    assert billing_of("aws").billed_seconds(10) == 60  # its least
    assert billing_of("aws").billed_seconds(100.25) == 100.25
    assert billing_of("lambda") == UNITS["second"]
    assert billing_of("aws", "hour").billed_seconds(10) == 3600


# by hand: two hours at 3 dollars, 500 GB at 8 cents a month for two of 730.5 hours, 10 GB out at 9 cents
def test_a_bill_by_hand() -> None:
    extras = Extras(None, 0.0, 500e9, 0.08, 10e9, 0.09)
    assert extras.dollars(7200, 3.0, "lambda") == pytest.approx(6 + 500 * 0.08 * 2 / 730.5 + 0.9)


@given(unit=st.sampled_from([*UNITS.values(), *CLOUDS.values()]), seconds=st.floats(1e-6, 1e7), more=st.floats(0, 1e6))
def test_longer_is_never_cheaper_and_nobody_pays_less_than_he_used(unit: Billing, seconds: float, more: float) -> None:
    assert seconds * (1 - 1e-9) <= unit.billed_seconds(seconds) <= unit.billed_seconds(seconds + more)


def test_storage_and_traffic_need_a_price() -> None:
    with pytest.raises(BadInput, match="storage costs what its seller asks: give its price"):
        Extras(storage_bytes=1e9)
    with pytest.raises(BadInput, match="egress costs"):
        Extras(egress_bytes=1e9)
    with pytest.raises(BadInput, match="boot_seconds must be at least 0"):
        Extras(boot_seconds=-1)
    with pytest.raises(UnknownName, match="no billing unit called 'day'"):
        Extras(billing="day")
