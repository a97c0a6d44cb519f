from typing import Any

import pytest

from epochcast.errors import UnknownName
from epochcast.measure.tables.run_options import SUBMISSION, run_compiler, run_hook_seconds, run_options
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import read_runs

ROW = {"model": "resnet50", "device": "V100", "batch_per_gpu": 8, "step_seconds": 0.1}


@pytest.mark.parametrize(
    ("stated", "framework", "compiler"),
    [
        (None, "pytorch", "none"),
        (False, "pytorch", "none"),
        (float("nan"), "pytorch", "none"),
        (True, "pytorch", "inductor"),
        (True, "tensorflow", "xla"),
        ("true", "pytorch", "inductor"),
        ("reduce-overhead", "pytorch", "reduce-overhead"),
    ],
)
def test_the_column_compiled_says_whether_or_which(stated: object, framework: str, compiler: str) -> None:
    assert run_compiler({"compiled": stated}, framework) == compiler


def test_a_row_is_forecast_under_its_compiler_and_on_its_host() -> None:
    rows = [
        {**ROW, "compiled": True, "source": "kernelbench_level3", "system": "A100_modal"},
        {**ROW, "framework": "pytorch+adaptdl"},
        {**ROW, "compiled": "nvfuser"},
    ]
    (compiled, hooked), (failure,) = read_runs(rows)
    assert compiled.job.compile == "inductor"
    host = run_placement(compiled).host
    assert host is not None and host.name == "A100_modal"
    assert hooked.job.hook_seconds == run_hook_seconds({"framework": "pytorch+adaptdl"}) > 0
    assert run_placement(hooked).host is None
    assert "no compiler called 'nvfuser'" in failure.reason


def test_a_compiler_that_nobody_knows_is_a_reason() -> None:
    with pytest.raises(UnknownName):
        run_compiler({"compiled": "tvm"}, "pytorch")


def test_jax_is_compiled_by_xla_whatever_the_column_calls_it() -> None:
    assert run_compiler({"compiled": True, "framework": "jax"}, "pytorch") == "xla"


def test_algoperf_leaves_some_networks_to_eager_mode() -> None:
    row = {"compiled": True, "framework": "pytorch", "source": "algoperf"}
    assert run_compiler({**row, "model": "conformer-librispeech"}, "pytorch") == "none"
    assert run_compiler({**row, "model": "resnet50"}, "pytorch") == "inductor"
    assert run_compiler({**row, "model": "vit-s16 (algoperf)", "framework": "jax"}, "pytorch") == "xla"


def test_submissions_before_round_1_launch_their_kernels_from_python() -> None:
    row = {"precision": SUBMISSION, "framework": "PyTorch NVIDIA Release 20.06", "framework_version": "v0.7"}
    assert run_compiler(row, "pytorch") == "inductor"
    assert run_compiler({**row, "framework_version": "v1.1"}, "pytorch") == "vendor"
    assert run_compiler({**row, "framework": "MXNet"}, "pytorch") == "vendor"


@pytest.mark.parametrize(("framework", "kept"), [("torchtitan", "operators"), ("megatron-lm", "selective")])
def test_selective_recomputation_is_what_the_trainer_means_by_it(framework: str, kept: str) -> None:
    assert run_options({"recompute": "selective", "framework": framework}, "pytorch")["checkpointing"] == kept


def test_what_trainers_and_notes_say_of_recomputation_offload_and_loss() -> None:
    cells = {"model": "gpt2", "input_shape": "seq128", "method": "lora", "note": "rank 8; checkpointing on"}
    rows: list[dict[str, Any]] = [
        {**ROW, **cells},
        {**ROW, **cells, "recompute": "none"},
        {**ROW, **cells, "framework": "unsloth", "note": "rank 8"},
        {**ROW, "note": "optimizer offloaded to the host"},
    ]
    (noted, stated, unsloth, offloaded), _ = read_runs(rows)
    assert (noted.job.checkpointing, stated.job.checkpointing, unsloth.job.checkpointing) == (True, False, True)
    assert (noted.job.loss_chunks, offloaded.job.offload) == (1, "optimizer")
    assert unsloth.job.loss_chunks > 1


def test_a_source_that_empties_its_cache_does_so_though_the_row_does_not_say_it() -> None:
    source = "huggingface/peft method_comparison/MetaMathQA/results/lora.json"
    rows = [{**ROW, "source": source}, {**ROW, "note": "cache emptied every 5 steps"}, ROW]
    assert [run.job.empty_cache_steps for run in read_runs(rows)[0]] == [10, 5, None]


@pytest.mark.parametrize(("note", "chunks"), [("foak-fast-kernels", 6), ("liger", 6), ("none", 1)])
def test_fused_losses_write_no_copies_of_the_scores(note: str, chunks: int) -> None:
    (run,), _ = read_runs([{**ROW, "model": "gpt2", "input_shape": "seq128", "note": note}])
    assert run.job.loss_chunks == chunks


def test_a_plugin_without_pefts_cast_keeps_the_rest_of_a_quantised_base_in_half() -> None:
    cells = {"model": "gpt2", "input_shape": "seq128", "task": "lora_finetuning", "precision": "amp_bf16 quant=nf4"}
    (own, usual), _ = read_runs([{**ROW, **cells, "note": "accelerated-peft-bnb"}, {**ROW, **cells}])
    assert (own.job.precision, own.job.weights) == ("bf16", "bf16")
    assert (usual.job.precision, usual.job.weights) == ("amp_bf16", None)


@pytest.mark.parametrize(
    ("recompute", "expected"),
    [
        ("every 2 blocks together", {"checkpointing": "full"}),
        ("half of the blocks", {"checkpointing": "half"}),
        ("half of the blocks + offload", {"checkpointing": "half", "offload_activations": True}),
        ("activation offload", {"offload_activations": True}),
    ],
)
def test_how_diffusion_trainers_recompute(recompute: str, expected: dict[str, object]) -> None:
    options = run_options({"recompute": recompute}, "pytorch")
    assert {name: options[name] for name in ("checkpointing", "offload_activations") if name in options} == expected


def test_recomputation_is_read_from_the_column_else_from_the_note() -> None:
    cells = {**ROW, "model": "gpt2"}
    rows = [
        {**cells, "note": "Sharding Strategy=FULL_SHARD; Activation Checkpointing=True"},
        {**cells, "note": "Activation Checkpointing=False"},
        {**cells, "note": "fix_hp recompute=True", "recompute": "none"},
        {**cells, "note": "TP=2; PP=1; CP=1", "gpus": 2, "framework": "nemo"},
    ]
    noted, off, stated, split = read_runs(rows)[0]
    assert [run.job.checkpointing for run in (noted, off, stated)] == [True, False, False]
    assert split.job.sequence_parallel
