from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochcast.measure.tables.run_table import family_of, read_runs

ROW = {"model": "resnet50", "device": "V100", "batch_per_gpu": 32, "step_seconds": 0.1}


def reason(**cells: Any) -> str:
    runs, failures = read_runs([{**ROW, **cells}])
    assert runs == []
    return failures[0].reason


def run(**cells: Any) -> Any:
    runs, failures = read_runs([{**ROW, **cells}])
    assert failures == []
    return runs[0]


def test_four_columns_are_a_question() -> None:
    asked = run()
    assert (asked.reference, asked.device.name, asked.recipe.batch, asked.job.precision) == (
        "resnet50",
        "V100-SXM2-16GB",
        32,
        "fp32",
    )


def test_a_rate_becomes_a_step_of_the_global_batch() -> None:
    assert run(step_seconds=None, samples_per_second=640, gpus=4).step_seconds == pytest.approx(128 / 640)


def test_step_seconds_count_before_a_rate() -> None:
    assert run(samples_per_second=1).step_seconds == 0.1


@pytest.mark.parametrize("framework", ["Caffe (native)", "fbfft   (Torch)", "Nervana-neon-fp32", "CuDNN[R2] *"])
def test_libraries_with_kernels_of_their_own_are_refused(framework: str) -> None:
    assert reason(framework=framework) == f"resnet50: {framework} has kernels of its own, which are not forecast here"


def test_a_step_that_waits_for_a_loader_is_refused_where_its_speed_is_not_said() -> None:
    assert reason(source="algoperf", model="unet-fastmri").startswith("unet-fastmri: the loader decides")
    assert run(model="unet-fastmri").reference == "unet_fastmri"


@pytest.mark.parametrize(
    ("model", "reference", "shape"),
    [
        ("efficientnet", "torchvision:efficientnet_v2_s", (3, 300, 300)),
        ("faster_rcnn", "fasterrcnn_resnet50_fpn", (3, 800, 1200)),
    ],
)
def test_flagperfs_names_are_those_of_its_scripts(model: str, reference: str, shape: tuple[int, ...]) -> None:
    asked = run(source="flagperf", model=model)
    assert (asked.reference, asked.input_shape) == (reference, shape)


def test_caffe_is_refused_where_it_runs_without_cudnn() -> None:
    assert "kernels of its own" in reason(framework="Caffe", source="soumith")
    assert run(framework="Caffe").job.framework == "pytorch"


def test_a_rate_of_tokens_counts_the_tokens_of_a_sample() -> None:
    """GNMT: 26 tokens on each side of a sentence."""
    asked = run(
        source="nvidia_dle",
        model="gnmt_v2",
        step_seconds=None,
        samples_per_second=66560,
        unit="tokens",
        global_batch=128,
    )
    assert asked.step_seconds == pytest.approx(128 * 52 / 66560)
    assert asked.input_shape == (26,)


def test_a_batch_of_tokens_becomes_sentences() -> None:
    cells = {"source": "nvidia_dle", "model": "transformer_big_wmt", "batch_per_gpu": 5120, "global_batch": 5120}
    asked = run(**cells, step_seconds=None, samples_per_second=51200, unit="tokens")
    assert (asked.recipe.batch, asked.step_seconds) == (160, pytest.approx(0.1))


def test_fine_tuning_rows_without_a_length_are_question_answering() -> None:
    names = {"source": "nvidia_dle", "model": "bert-large-uncased"}
    assert run(**names).reference == "bert_large_squad"
    assert run(**names, input_shape="seq128").reference == "bert_large_masked"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"step_seconds": None}, "neither step_seconds nor samples_per_second"),
        ({"step_seconds": -1.0}, "step_seconds must be above 0, got -1"),
        ({"batch_per_gpu": None}, "no batch_per_gpu"),
        ({"batch_per_gpu": 0.25}, "less than one sample per GPU: batch_per_gpu is 0.25"),
        ({"device": "abacus"}, "no device called 'abacus'; nothing near"),
        ({"source": "litgpt"}, "resnet50: the row does not say how many tokens a sample has"),
        ({"source": "detectron2"}, "resnet50: cannot read image sizes from ''"),
        (
            {"unit": "tokens", "step_seconds": None, "samples_per_second": 9.0},
            "the throughput counts tokens and the row",
        ),
    ],
)
def test_a_row_that_cannot_be_asked_says_why(cells: dict[str, Any], message: str) -> None:
    assert reason(**cells).startswith(message)


