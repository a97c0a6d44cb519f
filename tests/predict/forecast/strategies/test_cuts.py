from hypothesis import given
from hypothesis import strategies as st

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.forecast.strategies.cuts import balanced, segments

weights = st.lists(st.floats(0.1, 10), min_size=6, max_size=20)


def test_a_decoder_is_cut_at_every_residual_sum() -> None:
    """Embedding, attention and feed-forward of twelve blocks, and what follows."""
    cut = segments(zoo_model("gpt2").trace(Recipe(2)))
    assert 2 * 12 + 1 <= cut.count <= 2 * 12 + 5
    assert set(cut.crossing_bytes) == {1024 * 768 * 4}  # one activation per sample


def test_every_parameter_is_in_one_segment() -> None:
    trace = zoo_model("resnet50").trace(Recipe(2))
    assert sum(segments(trace).parameter_bytes) == sum(p.tensor.bytes for p in trace.parameters)


def test_the_backward_pass_runs_through_the_segments_from_the_end() -> None:
    trace = zoo_model("resnet18").trace(Recipe(2))
    order = segments(trace).of_entry[trace.columns.phase == 1].tolist()
    assert order == sorted(order, reverse=True)
    assert order[-1] == 0


def test_balanced_parts_by_hand() -> None:
    assert balanced([1, 1, 1, 1, 4], 2) == (0, 0, 0, 0, 1)
    assert balanced([3, 1, 1, 1], 3) == (0, 1, 1, 2) or balanced([3, 1, 1, 1], 3) == (0, 1, 2, 2)
    assert balanced([1, 1], 2) == (0, 1)


@given(weights=weights, parts=st.integers(1, 6))
def test_every_part_has_a_segment_and_they_stay_in_order(weights: list[float], parts: int) -> None:
    found = balanced(weights, parts)
    assert list(found) == sorted(found)
    assert set(found) == set(range(parts))


@given(weights=weights, parts=st.integers(1, 6))
def test_no_part_is_heavier_than_the_mean_and_the_heaviest_segment(weights: list[float], parts: int) -> None:
    found = balanced(weights, parts)
    heaviest = max(sum(w for w, p in zip(weights, found, strict=True) if p == part) for part in range(parts))
    assert heaviest <= (sum(weights) / parts + max(weights)) * (1 + 1e-6)
