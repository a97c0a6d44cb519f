"""The line above every answer, and the one that says what was assumed."""

from dataclasses import replace

from epochcast.interval import Interval
from epochcast.predict.forecast.forecast import Forecast
from epochcast.surfaces.render.answer_header import assumed_line, header, place

TUNED = Forecast(
    "llama3_8b",
    "A100-SXM4-40GB",
    Interval.exact(1.0),
    precision="amp_bf16",
    weights="fp32",
    optimizer="adamw",
    attention="flash",
    sequence_length=512,
    checkpointing="full",
    lora=16,
    lora_targets=("q_proj", "v_proj"),
    four_bit=True,
    quantize="nf4",
    dataset="alpaca",
    assumed={"precision": "amp_bf16", "optimizer": "adamw", "input_shape": [512]},
)


def test_a_header_has_everything_that_changes_the_number() -> None:
    assert header([place(TUNED)], TUNED) == (
        "llama3_8b on A100-SXM4-40GB · 512 tokens · amp_bf16 · weights fp32 · adamw · checkpointing · "
        "LoRA rank 16 on q_proj, v_proj, 4-bit base (NF4), embeddings, norms and head fp32 · flash attention"
    )
    images = Forecast("resnet50", "V100", Interval.exact(1.0), channels_last=True)
    assert header([place(images)], images) == "resnet50 on V100 · fp32 · sgd · channels last"


def test_what_differs_between_forecasts_is_written_once_each() -> None:
    older = replace(TUNED, device="V100", precision="amp_fp16", attention="memory-efficient")
    assert header(["plan"], TUNED, older).startswith("plan · 512 tokens · amp_bf16 or amp_fp16 · weights fp32 · adamw")


def test_what_was_assumed_is_one_line() -> None:
    assert assumed_line(TUNED) == "assumed: bf16 mixed precision, adamw, 512 tokens (alpaca)"
    assert assumed_line(replace(TUNED, dataset=None)).endswith("512 tokens (model default)")
    assert assumed_line(replace(TUNED, assumed={})) == ""
    packed = replace(TUNED, packing=True, assumed={"lengths": "mean=120,max=512,packed"})
    assert assumed_line(packed) == "assumed: packed: 120 tokens a text on average (alpaca)"
    assert "· 512 tokens, packed ·" in header([place(packed)], packed)
    padded = replace(TUNED, assumed={"lengths": "mean=120,max=512,padded"})
    assert assumed_line(padded) == "assumed: padded: 120 tokens a text on average, at most 512 (alpaca)"
    older = replace(TUNED, assumed={"precision": "amp_fp16"})
    assert assumed_line(replace(TUNED, assumed={"precision": "amp_bf16"}), older) == (
        "assumed: bf16 mixed precision or fp16 mixed precision"
    )
