"""Post-training steps: their parts, what placement and algorithm change, memory by phase, and what is refused."""

from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import EpochcastError
from epochcast.predict.post_training.post_training import PostTraining

POLICY = "decoder:layers=4,hidden=1024,heads=8,kv_heads=2,ffn=4096,vocab=32000"
ASKED: dict[str, Any] = {
    "device": "A100-SXM4-80GB",
    "gpus": 4,
    "algorithm": "grpo",
    "prompts_per_step": 32,
    "generations": 8,
    "prompt": 128,
    "response": "lognormal:mean=300,max=1500",
}


def answer_of(model: str = POLICY, **options: Any) -> PostTraining:
    return ec.post_train(model, **{**ASKED, **options})


@pytest.fixture(scope="module")
def plain() -> PostTraining:
    return answer_of()


def names(answer: PostTraining) -> list[str]:
    return [part.name for part in answer.parts]


def test_parts_sum_to_the_step(plain: PostTraining) -> None:
    assert sum(part.seconds for part in plain.parts) == pytest.approx(plain.step_seconds.mid)
    assert sum(part.share for part in plain.parts) == pytest.approx(1)
    assert names(plain) == ["generation", "reward", "old_logprobs", "reference", "update", "weight_sync"]
    assert PostTraining.from_dict(plain.as_dict()) == plain


def test_a_forward_pass_takes_a_fraction_of_the_update(plain: PostTraining) -> None:
    """A third of forward and backward; trainers add more to the update than to a forward pass."""
    assert 0.12 < plain.part("old_logprobs") / plain.part("update") < 0.45


def test_ppo_adds_a_critic() -> None:
    answer = answer_of(algorithm="ppo", generations=1, prompts_per_step=256)
    assert {"values", "update_critic"} <= set(names(answer))
    assert answer.part("update_critic") == pytest.approx(answer.part("update"), rel=0.01)


def test_dapo_has_no_reference_and_dpo_no_generation() -> None:
    assert "reference" not in names(answer_of(algorithm="dapo"))
    dpo = answer_of(algorithm="dpo")
    assert names(dpo) == ["reference", "update"]
    assert dpo.responses_per_step == 64
    assert dpo.engine is None


def test_a_longer_tail_moves_time_to_generation(plain: PostTraining) -> None:
    """The same mean, so the same update: the longest response sets when generation ends."""
    longer = answer_of(response="lognormal:mean=300,max=3500,sigma=1.3")
    assert longer.parts[0].share > plain.parts[0].share
    assert longer.part("update") == pytest.approx(plain.part("update"), rel=0.02)


def test_more_epochs_repeat_the_update_alone(plain: PostTraining) -> None:
    twice = answer_of(epochs_per_batch=2)
    assert twice.part("update") == pytest.approx(2 * plain.part("update"))
    assert twice.part("old_logprobs") == pytest.approx(plain.part("old_logprobs"))


def test_a_reference_shared_by_lora_takes_no_memory() -> None:
    full, shared = answer_of(gpus=1), answer_of(gpus=1, lora=16)
    none = answer_of(gpus=1, reference_model="none")
    peaks = {phase.phase: phase.bytes for phase in full.memory}
    bare = {phase.phase: phase.bytes for phase in none.memory}
    assert peaks["update"] - bare["update"] == pytest.approx(2 * full.parameters)
    assert shared.peak_bytes.mid < none.peak_bytes.mid


def test_asynchronous_training_waits_for_the_slower_side_alone() -> None:
    split = answer_of(gpus=8, generation_gpus=4)
    ahead = answer_of(gpus=8, generation_gpus=4, staleness=1)
    assert ahead.step_seconds.mid < split.step_seconds.mid
    assert ahead.overlapped_seconds > 0
    rest = sum(part.seconds for part in ahead.parts if part.name != "generation")
    assert ahead.step_seconds.mid == pytest.approx(max(rest, ahead.overlapped_seconds + ahead.part("generation")))


def test_the_job_counts_prompts() -> None:
    answer = answer_of(samples=3200, epochs=2, dollars_per_gpu_hour=1.0)
    assert answer.steps == 200
    assert answer.total_seconds is not None
    assert answer.dollars is not None
    assert answer.dollars.mid == pytest.approx(200 * answer.step_seconds.mid * 4 / 3600)


def test_a_reward_model_is_a_forward_pass(plain: PostTraining) -> None:
    scored = answer_of(reward_model=POLICY, reward_seconds=0.0)
    assert scored.part("reward") == pytest.approx(plain.part("reference"), rel=0.01)


def test_a_reference_that_does_not_fit_is_named() -> None:
    answer = answer_of(device="RTX 3090", gpus=1, reference_model="llama2_13b")
    assert not answer.fits
    assert any("reference" in note for note in answer.warnings)


def test_an_assumed_micro_batch_fits() -> None:
    asked: dict[str, Any] = {"algorithm": "dpo", "gpus": 1, "reference_model": "none", "prompts_per_step": 64}
    small = answer_of(device="GTX 1050 Ti", **asked)
    assert small.micro_batch < answer_of(**asked).micro_batch
    assert small.assumed["batch"] == small.micro_batch
    assert next(phase for phase in small.memory if phase.phase == "update").fits


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "reinforce"}, "no algorithm called 'reinforce'"),
        ({"prompts_per_step": None}, "grpo needs prompts_per_step"),
        ({"response": None}, "grpo needs response"),
        ({"staleness": 1}, "give generation_gpus"),
        ({"critic": "same"}, "grpo has no critic"),
        ({"algorithm": "dpo", "generation_gpus": 1}, "dpo generates nothing"),
        ({"generation_gpus": 4}, "leaves none of 4 GPUs"),
        ({"response": "9k"}, "4,096|positions|tokens"),
        ({"device": "P100-PCIE-16GB"}, "does not run on"),
    ],
)
def test_bad_questions_are_one_line(options: dict[str, Any], words: str) -> None:
    model = "gpt2" if options.get("response") == "9k" else POLICY
    with pytest.raises(EpochcastError, match=words) as raised:
        answer_of(model, **options)
    assert "\n" not in str(raised.value)


def test_verbs_about_training_refuse_post_training() -> None:
    with pytest.raises(EpochcastError, match="algorithm grpo is answered by"):
        ec.forecast(POLICY, device="A100", batch=1, algorithm="grpo")