def test_relatives_share_a_family() -> None:
    assert {family_of(name) for name in ("resnet50", "resnext101_32x4d", "seresnet50", "legacy_resnet18")} == {"resnet"}


@pytest.mark.needs_data
def test_most_measured_runs_with_a_time_can_be_asked(data: Path) -> None:
    rows = pl.read_parquet(data / "runs.parquet").to_dicts()
    runs, failures = read_runs(rows)
    assert len(runs) + len(failures) == len(rows)
    assert len(runs) > 0.8 * len(rows)


def test_a_split_row_is_asked_as_the_product_its_note_describes() -> None:
    cells = {"device": "H100-SXM5-80GB", "gpus": 32, "batch_per_gpu": 1, "global_batch": 32, "precision": "bf16"}
    asked = run(**cells, model="LLAMA3_70B", input_shape="seq4096", note="TP=4; PP=4; CP=1; VP=5; EP=n/a")
    assert (asked.reference, asked.recipe.batch, asked.recipe.accumulate) == ("llama3_70b", 1, 16)
    assert asked.strategy == "dp2,tp4,pp4,vp5,zero1"


@pytest.mark.parametrize(
    ("device", "precision"), [("A100", "amp_fp16"), ("TPU v3", "amp_bf16"), ("Ascend 910", "amp_fp16")]
)
def test_what_a_submission_calls_mixed_is_what_its_device_does_best(device: str, precision: str) -> None:
    assert run(device=device, precision="mixed (submission-specific)").recipe.precision == precision


def test_a_mixture_in_eight_bits_is_asked_by_its_name_here() -> None:
    asked = run(device="GB200", model="Qwen3_30B_a3B", precision="mxfp8", input_shape="seq4096", batch_per_gpu=4)
    assert (asked.reference, asked.recipe.precision, asked.input_shape) == ("qwen3_30b_a3b", "mxfp8", (4096,))


def test_a_hybrid_without_a_builder_says_so() -> None:
    assert reason(model="Nemotron_3_Nano").startswith("Nemotron_3_Nano: a hybrid of Mamba-2 and attention layers")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"framework": "tensorflow", "precision": "amp_fp16"}, True),
        ({"framework": "tensorflow", "precision": "amp_fp16", "channels_last": False}, False),
        ({"framework": "tensorflow", "precision": "amp_fp16", "device": "P100"}, False),
        ({"framework": "tensorflow", "precision": "fp32"}, False),
        ({"framework": "pytorch", "precision": "amp_fp16"}, False),
        ({"source": "mlperf_training", "precision": "mixed (submission-specific)"}, True),
        ({"source": "mlperf_training", "precision": "mixed (submission-specific)", "device": "TPU v4"}, False),
    ],
)
def test_a_layout_that_is_not_said_is_the_frameworks(cells: dict[str, Any], expected: bool) -> None:
    asked = run(**cells)
    assert asked.recipe.channels_last is asked.setting.channels_last is expected


def test_sides_drawn_anew_make_batches_uneven() -> None:
    assert run(input_shape="3x(320..608), VOC").recipe.uneven == pytest.approx(0.348, abs=1e-3)
    assert run(input_shape="3x224x224").recipe.uneven == 0


@pytest.mark.parametrize(
    ("unit", "rate", "seconds"),
    [
        ("sequences", 64.0, 0.5),
        ("images", 64.0, 0.5),
        ("tokens", 64.0 * 128, 0.5),
        ("steps", 2.0, 0.5),
        (None, 64.0, 0.5),
    ],
)
def test_a_rate_counts_what_its_unit_says(unit: str | None, rate: float, seconds: float) -> None:
    cells = {"model": "bert_base", "input_shape": "seq128", "step_seconds": None}
    assert run(**cells, samples_per_second=rate, unit=unit).step_seconds == pytest.approx(seconds)


