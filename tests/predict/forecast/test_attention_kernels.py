from dataclasses import replace
from typing import Any

import pytest

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.op_kinds import Attention
from epochcast.hardware.catalogue import find_device
from epochcast.predict.forecast.attention_kernels import chosen_attention
from epochcast.predict.forecast.forecaster import forecast_job
from epochcast.predict.forecast.job import Job
from epochcast.predict.forecast.placement import place
from epochcast.surfaces.render.forecast_table import _title


def job(tokens: int = 64, **options: Any) -> Job:
    return Job("gpt2", batch=4, input_shape=(tokens,), **options)


@pytest.mark.parametrize(
    ("options", "device", "kernels"),
    [
        ({"precision": "amp"}, "A100", "flash"),
        ({"precision": "amp_bf16"}, "MI300X", "flash"),
        ({"precision": "fp32"}, "A100", "memory-efficient"),
        ({"precision": "amp"}, "V100", "memory-efficient"),
        ({"precision": "amp", "framework_version": "1.13"}, "A100", "eager"),
        ({"precision": "amp", "framework_version": "2.0"}, "A100", "flash"),
        ({"precision": "amp", "framework_version": "1.13", "attention": "flash"}, "A100", "flash"),
        ({"precision": "amp", "framework": "tensorflow"}, "A100", "eager"),
        ({"precision": "amp"}, "MI100", "eager"),
        ({"precision": "fp64"}, "A100", "eager"),
        ({"precision": "amp", "attention": "eager"}, "A100", "eager"),
        ({"precision": "amp", "attention": "fused_softmax"}, "A100", "fused softmax"),
    ],
)
def test_attention_runs_as_the_framework_of_that_age_does(options: dict[str, Any], device: str, kernels: str) -> None:
    answer = forecast_job(job(**options), place(find_device(device)), step_only=True)
    assert answer.attention == kernels == answer.as_dict()["attention"]
    assert f"{kernels} attention" in _title(answer)


def test_a_network_without_attention_says_nothing_of_it() -> None:
    answer = forecast_job(Job("resnet18", batch=4), place(find_device("A100")), step_only=True)
    assert answer.attention is None
    assert "attention" not in _title(answer)


def test_a_device_matters_only_where_it_lacks_the_kernels() -> None:
    assert chosen_attention(job()) == chosen_attention(job(), find_device("P100")) == "sdpa"
    assert chosen_attention(job(), find_device("MI50")) == "eager"


def test_large_trainers_before_flash_attention_fuse_their_softmax() -> None:
    """109 layouts of Megatron-DeepSpeed on A100s were forecast with eager attention, 1.3 times too slow."""
    sizes = "decoder:layers=2,hidden=256,heads=4,vocab=1000,style=gpt"
    old, new = (Job(sizes, batch=1, input_shape=(128,), framework_version=v) for v in ("1.13", "2.1"))
    assert (chosen_attention(old), chosen_attention(new)) == ("fused_softmax", "sdpa")
    a100, kinds = place(find_device("A100")), ("flash", "fused_softmax", "eager")
    large = Job("gpt2", batch=8, input_shape=(1024,), precision="fp16")
    seconds = [forecast_job(replace(large, attention=k), a100, step_only=True).step_seconds.mid for k in kinds]
    assert sorted(seconds) == seconds


def test_eager_attention_needs_more_memory() -> None:
    where = place(find_device("A100"))
    old, new = (forecast_job(job(1024, framework_version=v, precision="amp"), where) for v in ("1.13", "2.1"))
    assert old.allocated_bytes is not None and new.allocated_bytes is not None
    assert old.allocated_bytes > new.allocated_bytes


@pytest.mark.parametrize(("attention", "kernels"), [("auto", "eager"), ("flash", "flash"), ("eager", "eager")])
def test_capped_scores_are_written_unless_flash_attention_is_asked_for(attention: str, kernels: str) -> None:
    asked = Job("gemma2_2b", batch=1, input_shape=(128,), precision="amp_bf16", attention=attention)
    answer = forecast_job(asked, place(find_device("H100")), step_only=True)
    assert answer.attention == kernels


def test_the_bias_of_t5_goes_into_fused_attention() -> None:
    """Six encoder layers, six decoder layers that attend twice; each self-attention copies its bias."""
    graph = zoo_model("t5_small", (16,)).graph(2)
    fused = [op for op in graph.ops if isinstance(op.kind, Attention)]
    assert len(fused) == 18
    assert {op.inputs[3].shape for op in fused} == {(1, 8, 16, 16)}
    answer = forecast_job(Job("t5_small", batch=2, precision="amp"), place(find_device("A100")), step_only=True)
    assert answer.attention == "memory-efficient"


@pytest.mark.parametrize(
    ("attention", "shown"),
    [
        ("flash", "flash attention, window 1,024 in 5 of 6 layers"),
        ("auto", "flash attention, window 1,024 in 5 of 6 layers"),
        ("eager", "eager attention"),
    ],
)
def test_the_header_says_which_layers_have_a_window(attention: str, shown: str) -> None:
    model = "decoder:layers=6,hidden=64,heads=4,vocab=100,window=1024,global_every=6"
    windowed = Job(model, batch=1, input_shape=(2048,), precision="amp", attention=attention)
    answer = forecast_job(windowed, place(find_device("A100")), step_only=True)
    assert shown in _title(answer)
    assert ("window" in _title(answer)) == (attention != "eager")


def test_a_window_that_is_a_mask_is_said_and_flash_attention_gains_by_it() -> None:
    """Mistral 7B v0.1 looks at 4,096 tokens."""
    masked, skipped, short = (
        forecast_job(
            Job("mistral_7b", batch=1, input_shape=(tokens,), precision="bf16", attention=attention),
            place(find_device("H100")),
        )
        for tokens, attention in ((8192, "auto"), (8192, "flash"), (4096, "auto"))
    )
    assert "memory-efficient attention, window 4,096 by a mask in 32 of 32 layers" in _title(masked)
    assert [any("as a mask" in note for note in each.warnings) for each in (masked, skipped, short)] == [
        True,
        False,
        False,
    ]
    assert short.attention_window == ""
    assert skipped.step_seconds.mid < masked.step_seconds.mid
    assert skipped.allocated_bytes is not None and masked.allocated_bytes is not None
    assert skipped.allocated_bytes < masked.allocated_bytes
