import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.forecast.streams import kernel_ends

seconds = st.floats(0, 1e3)
pairs = st.lists(st.tuples(seconds, seconds), min_size=1, max_size=30)


def ends(kernels: list[float], launches: list[float]) -> list[float]:
    return [float(end) for end in kernel_ends(np.array(kernels), np.array(launches))]


# Launches end at 1, 2, 3. Long kernels wait for each other, short ones for their launch.
@pytest.mark.parametrize(
    ("kernels", "expected"),
    [([5, 5, 5], [6, 11, 16]), ([0.5, 0.5, 0.5], [1.5, 2.5, 3.5]), ([0.5, 3, 0.5], [1.5, 5, 5.5])],
    ids=["bound by kernels", "bound by launches", "first one, then the other"],
)
def test_three_kernels_by_hand(kernels: list[float], expected: list[float]) -> None:
    assert ends(kernels, [1, 1, 1]) == expected


@given(pairs)
def test_the_closed_form_is_the_recursion(work: list[tuple[float, float]]) -> None:
    """e_i = max(e_{i-1}, h_i) + k_i"""
    end, launched, expected = 0.0, 0.0, []
    for kernel, launch in work:
        launched += launch
        end = max(end, launched) + kernel
        expected.append(end)
    assert ends([k for k, _ in work], [h for _, h in work]) == pytest.approx(expected)


@given(pairs)
def test_a_step_lies_between_the_longer_stream_and_both(work: list[tuple[float, float]]) -> None:
    kernels, launches = sum(k for k, _ in work), sum(h for _, h in work)
    total = ends([k for k, _ in work], [h for _, h in work])[-1]
    slack = 1e-9 * (kernels + launches)
    assert max(kernels, launches) - slack <= total <= kernels + launches + slack


@given(pairs, st.data())
def test_more_work_never_takes_less_time(work: list[tuple[float, float]], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(work) - 1))
    kernels, launches = [k for k, _ in work], [h for _, h in work]
    before = ends(kernels, launches)[-1]
    kernels[place] += data.draw(seconds)
    launches[place] += data.draw(seconds)
    assert ends(kernels, launches)[-1] >= before * (1 - 1e-12)


def test_no_kernels_end_at_no_time() -> None:
    assert ends([], []) == []