def test_a_rate_of_each_gpu_is_that_of_all() -> None:
    asked = run(step_seconds=None, samples_per_second=160, gpus=4, unit="images/s/GPU")
    assert asked.step_seconds == pytest.approx(32 / 160)


def test_the_length_may_be_a_column_of_its_own() -> None:
    cells = {"model": "bert_base", "sequence_length": 256, "step_seconds": None, "unit": "tokens"}
    asked = run(**cells, samples_per_second=32 * 256.0)
    assert (asked.input_shape, asked.step_seconds) == ((256,), pytest.approx(1.0))


@pytest.mark.parametrize(
    ("task", "reference", "tokens"),
    [
        ("question_answering", "bert_large_squad", 384),
        ("glue", "bert_large_classification", 128),
        ("mlm", "bert_large_mlm", 512),
        ("pretraining", "bert_large_pretraining", 512),
    ],
)
def test_a_task_chooses_head_and_length(task: str, reference: str, tokens: int) -> None:
    asked = run(model="bert-large-uncased", task=task)
    assert (asked.reference, asked.input_shape) == (reference, (tokens,))
    assert run(model="bert-large-uncased", task=task, input_shape="seq64").input_shape == (64,)


def test_an_image_size_may_be_one_number() -> None:
    assert run(input_shape="160", unit="images").input_shape == (3, 160, 160)
    assert run(input_shape="160x320").input_shape == (3, 160, 320)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"gpus": "many"}, "gpus must be a number, got 'many'"),
        ({"batch_per_gpu": float("nan")}, "batch_per_gpu must be a finite number, got nan"),
        ({"step_seconds": "soon"}, "step_seconds must be a number, got 'soon'"),
        ({"nodes": 0.5}, "nodes must be a whole number of at least 1, got 0.5"),
        ({"compiled": "perhaps"}, "no compiler called 'perhaps'; known: inductor, none, reduce-overhead, vendor, xla"),
        ({"channels_last": "perhaps"}, "channels_last must be true or false, got 'perhaps'"),
        ({"model": None}, "no model"),
        ({"device": ""}, "no device"),
        ({"quality": "suspect: two jobs at once"}, "left out for its quality: suspect: two jobs at once"),
        ({"step_seconds": None, "samples_per_second": 0}, "samples_per_second must be above 0, got 0"),
    ],
)
def test_one_bad_cell_costs_its_row_alone(cells: dict[str, Any], message: str) -> None:
    runs, failures = read_runs([ROW, {**ROW, **cells}, ROW])
    assert [found.row_index for found in runs] == [0, 2]
    assert [(f.row_index, f.reason) for f in failures] == [(1, message)]


