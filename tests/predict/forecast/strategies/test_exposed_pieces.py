"""What is left of exchanges beside products, by hand; and the word that asks for it."""

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import placed
from epochcast.predict.forecast.strategies.exposed_pieces import WHOLE, exposed_seconds
from epochcast.predict.forecast.strategies.strategy_table import find_strategy


def test_one_piece_has_nothing_to_hide_behind() -> None:
    assert exposed_seconds(4e-3, product_seconds=10e-3, ranks=4) == pytest.approx(1e-3)


def test_pieces_hide_as_far_as_the_product_lasts() -> None:
    assert exposed_seconds(4e-3, product_seconds=2e-3, ranks=4) == pytest.approx(4e-3 - 0.75 * 2e-3)
    assert exposed_seconds(4e-3, product_seconds=0.0, ranks=4) == 4e-3


def test_without_overlap_everything_is_waited_for() -> None:
    assert WHOLE.gather_seconds(3, 4e-3) == WHOLE.scatter_seconds(3, 4e-3) == 4e-3


def test_overlap_shortens_the_step_of_split_norms_alone() -> None:
    device = find_device("H100-SXM5-80GB")

    def seconds(strategy: str, *, sequence_parallel: bool) -> float:
        job = Job("llama3_8b", batch=4, input_shape=(8192,), precision="bf16", sequence_parallel=sequence_parallel)
        placement = placed(device, 8, 1, find_strategy(strategy, 8))
        return forecast_job(job, placement, step_only=True).step_seconds.mid

    assert seconds("dp2,tp4,overlap", sequence_parallel=True) < seconds("dp2,tp4", sequence_parallel=True)
    assert seconds("dp2,tp4,overlap", sequence_parallel=False) == seconds("dp2,tp4", sequence_parallel=False)


def test_overlap_is_about_tensor_parallel_ranks() -> None:
    with pytest.raises(BadInput, match="there is no tp"):
        find_strategy("dp8,overlap", 8)
