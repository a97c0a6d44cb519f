import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.forecast.strategies.messages import Message, pass_seconds, timeline
from epochcast.predict.forecast.streams import kernel_ends

ONES, NO_LAUNCHES = np.ones(4), np.zeros(4)
seconds = st.floats(0, 10)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    after = draw(st.integers(-1, 3))
    return Message(after, draw(st.integers(after + 1, 4)), draw(seconds), draw(st.integers(0, 1)))


def test_a_message_in_good_time_is_hidden() -> None:
    assert pass_seconds(ONES, NO_LAUNCHES, [Message(0, 3, 1.5)]) == 4


def test_a_kernel_waits_for_its_message() -> None:
    ends, arrived = timeline(ONES, NO_LAUNCHES, [Message(0, 2, 2.5)])
    assert ends.tolist() == [1, 2, 4.5, 5.5]
    assert arrived == 3.5


def test_messages_of_one_wire_travel_one_after_another_and_of_two_at_once() -> None:
    assert pass_seconds(ONES, NO_LAUNCHES, [Message(0, 4, 3.0), Message(1, 4, 3.0)]) == 7
    assert pass_seconds(ONES, NO_LAUNCHES, [Message(0, 4, 3.0), Message(1, 4, 3.0, wire=1)]) == 5


def test_launches_hold_kernels_up_as_without_messages() -> None:
    launches = np.array([0.0, 3.0, 0.0, 0.0])
    assert timeline(ONES, launches, [Message(0, 2, 0.5)])[0].tolist() == kernel_ends(ONES, launches).tolist()


def test_a_message_that_is_waited_for_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="must begin before it is waited for, got 2 and 2"):
        Message(2, 2, 1.0)


@given(sent=st.lists(messages(), max_size=6), more=messages())
def test_another_message_never_makes_a_pass_shorter(sent: list[Message], more: Message) -> None:
    assert pass_seconds(ONES, NO_LAUNCHES, [*sent, more]) >= pass_seconds(ONES, NO_LAUNCHES, sent) - 1e-9


@given(sent=st.lists(messages(), max_size=6))
def test_nothing_is_hidden_beyond_the_kernels_and_nothing_counts_twice(sent: list[Message]) -> None:
    found = pass_seconds(ONES, NO_LAUNCHES, sent)
    assert 4 <= found <= 4 + sum(message.seconds for message in sent) + 1e-9
