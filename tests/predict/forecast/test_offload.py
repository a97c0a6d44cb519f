"""Training whose optimizer, or parameters too, lie in the host's memory."""

import pytest

from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.forecast import Forecast
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.offload import copy_seconds
from epochcast.predict.forecast.placement import place
from epochcast.predict.forecast.session import Session

GPT2 = 124_439_808


def asked(model: CostModel, offload: str, gpus: int = 1, strategy: str | None = None, **options: object) -> Forecast:
    job = Job("gpt2", batch=1, offload=offload, **{"optimizer": "adamw", "weights": "bf16+master", **options})  # type: ignore[arg-type]
    return forecast_job(job, place("A100", gpus=gpus, strategy=strategy), Session(model))


def test_the_host_needs_sixteen_bytes_a_parameter_and_the_parameters(per_kernel: CostModel) -> None:
    """A float32 master, two moments and a float32 gradient (Ren et al. 2021); two more for the parameters."""
    assert asked(per_kernel, "none").host_bytes == 0
    assert asked(per_kernel, "optimizer").host_bytes == 16 * GPT2
    assert asked(per_kernel, "parameters").host_bytes == 18 * GPT2
    assert asked(per_kernel, "optimizer", 8, "zero2").host_bytes == 16 * GPT2
    amp = asked(per_kernel, "optimizer", precision="amp_bf16", weights="fp32")
    assert amp.host_bytes == 16 * GPT2  # two moments, a gradient and a copy of the parameter


def test_the_update_is_the_host_s_and_copies_take_time(per_kernel: CostModel) -> None:
    """Ten billion parameters in 2.57 s: a billion in about a quarter of a second."""
    plain, moved = asked(per_kernel, "none"), asked(per_kernel, "optimizer")
    assert plain.step_parts is not None and moved.step_parts is not None
    assert moved.step_parts.update == pytest.approx(0.257 * GPT2 / 1e9, rel=0.01)
    assert moved.step_parts.exposed_comm >= copy_seconds(2 * GPT2, find_device("A100"))
    assert moved.step_seconds.mid == pytest.approx(moved.step_parts.total_seconds)
    assert moved.step_seconds.low <= moved.step_seconds.mid <= moved.step_seconds.high
    assert moved.step_seconds.high / moved.step_seconds.low > plain.step_seconds.high / plain.step_seconds.low


def test_the_ranks_of_a_node_share_its_processors(per_kernel: CostModel) -> None:
    one, eight = asked(per_kernel, "optimizer"), asked(per_kernel, "optimizer", 8, "zero3")
    assert one.step_parts is not None and eight.step_parts is not None
    assert eight.step_parts.update == pytest.approx(one.step_parts.update)


def test_gpu_memory_moves_to_the_host(per_kernel: CostModel) -> None:
    plain, state, all_of_it = (asked(per_kernel, what) for what in ("none", "optimizer", "parameters"))
    assert plain.peak_bytes is not None and state.peak_bytes is not None and all_of_it.peak_bytes is not None
    assert plain.peak_bytes.mid - state.peak_bytes.mid > 8 * GPT2
    assert all_of_it.peak_bytes.mid < state.peak_bytes.mid
    assert any("of host memory" in warning for warning in state.warnings)


@pytest.mark.parametrize(
    ("offload", "strategy", "optimizer", "message"),
    [
        ("optimizer", "ddp", "adamw", "needs zero1, zero2, zero3 or fsdp"),
        ("parameters", "zero2", "adamw", "needs zero3 or fsdp"),
        ("optimizer", "zero2", "adamw8bit", "adamw8bit runs on the GPU alone"),
    ],
)
def test_what_cannot_be_offloaded_is_refused(
    per_kernel: CostModel, offload: str, strategy: str, optimizer: str, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        asked(per_kernel, offload, 8, strategy, optimizer=optimizer)


def test_state_is_paged_only_where_there_is_no_room(per_kernel: CostModel) -> None:
    def paged(model: str, optimizer: str) -> Forecast:
        job = Job(model, batch=1, precision="bf16", optimizer=optimizer)
        return forecast_job(job, place("A100"), Session(per_kernel))

    small = paged("gpt2", "paged_adamw")
    assert small.host_bytes == 0 and small.fits
    large, resident = paged("llama2_7b", "paged_adamw"), paged("llama2_7b", "adamw")
    assert large.fits and not resident.fits
    assert large.host_bytes == pytest.approx(4 * 6.738e9, rel=0.001)
    assert large.step_parts is not None and large.step_parts.exposed_comm > 0.5
