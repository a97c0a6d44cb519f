import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.predict.forecast.streams import branch_bounds, kernel_ends

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


# A fork of 2 and 3 seconds between an op of 1 and one of 4.
def test_branches_lie_between_the_longest_path_and_the_sum() -> None:
    assert branch_bounds(np.array([1.0, 2, 3, 4]), [(), (0,), (0,), (1, 2)]) == (8, 10)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, ...]]]:
    kernels = draw(st.lists(seconds, min_size=1, max_size=12))
    before = [draw(st.sets(st.integers(0, place - 1))) if place else set() for place in range(len(kernels))]
    return kernels, [tuple(sorted(places)) for places in before]


@given(graphs())
def test_no_graph_is_faster_than_its_slowest_op_or_slower_than_all(
    graph: tuple[list[float], list[tuple[int, ...]]],
) -> None:
    kernels, parents = graph
    least, most = branch_bounds(np.array(kernels), parents)
    assert max(kernels) <= least <= most * (1 + 1e-12)


def test_a_chain_has_no_choice() -> None:
    least, most = branch_bounds(np.array([1.0, 2, 3]), [(), (0,), (1,)])
    assert least == most == 6


def test_nothing_takes_no_time() -> None:
    assert branch_bounds(np.zeros(0), []) == (0, 0)
