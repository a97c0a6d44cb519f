"""Each cause has a model or a rule: a job forecast with the fault, checked as if it were without, names the fault."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.check.observation import GpuReading, Observation, RunSigns
from epochcast.observe.check.speed_check import SpeedCheck, check_speed

SESSION = ec.Session()
IMAGES: dict[str, Any] = {"model": "resnet50", "batch": 64}
TEXTS: dict[str, Any] = {"model": "gpt2", "batch": 8, "precision": "amp_bf16"}


def checked(
    options: dict[str, Any],
    seconds: float,
    signs: RunSigns | None = None,
    unit: str = "step",
    scatter: float = 1.005,
    **where: Any,
) -> SpeedCheck:
    seen = Interval.around(seconds, scatter)
    observation = Observation("seen", seen, unit, "log", signs=signs or RunSigns(steps=5e3))
    place = ec.place(**{"device": "A100", **where})
    return check_speed(ec.Job(**options), place, observation, SESSION)


def forecast_seconds(options: dict[str, Any], **others: Any) -> float:
    return ec.forecast(**{"device": "A100", **options, **others}, session=SESSION).step_seconds.mid


def names(answer: SpeedCheck) -> list[str]:
    return [cause.name for cause in answer.causes]


def cause_of(answer: SpeedCheck, name: str) -> Any:
    return next(cause for cause in answer.causes if cause.name == name)


def test_the_forecast_itself_is_normal_and_needs_no_cause() -> None:
    answer = checked(IMAGES, forecast_seconds(IMAGES))
    assert (answer.verdict, answer.causes) == ("normal", ())
    assert answer.factor.mid == pytest.approx(1.0)


def test_products_in_plain_float32_are_named() -> None:
    slow = forecast_seconds(TEXTS, precision="fp32_strict")
    answer = checked(TEXTS, slow, RunSigns(steps=100, single_fraction=0.95))
    cause = answer.causes[0]
    assert (answer.verdict, cause.name, cause.is_measured) == ("slower", "precision", True)
    assert "TF32" in cause.evidence
    assert cause.explained_seconds.mid == pytest.approx(answer.missing_seconds, rel=1e-6)


def test_bf16_is_suspected_on_a_gpu_that_lacks_it() -> None:
    job = {**TEXTS, "precision": "auto"}
    slow = forecast_seconds(job, device="T4", precision="amp_bf16")
    answer = checked(job, slow, device="T4")
    assert any(cause.name == "precision" and "bf16" in cause.evidence for cause in answer.causes)


def test_eager_attention_is_named_at_long_sequences() -> None:
    job = {**TEXTS, "batch": 1, "input_shape": (8192,), "model": "decoder:layers=12,hidden=768,heads=12,vocab=1000"}
    slow = forecast_seconds(job, attention="eager")
    answer = checked(job, slow)
    assert "attention" in names(answer)
    assert cause_of(answer, "attention").step_seconds.mid == pytest.approx(slow, rel=1e-6)


def test_checkpointing_is_named_with_its_seconds() -> None:
    slow = forecast_seconds(TEXTS, checkpointing=True)
    narrow = {**TEXTS, "checkpointing": False}
    answer = checked(narrow, 1.6 * slow)
    assert cause_of(answer, "checkpointing").step_seconds.mid == pytest.approx(slow, rel=1e-6)
    faster = checked({**TEXTS, "checkpointing": True}, forecast_seconds(TEXTS) / 1.6)
    assert cause_of(faster, "checkpointing").explained_seconds.mid < 0


def test_accumulation_is_named_both_ways() -> None:
    answer = checked(TEXTS, forecast_seconds(TEXTS, accumulate=8))
    assert answer.causes[0].name == "accumulation"
    assert "8 accumulated passes" in answer.causes[0].evidence
    counted = checked({**TEXTS, "accumulate": 8}, forecast_seconds(TEXTS))
    assert counted.causes[0].name == "accumulation"
    assert "one of 8" in counted.causes[0].evidence


def test_few_loader_workers_are_named_for_images() -> None:
    answer = checked(IMAGES, forecast_seconds(IMAGES, workers=1))
    assert answer.causes[0].name == "data loading"
    assert "1 loader worker per GPU" in answer.causes[0].evidence


def test_a_measured_wait_for_data_comes_first() -> None:
    answer = checked(IMAGES, 2.5 * forecast_seconds(IMAGES), RunSigns(steps=100, data_fraction=0.6))
    assert (answer.causes[0].name, answer.causes[0].is_measured) == ("data loading", True)
    # by hand: 60 % of 2.5 steps are 1.5 steps, all that is missing
    assert answer.causes[0].explained_seconds.mid == pytest.approx(answer.missing_seconds, rel=0.01)


def test_no_wait_for_data_rules_the_loader_out() -> None:
    answer = checked(IMAGES, 2.5 * forecast_seconds(IMAGES), RunSigns(steps=100, data_fraction=0.01))
    assert "data loading" not in names(answer)


def test_a_slow_host_is_named_for_small_kernels() -> None:
    job = {"model": "resnet50", "batch": 2}
    slow = forecast_seconds(job, host_class="60us")
    answer = checked(job, slow, RunSigns(steps=100, busy_fraction=0.2, data_fraction=0.0))
    assert (answer.causes[0].name, answer.causes[0].is_measured) == ("kernel launches", True)


def test_a_busy_gpu_is_not_launch_bound() -> None:
    answer = checked(IMAGES, 2 * forecast_seconds(IMAGES), RunSigns(steps=100, busy_fraction=0.99))
    assert "kernel launches" not in names(answer)


def test_synchronising_shows_in_a_trace() -> None:
    signs = RunSigns(steps=100, sync_fraction=0.5, busy_fraction=0.5, data_fraction=0.0)
    assert cause_of(checked(IMAGES, 1.6 * forecast_seconds(IMAGES), signs), "synchronising").is_measured


def test_first_iterations_are_suspected_of_a_few_steps_only() -> None:
    slow = 10 * forecast_seconds(IMAGES)
    assert checked(IMAGES, slow, RunSigns(steps=3)).causes[0].name == "first iterations"
    assert "first iterations" not in names(checked(IMAGES, slow, RunSigns(steps=3000)))


def test_steps_that_are_steady_are_no_first_iterations() -> None:
    slow, signs = 3 * forecast_seconds(IMAGES), RunSigns(steps=8, first_factor=1.1)
    assert "first iterations" not in names(checked(IMAGES, slow, signs, scatter=1.05))
    assert "first iterations" in names(checked(IMAGES, slow, signs, scatter=1.5))


# by hand: of 100 ms nothing ran in 60, so the step is the forecast divided by 0.4
def test_time_outside_of_operators_is_data_loading() -> None:
    answer = checked(IMAGES, 2.5 * forecast_seconds(IMAGES), RunSigns(steps=100, idle_fraction=0.6))
    cause = answer.causes[0]
    assert (cause.name, cause.is_measured) == ("data loading", True)
    assert cause.step_seconds.mid == pytest.approx(2.5 * answer.forecast.step_seconds.mid)


def test_padding_to_the_longest_text_is_named() -> None:
    job = {**TEXTS, "lengths": "mean=100,max=1000,bucketed"}
    slow = forecast_seconds(TEXTS, input_shape=(1000,))
    answer = checked(job, slow)
    assert cause_of(answer, "padding").step_seconds.mid == pytest.approx(slow, rel=1e-6)


def test_a_board_with_a_longer_name_is_suspected() -> None:
    slow = forecast_seconds(IMAGES, device="RTX 4090 Laptop", host_class="workstation")
    answer = checked(IMAGES, slow, device="RTX 4090", host_class="workstation")
    assert any("RTX 4090 Laptop" in cause.evidence for cause in answer.causes)


def test_the_device_that_a_trace_names_is_compared() -> None:
    slow = forecast_seconds(IMAGES, device="T4")
    answer = checked(IMAGES, slow, RunSigns(steps=100, device="Tesla T4"))
    assert (answer.causes[0].name, answer.causes[0].is_measured) == ("another GPU", True)


def test_a_mig_slice_is_suspected_of_the_chips_that_have_them() -> None:
    slow = 6 * forecast_seconds(IMAGES)
    signs = RunSigns(steps=5e3, data_fraction=0.0)
    assert any("MIG" in cause.evidence for cause in checked(IMAGES, slow, signs).causes)
    assert not any("MIG" in cause.evidence for cause in checked(IMAGES, slow, signs, device="RTX 3090").causes)


READING = GpuReading("A100-SXM4-40GB", 40 << 30, 20 << 30, 0.99, 1.41e9, 1.41e9, 400.0, 400.0)


def with_gpu(**values: Any) -> RunSigns:
    return RunSigns(steps=5e3, data_fraction=0.0, gpu=replace(READING, **values))


def test_lowered_clocks_are_named_with_their_factor() -> None:
    answer = checked(IMAGES, 2 * forecast_seconds(IMAGES), with_gpu(clock_hertz=0.7e9, throttled_by=("heat",)))
    cause = answer.causes[0]
    assert (cause.name, cause.is_measured) == ("throttled GPU", True)
    assert "700 of 1410 MHz" in cause.evidence and "heat" in cause.evidence


def test_full_clocks_rule_throttling_out() -> None:
    assert "throttled GPU" not in names(checked(IMAGES, 2 * forecast_seconds(IMAGES), with_gpu()))


def test_other_processes_are_named_and_their_absence_rules_sharing_out() -> None:
    slow = 2 * forecast_seconds(IMAGES)
    assert cause_of(checked(IMAGES, slow, with_gpu(other_processes=2)), "shared GPU").is_measured
    assert "shared GPU" not in names(checked(IMAGES, slow, with_gpu()))


def test_a_peak_above_the_card_may_spill() -> None:
    job = {**TEXTS, "batch": 48}
    base = forecast_seconds(job, device="RTX 3090")
    signs = RunSigns(
        steps=100, gpu=replace(READING, name="RTX 3090", memory_bytes=24 << 30, memory_used_bytes=(24 << 30) - 1)
    )
    answer = checked(job, 3 * base, signs, device="RTX 3090")
    assert cause_of(answer, "spill to host memory").is_measured
    assert "spill to host memory" not in names(checked({**TEXTS, "batch": 2}, 3 * base, signs, device="RTX 3090"))


def test_memory_above_the_card_makes_a_step_hundreds_of_times_slower() -> None:
    job = {**TEXTS, "batch": 48}
    base = forecast_seconds(job, device="RTX 3090")
    answer = checked(job, 100 * base, device="RTX 3090")
    assert (answer.verdict, answer.causes[0].name) == ("slower", "spill to host memory")
    small = {**TEXTS, "batch": 2}
    assert checked(small, 100 * base, device="RTX 3090").verdict == "suspicious"


def test_pauses_are_named_beside_a_normal_pace() -> None:
    base = forecast_seconds(IMAGES)
    answer = checked(IMAGES, base, RunSigns(steps=5e3, data_fraction=0.0, pause_fraction=0.25))
    assert [cause.name for cause in answer.causes] == ["pauses"] and answer.verdict == "normal"
    assert cause_of(answer, "pauses").step_seconds.mid == pytest.approx(base / 0.75)
    assert cause_of(answer, "pauses").explained_seconds.mid == pytest.approx(base / 3)
    assert not checked(IMAGES, base, RunSigns(steps=5e3, data_fraction=0.0, pause_fraction=0.05)).causes


def test_a_slow_link_is_named_between_gpus() -> None:
    job = {**TEXTS, "model": "gpt2-medium", "batch": 1}
    slow = forecast_seconds(job, gpus=8, link="pcie3")
    answer = checked(job, slow, RunSigns(steps=100, exchange_fraction=0.8), gpus=8)
    assert (answer.causes[0].name, answer.causes[0].is_measured) == ("slow link", True)


def test_a_slow_rank_is_named_where_ranks_are_timed() -> None:
    base = forecast_seconds(IMAGES, gpus=4)
    answer = checked(IMAGES, 2 * base, RunSigns(steps=100, rank_factor=2.0, data_fraction=0.0), gpus=4)
    assert (answer.causes[0].name, answer.causes[0].is_measured) == ("slow rank", True)


def test_a_rate_may_be_that_of_one_gpu() -> None:
    seconds_per_image = forecast_seconds(IMAGES, gpus=8) / (64 * 8)
    answer = checked(IMAGES, 8 * seconds_per_image, unit="image", gpus=8)
    assert answer.causes[0].name == "rate of one GPU"


def probabilities(answers: Iterable[SpeedCheck]) -> list[float]:
    return [sum(cause.probability for cause in answer.causes) for answer in answers]


def test_probabilities_leave_room_for_what_has_no_model() -> None:
    base = forecast_seconds(IMAGES)
    assert all(0 <= total < 1 for total in probabilities(checked(IMAGES, factor * base) for factor in (0.3, 2, 9, 50)))


def test_causes_of_a_slow_step_make_it_slower() -> None:
    for cause in checked(TEXTS, 3 * forecast_seconds(TEXTS)).causes:
        assert cause.explained_seconds.low > 0
        assert cause.separate_by and cause.evidence


@pytest.mark.parametrize(("job", "unit"), [(IMAGES, "token"), (TEXTS, "image")])
def test_a_unit_of_another_kind_of_model_is_refused(job: dict[str, Any], unit: str) -> None:
    with pytest.raises(BadInput, match=f"counts {unit}s"):
        checked(job, 1.0, unit=unit)


def test_an_epoch_needs_the_size_of_the_data() -> None:
    with pytest.raises(BadInput, match="say how much data there is"):
        checked(IMAGES, 39.0, unit="epoch")
    answer = checked({**IMAGES, "samples": 6400}, 39.0, unit="epoch")
    assert answer.observed_seconds.mid == pytest.approx(0.39)
