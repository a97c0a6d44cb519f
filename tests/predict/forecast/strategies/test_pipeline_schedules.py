import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.errors import BadInput
from epochcast.predict.forecast.strategies import pipeline_schedules as schedules
from epochcast.predict.forecast.strategies.pipeline_schedules import MicroBatchWork, order, stage_ends


def even(stages: int, forward: float = 1.0, backward: float = 2.0, send: float = 0.0) -> MicroBatchWork:
    return MicroBatchWork((forward,) * stages, (backward,) * stages, (send,) * stages)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 2), (4, 8), (8, 64)])
def test_even_stages_have_the_bubble_of_the_book(schedule: str, stages: int, micro_batches: int) -> None:
    """m(F + B) of work and (p-1)(F + B) of waiting: a fraction (p-1)/m."""
    assert max(stage_ends(even(stages), stages, micro_batches, schedule)) == (micro_batches + stages - 1) * 3


def test_two_chunks_halve_the_bubble() -> None:
    work = MicroBatchWork((0.5,) * 8, (1.0,) * 8, (0.0,) * 8)
    assert max(stage_ends(work, 4, 8, "1f1b")) == 8 * 3 + 3 * 3 / 2


def test_without_a_pipeline_stages_take_turns() -> None:
    assert stage_ends(even(4, send=0.5), 4, 2, "serial") == (2 * (4 * 3 + 2 * 2.0),) * 4


def test_one_f_one_b_begins_with_one_forward_pass_per_stage_behind_it() -> None:
    passes = [("F" if is_forward else "B") + str(micro) for is_forward, _, micro in order(0, 3, 1, 4, "1f1b")]
    assert passes == ["F0", "F1", "F2", "B0", "F3", "B1", "B2", "B3"]


def test_the_slowest_stage_sets_the_pace() -> None:
    work = MicroBatchWork((1.0, 3.0), (1.0, 3.0), (0.0, 0.0))
    assert max(stage_ends(work, 2, 100, "1f1b")) == pytest.approx(1 + 100 * 6 + 1)


def test_chunks_need_whole_rounds_of_micro_batches() -> None:
    with pytest.raises(BadInput, match="micro-batches in multiples of 2"):
        stage_ends(even(4), 2, 3, "1f1b")


times = st.lists(st.floats(0.1, 2), min_size=4, max_size=4).map(tuple)


@settings(max_examples=30)
@given(forward=times, backward=times, send=times, schedule=st.sampled_from(["gpipe", "1f1b"]))
def test_many_micro_batches_end_where_the_whole_simulation_ends(
    forward: tuple[float, ...], backward: tuple[float, ...], send: tuple[float, ...], schedule: str
) -> None:
    work = MicroBatchWork(forward, backward, send)
    whole = schedules._simulated(work, 4, 40, schedule)
    assert max(stage_ends(work, 4, 40, schedule)) == pytest.approx(max(whole), rel=0.05)


@settings(max_examples=30)
@given(forward=times, backward=times, send=times, micro=st.integers(1, 9))
def test_no_schedule_beats_its_busiest_stage(
    forward: tuple[float, ...], backward: tuple[float, ...], send: tuple[float, ...], micro: int
) -> None:
    busiest = max(micro * (f + b) for f, b in zip(forward, backward, strict=True))
    for schedule in ("gpipe", "1f1b"):
        assert max(stage_ends(MicroBatchWork(forward, backward, send), 4, micro, schedule)) >= busiest - 1e-9
