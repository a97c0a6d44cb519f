"""Continuous batching: small stories, and what no schedule can beat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.decode.test_decode_step import cost_of

from epochcast.errors import BadInput
from epochcast.predict.decode.continuous_batching import simulate, steady_tokens_per_second

lengths_of_responses = st.lists(st.integers(1, 300), min_size=1, max_size=30)


def test_one_sequence_takes_a_step_per_token() -> None:
    run = simulate(cost_of(), 10, [100], 4, prompts_computed=0.0)
    assert run.tokens == 100
    assert list(run.request_seconds) == [run.seconds]
    assert run.seconds == pytest.approx(100 * cost_of().engine.step_seconds, rel=0.1)
    assert run.peak_tokens == 110


def test_a_freed_slot_is_taken_at_once() -> None:
    """Two slots, lengths 10, 30, 20: the third starts when the first ends, and ends with the second."""
    run = simulate(cost_of(), 1, [10, 30, 20], 2, prompts_computed=0.0)
    first, second, third = sorted(run.request_seconds)
    assert first + third - first == pytest.approx(third)
    assert second == pytest.approx(2 * first, rel=0.05)
    assert run.seconds == pytest.approx(3 * first, rel=0.05)


def test_the_longest_response_sets_the_end() -> None:
    even = simulate(cost_of(), 10, [100] * 32, 32)
    tail = simulate(cost_of(), 10, [50] * 31 + [1650], 32)
    assert even.tokens == tail.tokens
    assert tail.seconds > 10 * even.seconds


@given(lengths_of_responses, st.integers(1, 8))
def test_no_schedule_beats_the_longest_response(lengths: list[int], slots: int) -> None:
    run = simulate(cost_of(), 5, lengths, slots)
    least = cost_of().engine.step_seconds * max(lengths)
    assert run.seconds >= least
    assert max(run.request_seconds) <= run.seconds * (1 + 1e-9)
    assert run.parts.seconds == pytest.approx(run.seconds)


@given(lengths_of_responses, st.integers(1, 8))
def test_more_slots_never_take_longer_where_steps_cost_the_same(lengths: list[int], slots: int) -> None:
    few, more = (simulate(cost_of(), 5, lengths, n) for n in (slots, len(lengths) + slots))
    assert more.seconds <= few.seconds * 1.001


def test_a_stream_is_as_fast_as_a_long_queue() -> None:
    run = simulate(cost_of(), 50, [100] * 2000, 16)
    assert steady_tokens_per_second(cost_of(), 50, 100, 16) == pytest.approx(run.steady_tokens_per_second, rel=0.15)


def test_an_engine_needs_a_slot() -> None:
    with pytest.raises(BadInput, match="slot"):
        simulate(cost_of(), 5, [5], 0)