@given(
    cells=st.dictionaries(
        st.sampled_from(
            [
                "model",
                "device",
                "batch_per_gpu",
                "step_seconds",
                "samples_per_second",
                "gpus",
                "nodes",
                "unit",
                "task",
                "precision",
                "optimizer",
                "framework",
                "framework_version",
                "strategy",
                "input_shape",
                "grad_accum",
                "tp",
                "pp",
                "zero",
                "layers",
                "hidden",
                "recompute",
                "note",
                "source",
                "global_batch",
                "compiled",
            ]
        ),
        st.one_of(st.none(), st.text(max_size=12), st.floats(), st.integers(-3, 10**12), st.booleans()),
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_whatever_stands_in_a_row_it_is_a_run_or_a_reason(cells: dict[str, Any]) -> None:
    runs, failures = read_runs([{**ROW, **cells}])
    assert len(runs) + len(failures) == 1


def test_doubtful_rows_are_read_when_asked_for() -> None:
    rows = [{**ROW, "quality": "suspect"}, {**ROW, "quality": "ok"}]
    assert len(read_runs(rows)[0]) == 1
    assert len(read_runs(rows, with_doubtful=True)[0]) == 2


def test_what_was_assumed_is_noted() -> None:
    assert run(optimizer="lionw").notes == ("the optimizer lionw is not known and answered as momentum",)
    assert run(framework="abacus").notes == ("the framework abacus is not known and answered as pytorch",)
    assert run(optimizer="fused adam").job.update_style == "fused"
    assert run(optimizer="fused adam").notes == run(data="synthetic").notes == ()
    unread = "real data without the loader's speed: waiting for data is not in the forecast"
    assert run(data="real").notes == run(data="real (alpaca)").notes == (unread,)


def test_whether_a_step_was_compiled_is_kept() -> None:
    assert run(compiled=True).compiled and run(framework="maxtext").compiled
    assert not run().compiled and not run(framework="maxtext", compiled=False).compiled


def test_a_batch_may_be_given_for_all_gpus() -> None:
    assert run(batch_per_gpu=None, global_batch=256, gpus=4, grad_accum=2).job.batch == 32


def test_tensor_float_is_plain_where_the_device_has_none() -> None:
    assert run(precision="tf32", device="A100").job.precision == "tf32"
    assert run(precision="tf32", device="T4").job.precision == "fp32"


@pytest.mark.parametrize(
    ("words", "precision"),
    [
        ("fp32", "fp32"),
        ("fp32 (TF32 in convolutions)", "fp32"),
        ("tf32 (convolutions), fp32 (matmul)", "fp32"),
        ("tf32 (convolutions; torch default)", "fp32"),
        ("fp32_strict", "fp32_strict"),
        ("fp32 (TF32)", "tf32"),
    ],
)
def test_fp32_of_a_table_is_what_its_framework_runs(words: str, precision: str) -> None:
    assert run(precision=words, device="A100").job.precision == precision


@pytest.mark.parametrize(
    ("framework", "version", "device", "precision"),
    [
        ("pytorch", "2.1", "A100", "fp32"),
        ("pytorch", "1.9", "A100", "tf32"),
        ("tensorflow", "2.8", "A100", "tf32"),
        ("tensorflow", "2.3", "A100", "fp32_strict"),
        ("pytorch", "2.1", "V100", "fp32_strict"),
    ],
)
def test_the_step_of_a_row_is_in_what_its_framework_and_device_make_of_fp32(
    framework: str, version: str, device: str, precision: str
) -> None:
    asked = run(precision="fp32", framework=framework, framework_version=version, device=device)
    assert (asked.job.precision, asked.recipe.precision) == ("fp32", precision)


def test_networks_of_a_benchmark_are_read_as_they_ran() -> None:
    cells = {"source": "kernelbench_level3", "mode": "forward", "optimizer": "none", "precision": "fp32"}
    asked = run(**cells, model="ResNet101", device="L40S", input_shape="batch_size, 3, height, width")
    assert (asked.reference, asked.job.precision, asked.input_shape) == ("resnet101", "fp32", (3, 224, 224))
    assert run(**cells, model="SqueezeNet", batch_per_gpu=64).input_shape == (3, 512, 512)
    assert "not known for a batch of 7" in reason(**cells, model="SqueezeNet", batch_per_gpu=7)
    assert run(**cells, model="MLP", batch_per_gpu=128, device="L40S").job.precision == "fp32"
    assert "not a published network" in reason(**cells, model="SwinMLP")


SIZES = {"layers": 16, "hidden": 2048, "heads": 32, "kv_heads": 8, "ffn": 8192, "vocab": 128256}


def test_a_language_model_is_built_from_its_columns() -> None:
    cells = {**SIZES, "model": "llama-1B", "device": "H100", "gpus": 32, "nodes": 4, "sequence_length": 4096}
    layout = {"dp": 2, "tp": 8, "pp": 2, "zero": 1, "micro_batch": 2, "batch_per_gpu": 2, "global_batch": 64}
    asked = run(
        **cells, **layout, framework="nanotron", framework_version="2025-02", precision="bf16", recompute="full"
    )
    assert asked.reference == "decoder:layers=16,hidden=2048,heads=32,vocab=128256,kv_heads=8,ffn=8192"
    assert (asked.input_shape, asked.strategy, asked.job.accumulate) == ((4096,), "dp2,tp8,pp2,zero1", 16)
    assert (asked.job.update_style, asked.job.attention) == ("fused", "flash")
    assert asked.job.checkpointing


def test_a_note_says_that_attention_is_fused_and_a_script_that_activations_are_cut() -> None:
    """Paddle wrote its scores before version 2, unless its own flag says otherwise."""
    cells = {**SIZES, "model": "llama-1B", "device": "H100", "gpus": 8, "sequence_length": 4096, "precision": "bf16"}
    layout = {"dp": 4, "tp": 2, "micro_batch": 2, "batch_per_gpu": 2, "global_batch": 64}
    fused = run(**cells, **layout, framework="paddle", note="flash_attention=True, recompute=False").job
    written = run(**cells, **layout, framework="paddle", note="flash_attention=False").job
    assert (fused.attention, written.attention) == ("flash", "eager")
    of_script = run(**cells, **layout, framework="megatron", source="flagperf").job
    assert (of_script.sequence_parallel, fused.sequence_parallel) == (True, False)
    words = "fix_hp recompute=True,(theoryflops=495T)"
    of_script = run(**cells, **layout, framework="megatron", source="flagperf", note=words).job
    of_others = run(**cells, **layout, framework="megatron", note=words).job
    assert (of_script.checkpointing, of_others.checkpointing) == ("selective", True)


def test_a_zoo_model_stays_itself_beside_its_sizes() -> None:
    assert run(**SIZES, model="gpt2").reference == "gpt2"


def test_a_split_that_the_row_does_not_say_is_refused() -> None:
    cells = {**SIZES, "model": "gpt3-175b", "gpus": 256, "framework": "nemo2507"}
    assert "does not say how its model was split" in reason(**cells)


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("table", "least"), [("runs", 14000), ("runs_more", 480), ("inference_runs", 19300), ("llm_runs", 2900)]
)
def test_other_peoples_tables_are_read(data: Path, table: str, least: int) -> None:
    runs, _ = read_runs(pl.read_parquet(data / f"{table}.parquet").to_dicts())
    assert len(runs) >= least


def test_texts_of_unknown_mean_length_have_no_time() -> None:
    cells = {
        **ROW,
        "model": "gpt2",
        "input_shape": "seq<=256",
        "batch_per_gpu": 4,
        "quality": "caution: variable length",
    }
    _, (failure,) = read_runs([cells])
    assert failure.reason == "gpt2: texts vary in length, and the row says only the longest"
    (run,), _ = read_runs([{**cells, "peak_memory_bytes": 4e9}], with_memory=True)
    assert not run.is_timed and run.memory is not None
    (other,), _ = read_runs([{**cells, "input_shape": "seq<=256 (mean 90)"}])
    assert other.is_timed


def test_texts_of_which_only_the_maximum_is_said_are_spread_evenly_up_to_it() -> None:
    cells = {**ROW, "model": "gpt2", "input_shape": "seq<=256", "batch_per_gpu": 4}
    (run,), _ = read_runs([cells])
    assert (run.input_shape, run.job.lengths) == ((256,), "mean=128,max=256,padded")
    assert run.notes == ("only the maximum length of the texts is given: they are taken as spread evenly up to it",)
    (other,), _ = read_runs([{**cells, "sequence_length": 100}])
    assert (other.input_shape, other.notes) == ((100,), ())


@pytest.mark.parametrize(
    ("note", "mean"), [("dataset mean 90 tokens untruncated", 90), ("dataset mean 3234 tokens untruncated", 128)]
)
def test_a_mean_below_half_of_the_maximum_is_the_mean_of_texts(note: str, mean: int) -> None:
    asked = run(model="gpt2", input_shape="seq<=256", batch_per_gpu=4, note=note)
    assert asked.job.lengths == f"mean={mean},max=256,padded"


@pytest.mark.parametrize(
    ("cells", "version"),
    [
        ({}, "1.12"),
        ({"framework_version": "1.10"}, "1.10"),
        ({"note": "resisc45, torch 2.4; as printed"}, "2.4"),
        ({"note": "torch 2.4 and torch 2.6"}, "1.12"),
        ({"compiled": True}, "2.0"),
        ({"device": "H100"}, "2.0"),
        ({"device": "B200"}, "2.7"),
        ({"device": "B200", "framework_version": "2.8"}, "2.8"),
        ({"model": "gpt2", "method": "lora", "input_shape": "seq128"}, "2.0"),
    ],
)
def test_a_row_without_a_version_ran_one_that_can_run_it(cells: dict[str, Any], version: str) -> None:
    assert run(**cells).job.framework_version == version


def test_a_peak_above_a_boards_memory_was_measured_on_a_larger_board_of_its_family() -> None:
    names = [run(device="A100", peak_memory_gib=peak).device.memory_bytes // 10**9 for peak in (30, 69)]
    assert names[0] < 45 and names[1] > 80


def test_adapters_on_a_quantised_base_run_in_half_with_adamw_unless_said_otherwise() -> None:
    cells = {"model": "gpt2", "method": "qlora", "input_shape": "seq128"}
    old, new = run(**cells).job, run(**cells, device="A100").job
    assert (old.precision, old.optimizer, new.precision) == ("amp_fp16", "adamw", "amp_bf16")


def test_a_decoder_written_by_hand_is_updated_by_a_loop() -> None:
    sizes = {"layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "ffn": 256, "sequence_length": 16}
    (own,), _ = read_runs([{**ROW, **sizes, "model": "cs336-small", "source": "cs336", "optimizer": "adamw"}])
    assert own.job.update_style == "loop"


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        ("12.23 GB allocated as printed", "allocated"),
        ("peak = reserved max (mean 13.4 GiB)", "reserved"),
        ("8.32 GB as printed", "not stated"),
    ],
)
def test_a_note_may_say_which_memory_was_read(note: str, kind: str) -> None:
    (asked,), _ = read_runs([{**ROW, "peak_memory_gib": 8.0, "note": note}], with_memory=True)
    assert asked.memory is not None and asked.memory.kind == kind


def test_a_rate_counts_the_samples_of_all_accumulated_passes() -> None:
    cells = {**ROW, "step_seconds": None, "samples_per_second": 8.0, "batch_per_gpu": 2, "grad_accum": 16}
    (run,), _ = read_runs([cells])
    assert (run.step_seconds, run.job.accumulate) == (4.0, 16)


def test_a_picture_is_a_latent_for_a_network_of_latents() -> None:
    cells = {**ROW, "model": "stable-diffusion-v2-base", "input_shape": "512x512 px (training data)"}
    (run,), _ = read_runs([cells])
    assert (run.reference, run.input_shape) == ("sd21_unet", (4, 64, 64))


def test_hugging_face_runs_its_own_module_of_a_model_known_by_name() -> None:
    sizes = {"layers": 32, "hidden": 4096, "heads": 32, "vocab": 32000, "sequence_length": 512}
    (own,), _ = read_runs([{**ROW, **sizes, "model": "mistral-7b", "framework": "pytorch+transformers+trl"}])
    (sized,), _ = read_runs([{**ROW, **sizes, "model": "mistral-7b", "framework": "nanotron"}])
    assert own.reference == "mistral_7b" and sized.reference.startswith("decoder:layers=32,")


def test_a_compiler_that_is_not_known_is_answered_as_the_nearest() -> None:
    (run,), _ = read_runs([{**ROW, "compiled": "triton"}])
    assert (run.job.compile, run.notes) == ("inductor", ("compiled by triton is answered as inductor",))


def test_a_length_of_the_list_comes_before_a_maximum() -> None:
    cells = {**ROW, "source": "mlperf_training", "model": "bert-large-uncased"}
    for words in ("seq<=512", "seq512 (packed/unpadded)"):
        (run,), _ = read_runs([{**cells, "input_shape": words}])
        assert (run.input_shape, run.notes) == ((256,), ())


TEXTS = {"model": "llama3_2_1b", "device": "H100", "batch_per_gpu": 1, "input_shape": "seq512", "step_seconds": 1.0}


def test_bf16_of_torchtitan_is_autocast_over_weights_in_float32() -> None:
    assert run(**TEXTS, precision="bf16", framework="torchtitan FSDP2").job.precision == "amp_bf16"
    assert run(**TEXTS, precision="bf16", framework="transformers").job.precision == "bf16"


def test_unsloth_brings_its_kernels_and_leaves_the_base_in_half() -> None:
    job = run(**TEXTS, precision="fp16", framework="unsloth", method="qlora", compiled="triton").job
    assert (job.kernels, job.compile, job.quantize) == ("unsloth", "none", "nf4")
    assert job.weights is not None and job.weights.startswith("fp16")
