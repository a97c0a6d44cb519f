"""The answer of `--mode generate`: laws, what fits, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import EpochcastError
from epochcast.predict.post_training.context_lengths import LongerThanContext, context_tokens
from epochcast.predict.post_training.generation import Generation
from epochcast.predict.post_training.generation_request import EngineNotSupported

ASKED = {"device": "H100-SXM5-80GB", "prompt": 512, "response": "lognormal:mean=900,max=7000"}


def answer_of(model: str = "llama3_8b", **options: Any) -> Generation:
    return ec.generate(model, **{**ASKED, **options})


def test_the_answer_reads_back() -> None:
    answer = answer_of(concurrency=64, requests=200)
    assert Generation.from_dict(answer.as_dict()) == answer
    assert sum(answer.step_parts.values()) == pytest.approx(1)
    assert answer.tokens_per_second.low < answer.tokens_per_second.mid < answer.tokens_per_second.high


def test_more_in_flight_give_more_throughput_and_slower_requests() -> None:
    few, many = answer_of(concurrency=8), answer_of(concurrency=128)
    assert many.tokens_per_second.mid > few.tokens_per_second.mid
    assert many.request_seconds.mid > few.request_seconds.mid
    assert many.peak_bytes.mid > few.peak_bytes.mid


def test_an_8b_model_at_batch_one_is_bound_by_its_weights() -> None:
    """16 GB over 3.35 TB/s are 4.8 ms; vLLM reaches 0.5 to 0.9 of that."""
    answer = answer_of(concurrency=1, response="256")
    floor = 2 * 8.03e9 / 3.352e12
    assert floor / 0.95 < answer.token_seconds.mid < floor / 0.5


def test_layers_are_shared_by_as_few_gpus_as_hold_the_model() -> None:
    assert answer_of(gpus=8).tensor_parallel == 1
    large = answer_of("llama3_70b", gpus=8)
    assert large.tensor_parallel == 4
    assert large.engines == 2
    assert large.fits


def test_a_model_that_does_not_fit_says_so() -> None:
    answer = answer_of("llama3_70b")
    assert not answer.fits
    assert "no room" in answer.warnings[0]


def test_fp8_weights_take_half() -> None:
    plain, small = answer_of(), answer_of(engine_weights="fp8")
    assert small.peak_breakdown["weights"] < 0.6 * plain.peak_breakdown["weights"]
    assert small.tokens_per_second.mid > plain.tokens_per_second.mid


def test_sequences_that_the_cache_cannot_hold_wait() -> None:
    answer = answer_of(concurrency=4000, prompt=4096, response="4096")
    assert answer.concurrency < 4000
    assert any("wait" in note for note in answer.warnings)


def test_dollars_follow_tokens() -> None:
    answer = answer_of(dollars_per_gpu_hour=3.6)
    assert answer.dollars_per_million_tokens is not None
    assert answer.dollars_per_million_tokens.mid == pytest.approx(1000 / answer.tokens_per_second.mid)


def test_a_device_without_measured_kernels_is_named() -> None:
    assert any("A6000" in note for note in answer_of(device="RTX A6000").warnings)


def test_a_generation_longer_than_the_context_is_one_line() -> None:
    with pytest.raises(LongerThanContext, match=r"max=7680 in --response"):
        answer_of(response="9k")
    with pytest.raises(EpochcastError, match=r"positions|at most"):
        answer_of("gpt2", prompt=1000, response="100")


def test_contexts_are_found_by_the_longest_name() -> None:
    assert context_tokens("Qwen/Qwen2.5-0.5B") == 32768
    assert context_tokens("Qwen/Qwen2.5-72B") == 131072
    assert context_tokens("decoder:layers=2") is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "P100-PCIE-16GB"}, "vLLM does not run on P100"),
        ({"device": "MI300X", "engine": "tensorrt-llm"}, "TensorRT-LLM does not run on MI300X"),
        ({"engine": "triton"}, "no engine called 'triton'"),
        ({"engine_tp": 3, "gpus": 8}, "cannot be cut into engines of 3"),
        ({"engine_weights": "int3"}, "no format of an engine's weights"),
    ],
)
def test_bad_questions_are_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(EpochcastError, match=words) as raised:
        answer_of(**options)
    assert "\n" not in str(raised.value)


def test_an_engine_says_where_it_runs() -> None:
    with pytest.raises(EngineNotSupported) as raised:
        answer_of(device="V100-SXM2-16GB", engine="sglang")
    assert raised.value.engine == "SGLang"


@pytest.mark.parametrize("verb", [ec.forecast, ec.advise])
def test_verbs_about_training_refuse_generation(verb: Callable[..., object]) -> None:
    with pytest.raises(EpochcastError, match="mode generate is answered by"):
        verb("llama3_8b", device="H100", batch=1, mode="generate")
