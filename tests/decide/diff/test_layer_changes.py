import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcast.decide.diff.layer_changes import ADDED, CHANGED, REMOVED, RENAMED, SAME, layer_changes, matched

from .conftest import side

BASE = {"0": (1.0, "conv"), "1": (0.5, "relu"), "2": (0.25, "linear")}


def statuses(base: dict[str, tuple[float, str]], head: dict[str, tuple[float, str]]) -> dict[str, str]:
    return {change.name: change.status for change in layer_changes(side(base), side(head))}


def test_an_inserted_layer_is_the_only_one_that_changes_though_all_behind_it_are_renamed() -> None:
    head = {"0": (1.0, "conv"), "1": (0.3, "norm"), "2": (0.5, "relu"), "3": (0.25, "linear")}
    (only,) = layer_changes(side(BASE), side(head))
    assert (only.name, only.status) == ("1", ADDED)
    assert only.share == pytest.approx(1.0)


def test_a_wider_layer_is_changed_and_a_lost_one_removed() -> None:
    assert statuses(BASE, {"0": (2.0, "wide"), "2": (0.25, "linear")}) == {"0": CHANGED, "1": REMOVED}


def test_more_blocks_of_one_kind_are_the_last_ones() -> None:
    base = {f"block.{place}": (1.0, "block") for place in range(2)}
    head = {f"block.{place}": (1.0, "block") for place in range(4)}
    assert statuses(base, head) == {"block.2": ADDED, "block.3": ADDED}


def test_waiting_for_the_host_has_its_own_row() -> None:
    (only,) = layer_changes(side(BASE, host=0.1), side(BASE, host=0.4))
    assert only.name == "(waiting for the host)"
    assert only.seconds_change == pytest.approx(0.3)


def test_the_same_step_has_no_rows() -> None:
    assert layer_changes(side(BASE), side(BASE)) == ()


seconds = st.floats(0.01, 10)
networks = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(seconds, st.sampled_from(["x", "y", "z"])), min_size=1
)


@given(base=networks, head=networks, hosts=st.tuples(seconds, seconds))
def test_the_rows_sum_to_the_change_of_the_step(
    base: dict[str, tuple[float, str]], head: dict[str, tuple[float, str]], hosts: tuple[float, float]
) -> None:
    before, after = side(base, host=hosts[0]), side(head, host=hosts[1])
    total = after.forecast.step_seconds.mid - before.forecast.step_seconds.mid
    changes = layer_changes(before, after)
    assert sum(change.seconds_change for change in changes) == pytest.approx(total, abs=1e-4)
    assert all(change.status in (SAME, RENAMED, CHANGED, ADDED, REMOVED, "overall") for change in changes)


@given(base=networks, head=networks)
def test_every_layer_is_matched_at_most_once(
    base: dict[str, tuple[float, str]], head: dict[str, tuple[float, str]]
) -> None:
    pairs = matched(side(base).layers, side(head).layers)
    assert sorted(one.name for one, _ in pairs if one) == sorted(base)
    assert sorted(one.name for _, one in pairs if one) == sorted(head)
