import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.forecast.streams import kernel_ends, with_waits

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


def test_a_host_that_reads_a_result_starts_nothing_ahead_by_hand() -> None:
    """Kernels of 1 s, launches of 0.1 s; the host reads the second result. Kernel 0 runs from 0.1 to 1.1. Kernel 1 is
    launched from 1.1 on and ends at 2.2, kernel 2 from then on and ends at 3.3.
    """
    kernels, launches = np.ones(3), np.full(3, 0.1)
    waiting = with_waits(kernels, launches, np.array([False, True, False]))
    assert waiting.tolist() == pytest.approx([0.1, 1.1, 1.1])
    assert kernel_ends(kernels, waiting).tolist() == pytest.approx([1.1, 2.2, 3.3])
    assert kernel_ends(kernels, launches).tolist() == pytest.approx([1.1, 2.1, 3.1])


def test_every_read_exposes_every_launch() -> None:
    kernels, launches = np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.25, 1.0])
    waiting = with_waits(kernels, launches, np.ones(3, dtype=bool))
    assert kernel_ends(kernels, waiting)[-1] == pytest.approx(kernels.sum() + launches.sum())


def test_without_reads_nothing_waits() -> None:
    launches = np.full(3, 0.1)
    assert with_waits(np.ones(3), launches, np.zeros(3, dtype=bool)) is launches


def test_a_read_makes_a_slow_host_wait_for_one_kernel_before_and_one_behind() -> None:
    """Launches of 2 s hide kernels of 1 s but for those around the read: 3, 5, 7 s without it."""
    kernels, launches = np.ones(3), np.full(3, 2.0)
    ends = kernel_ends(kernels, with_waits(kernels, launches, np.array([False, True, False])))
    assert ends.tolist() == pytest.approx([3.0, 6.0, 9.0])
