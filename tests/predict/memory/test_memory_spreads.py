import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.memory.memory_kinds import ALLOCATED, MEMORY_KINDS, ON_DEVICE, RESERVED
from epochcast.predict.memory.memory_spreads import (
    ALONE,
    GROUPS,
    PARTS,
    SPLIT,
    MemorySpread,
    MemorySpreads,
    StepKind,
    part_shares,
    shipped_spreads,
)

BREAKDOWN = {"parameters": 40, "gradients": 40, "activations": 10, "fragmentation": 7, "context": 10}
NORMAL = ((0.05, -1.645), (0.5, 0.0), (0.95, 1.645))


def spreads(**variances: float) -> MemorySpreads:
    named = {part: variances.get(part, 0.0) for part in PARTS}
    return MemorySpreads(named | {"setup, one GPU": variances.get("setup", 1e-6)}, dict.fromkeys(GROUPS, NORMAL))


# 10 of 90 bytes are activations, 10 of 100 with the context are context.
def test_shares_by_hand() -> None:
    kind = StepKind()
    assert part_shares(kind, BREAKDOWN, ALLOCATED) == {
        "activations, zoo": pytest.approx(1 / 9),
        "setup, one GPU": 1.0,
    }
    assert part_shares(kind, BREAKDOWN, RESERVED)["fragmentation"] == pytest.approx(1 / 9)
    assert part_shares(kind, BREAKDOWN, ON_DEVICE)["context"] == pytest.approx(0.1)


def test_parameters_gradients_and_state_on_one_gpu_add_no_doubt() -> None:
    """A context of 10 % that is 30 % unsure makes the whole 3 % unsure, whatever else there is."""
    spread = spreads(context=0.3**2).of(StepKind(), BREAKDOWN)
    assert spread.deviations[ON_DEVICE] == pytest.approx(0.03, rel=1e-2)
    assert spread.deviations[ALLOCATED] == pytest.approx(1e-3)


def test_several_gpus_are_unsure_of_what_they_share() -> None:
    alone, several = (part_shares(StepKind(sharing=sharing), BREAKDOWN, ALLOCATED) for sharing in (ALONE, SPLIT))
    assert "sharding" not in alone
    assert several["sharding"] == pytest.approx(80 / 90)


def test_the_interval_is_between_the_quantiles() -> None:
    spread = MemorySpread({ON_DEVICE: 0.1}, NORMAL, {}, StepKind())
    interval = spread.interval(100.0)
    assert (interval.low, interval.mid, interval.high) == pytest.approx((84.83, 100.0, 117.88), abs=0.01)
    assert [spread.probability(end / 100) for end in (interval.low, 100.0, interval.high)] == pytest.approx(
        [0.05, 0.5, 0.95], abs=1e-3
    )


def test_nothing_is_below_what_is_certain() -> None:
    spread = MemorySpread({ON_DEVICE: 0.1}, NORMAL, {}, StepKind(), certain_bytes=95)
    assert spread.interval(100.0).low == 95
    assert spread.interval(90.0).low == 90


def test_no_number_is_lower_than_what_is_allocated() -> None:
    """Reserved bytes that are thrice as unsure as 90 allocated bytes, whose low end is 90·e^(-0.1·1.645) = 76.3."""
    spread = MemorySpread({RESERVED: 0.3, ALLOCATED: 0.1}, NORMAL, {}, StepKind())
    assert spread.interval(100.0, RESERVED).low == pytest.approx(61.0, abs=0.1)
    assert spread.interval(100.0, RESERVED, allocated_bytes=90.0).low == pytest.approx(76.3, abs=0.1)


@given(st.floats(0.002, 0.998), st.sampled_from(GROUPS), st.sampled_from(MEMORY_KINDS))
def test_factor_and_probability_are_inverse(share: float, group: str, number: str) -> None:
    shipped = shipped_spreads()
    spread = MemorySpread(dict.fromkeys(MEMORY_KINDS, 0.07), shipped.quantiles[group], {}, StepKind())
    assert spread.probability(spread.factor(share, number), number) == pytest.approx(share, abs=1e-6)


def test_shipped_parts_and_groups_are_complete() -> None:
    shipped = shipped_spreads()
    assert set(shipped.variances) == set(PARTS)
    assert set(shipped.quantiles) == set(GROUPS)
    for rows in shipped.quantiles.values():
        assert list(rows) == sorted(rows)
        assert rows[0][1] < 0 < rows[-1][1]
