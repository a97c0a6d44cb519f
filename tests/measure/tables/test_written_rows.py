from typing import Any

import pytest

from epochcast.measure.tables.run_lengths import says_lengths
from epochcast.measure.tables.run_table import read_runs
from epochcast.measure.tables.written_rows import completed, named_texts, trainer_default

ROW: dict[str, Any] = {"model": "gpt2", "device": "A100", "batch_per_gpu": 4, "step_seconds": 0.5}


def filled(**cells: Any) -> dict[str, Any]:
    row, _ = completed({**ROW, **cells})
    return dict(row)


def test_brackets_behind_a_name_are_dropped_where_only_the_name_is_known() -> None:
    row, notes = completed({**ROW, "model": "gpt2 (124M, rotary, rmsnorm)"})
    assert row["model"] == "gpt2"
    assert notes == ("gpt2 (124M, rotary, rmsnorm) is answered as gpt2",)
    assert filled(model="SD3 (sd3)")["model"] == "SD3 (sd3)"  # listed as it is
    assert filled(model="nobody's (5B)")["model"] == "nobody's (5B)"


def test_sizes_in_a_name_are_columns() -> None:
    row, notes = completed({**ROW, "model": "nanochat d24 (24 layers, hidden 1536, 12 heads)"})
    assert [row[name] for name in ("layers", "hidden", "heads", "vocab")] == [24, 1536, 12, 50_304]
    assert notes == ("the vocabulary is not given: 50,304 tokens are assumed",)
    full = filled(model="decoder 52 layers, hidden 1536, 12 heads, vocab 50257 (1.5B)")
    assert [full[name] for name in ("layers", "hidden", "heads", "vocab")] == [52, 1536, 12, 50_257]


def test_a_batch_is_that_of_the_note_or_of_the_trainer() -> None:
    assert filled(batch_per_gpu=None, note="8x8 cards; global batch 256")["global_batch"] == 256
    row, notes = completed({**ROW, "batch_per_gpu": None, "framework": "sd-scripts"})
    assert row["batch_per_gpu"] == 1
    assert notes == (
        "the batch is not given: 1, the default of sd-scripts, is assumed",
        "checkpointing is not given: full, as sd-scripts's documentation sets it, is assumed",
    )
    assert filled(batch_per_gpu=None, framework="my own loop")["batch_per_gpu"] is None


# 558,000 samples in batches of 32 on 8 GPUs are 2,180 updates; 3.5 hours are 12,600 s
def test_a_step_is_the_whole_run_over_its_updates() -> None:
    row = filled(
        step_seconds=None, total_hours=3.5, batch_per_gpu=32, gpus=8, note="558k samples, 1 epoch, CLIP frozen"
    )
    assert row["step_seconds"] == pytest.approx(12_600 / 2_180)
    row = filled(step_seconds=None, total_hours=1.0, batch_per_gpu=32, note="100 epochs of 3,018 images (70 % of all)")
    assert row["step_seconds"] == pytest.approx(3_600 / (95 * 100))
    assert filled(step_seconds=None, total_hours=3.5, note="a weekend")["step_seconds"] is None


def test_tokens_per_second_are_a_throughput_where_there_is_no_other() -> None:
    row = filled(step_seconds=None, tokens_per_second=8192.0)
    assert (row["samples_per_second"], row["unit"]) == (8192.0, "tokens")
    assert "samples_per_second" not in filled(tokens_per_second=8192.0)


def test_texts_of_a_known_data_set_have_its_lengths() -> None:
    texts = named_texts("one epoch of Alpaca 52k")
    assert texts is not None and texts.mean_tokens is not None
    mean = round(texts.mean_tokens)
    assert says_lengths({**ROW, "input_shape": "max 2048 (alpaca, padded to longest)"})  # read as a distribution
    assert filled(input_shape="alpaca")["input_shape"].startswith(f"mean {mean}, max ")
    assert filled(input_shape="mean 210, max 768 (alpaca)")["input_shape"] == "mean 210, max 768 (alpaca)"
    assert named_texts("alpacas of my own") is None


def test_tokens_of_such_texts_are_counted_as_samples() -> None:
    texts = named_texts("alpaca")
    assert texts is not None and texts.mean_tokens is not None
    row = filled(step_seconds=None, tokens_per_second=3200.0, input_shape="alpaca")
    assert row["samples_per_second"] == pytest.approx(3200.0 / texts.mean_tokens)


def test_an_unread_precision_and_optimizer_are_the_trainers() -> None:
    assert trainer_default({"framework": "OneTrainer"}, "precision") == "half"
    assert trainer_default({"framework": "ultralytics 8.3.40"}, "optimizer") == "nesterov"
    assert trainer_default({"framework": "torch"}, "batch") is None
    row = {**ROW, "model": "sdxl_unet", "framework": "sd-scripts", "method": "lora", "batch_per_gpu": None}
    ((ampere, volta), _) = read_runs([row, {**row, "device": "V100"}])
    assert (ampere.job.precision, volta.job.precision) == ("bf16", "fp16")
    assert ampere.job.batch == 1


def test_an_optimizer_on_the_host_is_read_from_the_trainer_or_the_optimizer() -> None:
    rows = [{**ROW, "framework": "deepspeed ZeRO-2 (CPU offload)"}, {**ROW, "optimizer": "adamw (DeepSpeed CPU Adam)"}]
    runs, _ = read_runs([*rows, ROW])
    assert [run.job.offload for run in runs] == ["optimizer", "optimizer", "none"]


def test_frozen_parts_of_a_vision_language_model_are_read_from_the_method() -> None:
    row = {**ROW, "model": "llava-hf/llava-1.5-7b-hf", "method": "full (vision tower frozen)"}
    ((run,), _) = read_runs([row])
    assert run.job.freeze == ("*vision_tower*",)
