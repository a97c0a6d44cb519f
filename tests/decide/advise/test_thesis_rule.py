import pytest

from epochcast.decide.advise.thesis_rule import Coefficients, thesis_rule
from epochcast.errors import BadInput

# By hand: 100 bytes that stay, 10 a sample: 2 of input, 1 of output, so that Y is 3.5.
BY_HAND = Coefficients((10, 50), (200.0, 600.0), 2.0, 1.0)


def test_two_steps_give_x_and_y() -> None:
    assert (BY_HAND.fixed_bytes, BY_HAND.feature_bytes) == (100.0, 3.5)


def test_the_measured_steps_lie_on_the_line() -> None:
    assert [BY_HAND.bytes_at(batch) for batch in BY_HAND.batches] == [200.0, 600.0]


def test_the_largest_batch_is_what_the_equation_says() -> None:
    assert BY_HAND.largest_batch(1000.0) == 90
    assert BY_HAND.largest_batch(50.0) == 0


def test_workers_cover_the_loading_and_the_batch_fits_the_host() -> None:
    roomy = thesis_rule(BY_HAND, gpu_bytes=1000, host_bytes=float("inf"), load_over_step=2.5)
    assert (roomy.batch, roomy.workers) == (90, 3)
    tight = thesis_rule(BY_HAND, gpu_bytes=1000, host_bytes=3 * 2 * 40, load_over_step=2.5)
    assert tight.batch == 39  # W·B·I < DRAM, strictly


def test_more_gpus_need_more_workers() -> None:
    assert thesis_rule(BY_HAND, gpu_bytes=1000, host_bytes=1e9, load_over_step=2.5, gpus=4).workers == 10


def test_memory_that_does_not_grow_is_refused() -> None:
    with pytest.raises(BadInput, match="memory does not grow with the batch"):
        Coefficients((10, 50), (200.0, 200.0), 2.0, 1.0)


def test_two_batches_must_differ() -> None:
    with pytest.raises(BadInput, match="the second larger than the first, got 50 and 10"):
        Coefficients((50, 10), (1.0, 2.0), 2.0, 1.0)
