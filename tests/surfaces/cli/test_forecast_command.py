import json
import re
from pathlib import Path

import pytest
from tests.contract import FORECAST_KEYS
from tests.every import every

from .conftest import Command, answer

PARTS = {"forward", "backward", "update", "exposed_comm", "exposed_input", "host"}
INTERVALS = ("step_seconds", "epoch_seconds", "total_seconds", "peak_bytes", "dollars")

LINES = {
    "one GPU": "forecast resnet50 --device V100 --batch 64 --dataset imagenet-1k --epochs 90",
    "two boxes": "forecast resnet50 --device A100 --batch 64 --gpus 16 --nodes 2 --link ethernet_100g --samples 90000",
    "mirrored": "forecast mnist_cnn --device V100 --batch 32 --gpus 2 --strategy mirrored --dataset mnist",
    "words": "forecast bert_base --device H100 --batch 8 --precision bf16 --optimizer adamw --samples 500 --epochs 3",
    "fine-tuning": "forecast resnet18 --device T4 --batch 32 --freeze layer* --samples 1000 --accumulate 4",
    "inference": "forecast vit_b_16 --device L4 --batch 8 --mode forward --precision fp16 --samples 100",
    "eight bits": "forecast gpt2 --device H100 --batch 8 --precision fp8 --optimizer adamw --samples 500",
}
every_line = every("line", LINES.values(), ids=LINES)


@every_line
def test_json_has_the_keys_of_the_contract(line: str, command: Command) -> None:
    ran = command(f"{line} --json")
    assert (ran.code, ran.err, ran.out.count("\n")) == (0, "", 1)
    assert set(ran.json) >= FORECAST_KEYS
    assert set(ran.json["step_parts"]) == PARTS
    for name in INTERVALS:
        assert set(ran.json[name]) == {"low", "mid", "high", "coverage"}


@every_line
def test_intervals_are_ordered_and_positive(line: str) -> None:
    found = answer(line)
    for name in INTERVALS:
        assert 0 < found[name]["low"] <= found[name]["mid"] <= found[name]["high"]
    assert found["step_seconds"]["coverage"] == 0.9


@every_line
def test_parts_sum_to_the_middle_of_the_step(line: str) -> None:
    found = answer(line)
    assert sum(found["step_parts"].values()) == pytest.approx(found["step_seconds"]["mid"])
    assert min(found["step_parts"].values()) >= 0


@every_line
def test_who_answered_sums_to_everything(line: str) -> None:
    assert sum(answer(line)["answered_by"].values()) == pytest.approx(1)


@every_line
def test_dollars_are_price_times_hours(line: str) -> None:
    found = answer(f"{line} --price 2.50")
    hours = found["total_seconds"]["mid"] / 3600
    assert found["dollars"]["mid"] == pytest.approx(2.50 * found["gpus"] * hours)


@every_line
def test_throughput_is_batch_over_step(line: str) -> None:
    found = answer(line)
    assert found["global_batch"] == found["batch_per_gpu"] * found["gpus"]
    assert found["samples_per_second"] == pytest.approx(found["global_batch"] / found["step_seconds"]["mid"])


# 1,281,167 images in batches of 64 are 20,019 steps, the last of them not full.
def test_an_epoch_has_a_step_for_the_rest(command: Command) -> None:
    found = answer(LINES["one GPU"])
    assert (found["samples"], found["steps_per_epoch"]) == (1_281_167, 20_019)
    assert found["epoch_seconds"]["mid"] > 20_019 * found["step_seconds"]["mid"]
    assert found["total_seconds"]["mid"] > 90 * found["epoch_seconds"]["mid"]


# 4.09 GMAC forward: 8.18 GFLOP, three times that for training but for the gradient of the image.
def test_flops_and_parameters_of_resnet50_are_the_published(command: Command) -> None:
    found = answer(LINES["one GPU"])
    assert found["parameters"] == 25_557_032
    assert found["flops_per_sample"] == pytest.approx(3 * 8.18e9, rel=0.01)


def test_without_data_there_is_a_step_but_no_job(command: Command) -> None:
    found = answer("forecast resnet18 --device V100 --batch 8")
    assert found["epoch_seconds"] is found["total_seconds"] is found["dollars"] is None
    assert "give a dataset or its samples" in command("forecast resnet18 --device V100 --batch 8").out


def test_one_gpu_waits_for_nobody(command: Command) -> None:
    assert answer(LINES["one GPU"])["step_parts"]["exposed_comm"] == 0
    assert answer(LINES["mirrored"])["step_parts"]["exposed_comm"] > 0


def test_augmented_copies_take_time_but_are_no_samples(command: Command) -> None:
    once = answer("forecast resnet44 --device V100 --batch 64 --dataset cifar10")
    often = answer("forecast resnet44 --device V100 --batch 64 --dataset cifar10 --augment 8")
    assert often["global_batch"] == once["global_batch"] == 64
    assert often["steps_per_epoch"] == once["steps_per_epoch"]
    assert often["epoch_seconds"]["mid"] > once["epoch_seconds"]["mid"]


def test_forward_alone_has_no_backward_and_no_update(command: Command) -> None:
    parts = answer(LINES["inference"])["step_parts"]
    assert parts["backward"] == parts["update"] == 0 < parts["forward"]


def test_a_frozen_network_trains_faster(command: Command) -> None:
    whole = answer("forecast resnet18 --device T4 --batch 32")
    head = answer("forecast resnet18 --device T4 --batch 32 --freeze conv1* --freeze bn1* --freeze layer*")
    assert head["trainable_parameters"] == 512 * 1000 + 1000
    assert head["step_seconds"]["mid"] < whole["step_seconds"]["mid"]


def test_what_does_not_fit_is_answered_with_code_4(command: Command) -> None:
    ran = command("forecast vgg19 --device K20 --batch 1024 --json")
    assert (ran.code, ran.json["fits"], ran.err) == (4, False, "")
    assert ran.json["peak_bytes"]["low"] > ran.json["memory_bytes"] == 5 * 2**30
    assert all(remedy["peak_bytes"]["mid"] > 0 for remedy in ran.json["would_fit"])
    shown = command("forecast vgg19 --device K20 --batch 1024")
    assert (shown.code, "DOES NOT FIT" in shown.out, "what would fit" in shown.out) == (4, True, True)


@pytest.mark.slow
def test_a_tight_step_is_said_to_be_tight_and_ends_well(command: Command) -> None:
    most = command("advise resnet50 --device T4 --json").json["max_batch"]
    line = f"forecast resnet50 --device T4 --batch {most['expected']}"
    ran = command(f"{line} --json")
    assert (ran.code, ran.json["fits"], ran.json["memory_verdict"], ran.err) == (0, True, "tight", "")
    assert ran.json["peak_bytes"]["mid"] < ran.json["memory_bytes"] < ran.json["peak_bytes"]["high"]
    assert "of 16 GiB: tight" in command(line).out
    shown = command(f"inspect resnet50 --device T4 --batch {most['expected']}")
    assert (shown.code, f"batch {most['expected']}: tight" in shown.out) == (0, True)
    safe = command(f"forecast resnet50 --device T4 --batch {most['safe']} --json").json
    assert safe["memory_verdict"] == "fits" and safe["peak_bytes"]["high"] <= safe["memory_bytes"]


def test_checkpointing_takes_a_word(command: Command) -> None:
    line = "forecast gpt2 --device V100 --batch 4 --attention eager"
    flags = ("", " --no-checkpointing", " --checkpointing selective", " --checkpointing=full", " --checkpointing")
    peaks = [answer(f"{line}{flag}")["peak_bytes"]["mid"] for flag in flags]
    assert peaks[0] == peaks[1] > peaks[2] > peaks[3] == peaks[4]


def test_checkpointing_trades_time_for_memory(command: Command) -> None:
    plain, again = (answer(f"forecast resnet50 --device V100 --batch 64{flag}") for flag in ("", " --checkpointing"))
    assert again["peak_bytes"]["mid"] < 0.7 * plain["peak_bytes"]["mid"]
    assert plain["step_seconds"]["mid"] < again["step_seconds"]["mid"] < 1.5 * plain["step_seconds"]["mid"]


def test_explain_splits_all_kernel_seconds(command: Command) -> None:
    found = answer(LINES["one GPU"] + " --explain")
    kernels = sum(found["step_parts"][part] for part in ("forward", "backward", "update"))
    assert sum(row["seconds"] for row in found["explain"]["by_class"]) == pytest.approx(kernels)
    heaviest = [row["seconds"] for row in found["explain"]["by_layer"]]
    assert heaviest == sorted(heaviest, reverse=True)


@every_line
def test_the_table_says_what_the_json_says(line: str, command: Command) -> None:
    found = answer(line)
    shown = command(f"{line} --explain")
    assert (shown.code, shown.err) == (0, "")
    assert f"{found['model']} on " in shown.out and found["device"] in shown.out
    assert f"{found['steps_per_epoch']:,} steps" in shown.out
    assert "90 % interval" in shown.out and "kernel time by class of op" in shown.out
    for warning in found["warnings"]:
        with_flags = re.sub(r"`(\w+)`", lambda match: f"--{match[1].replace('_', '-')}", warning)
        assert with_flags in " ".join(shown.out.split())


def test_an_assumed_link_is_said(command: Command) -> None:
    shown = command("forecast resnet18 --device V100 --batch 8 --gpus 8 --nodes 2").out
    said = "No --link given: assuming infiniband_edr_x4 between nodes, the network of DGX-1 V100."
    assert said in " ".join(shown.split())
    assert answer("forecast resnet18 --device V100 --batch 8 --gpus 8 --nodes 2")["link_assumed"] == "infiniband_edr_x4"


BAD = {
    "resnet5 --device V100 --batch 1": "no model called 'resnet5'; near: ",
    "resnet50 --device V10 --batch 1": "no device called 'V10'; near: V100",
    "resnet50 --device V100 --batch 1 --dataset imagenut": "no dataset called 'imagenut'; near: imagenet-1k",
    "resnet50 --device V100 --batch 1 --optimizer adamm": "no optimizer called 'adamm'; near: adam, adamw",
    "resnet50 --device V100 --batch 1 --precision fp31": "no precision called 'fp31'; near: fp32",
    "resnet50 --device V100 --batch 1 --gpus 2 --strategy ddq": "no strategy called 'ddq'; near: ddp",
    "resnet50 --device V100 --batch 1 --gpus 2 --link nvlink22": "no link called 'nvlink22'; near: nvlink2",
    "resnet50 --device V100 --batch 1 --mode backward": "no mode called 'backward'; known: forward",
    "resnet50 --device V100 --batch 1 --attention paged": "no attention called 'paged'; known: auto, eager, flash",
    "resnet50 --device V100 --batch 1 --host-class 0": "--host-class: a launch takes above 0 and at most 100 ms, got ",
    "resnet50 --device V100 --batch 0": "batch must be at least 1, got 0",
    "resnet50 --device V100 --batch -3": "batch must be at least 1, got -3",
    "resnet50 --device V100 --batch 1 --gpus 0": "gpus must be at least 1, got 0",
    "resnet50 --device V100 --batch 1 --gpus 3 --nodes 2": "3 GPUs do not share out evenly over 2 nodes",
    "resnet50 --device V100 --batch 1 --gpus 2 --strategy single": "strategy 'single' runs on one GPU, not 2",
    "resnet50 --device V100 --batch 1 --samples 0": "samples must be at least 1, got 0",
    "resnet50 --device V100 --batch 1 --samples 9 --epochs 0": "epochs must be at least 1, got 0",
    "resnet50 --device V100 --batch 1 --augment 0": "augment must be at least 1, got 0",
    "resnet50 --device V100 --batch 1 --accumulate 0": "--accumulate must be at least 1, got 0",
    "resnet50 --device V100 --batch 1 --price cheap": "'cheap' is not a price in dollars per hour; write it like 2.50",
    "resnet50 --device V100 --batch 1 --price -1": "'-1' is not a price in dollars per hour",
    "resnet50 --device V100 --batch 1 --price nan": "'nan' is not a price in dollars per hour",
    "resnet50 --device V100 --batch 1 --freeze nix*": "--freeze pattern 'nix*' matches no parameter of resnet50",
    "resnet50 --device V100 --batch 1 --no-aux": "resnet50 has no auxiliary heads to drop",
    "resnet50 --device V100 --batch 1 --input 224": "takes an input of 3 positive sizes, such as 3x224x224; got 224",
    "resnet50 --device V100 --batch 1 --input large": "'large' is not a shape; write it like 3x224x224",
    "vgg19 --device V100 --batch 1 --input 3x20x20": "the input is too small for this network",
    "vit_b_16 --device V100 --batch 1 --input 3x225x225": "cuts images into 16x16 patches, got 3x225x225",
    "bert_base --device V100 --batch 1 --input 3x224x224": "takes one number of tokens as its input, got 3x224x224",
    "missing.toml --device V100 --batch 1": "no file 'missing.toml'",
    "weights.pth --device V100 --batch 1": "no file 'weights.pth'",
}


@pytest.mark.parametrize(("line", "complaint"), BAD.items(), ids=BAD)
def test_bad_input_is_one_line_and_code_2(line: str, complaint: str, command: Command) -> None:
    ran = command(f"forecast {line} --json")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken.toml", "input = [3, 8"),
        ("broken.json", '{"layers": ['),
        ("empty.json", ""),
        ("empty.toml", ""),
        ("number.json", "3"),
        ("layer.toml", 'input = [3, 8, 8]\n[[layers]]\ntype = "convolution"\n'),
        ("key.toml", 'input = [3, 8, 8]\n[[layers]]\ntype = "conv"\nchannels = 4\nkernell = 3\n'),
        ("negative.toml", 'input = [3, 8, 8]\n[[layers]]\ntype = "conv"\nchannels = -4\nkernel = 3\n'),
        ("shape.toml", 'input = [3, 8, 8]\n[[layers]]\ntype = "conv"\nchannels = 4\nkernel = 9\n'),
        ("saved.json", '{"format": "epochcast-spec", "version": 1}'),
        ("future.json", '{"format": "epochcast-spec", "version": 99}'),
    ],
)
def test_a_broken_spec_file_is_one_line_and_code_2(name: str, text: str, command: Command, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    for line in ("forecast {} --device V100 --batch 4", "inspect {}"):
        ran = command(line.format(tmp_path / name))
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert name in ran.err


TUNED = "forecast gpt2 --device T4 --batch 4 --input 128 --precision fp16 --optimizer adamw"


def test_lora_needs_less_of_everything_and_says_what_it_is(command: Command) -> None:
    whole, adapted = (answer(TUNED + more) for more in ("", " --lora 8"))
    assert adapted["step_seconds"]["mid"] < whole["step_seconds"]["mid"]
    assert adapted["allocated_bytes"] < whole["allocated_bytes"]
    large = "forecast mistral_7b --device H100 --batch 1 --input 128 --lora 8"
    assert answer(f"{large} --four-bit")["allocated_bytes"] < 0.5 * answer(large)["allocated_bytes"]
    header = " ".join(command(f"{TUNED} --lora 8 --four-bit").out.split())
    assert "adamw · LoRA rank 8 on c_attn, 295 k trained, 4-bit base (NF4)" in header


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--lora 8 --lora-target nope", "no linear layer is called nope; the model has: c_attn, c_fc, c_proj, lm_head"),
        ("--four-bit", "a quantised base is frozen: give a rank (--lora) or parameters to freeze (--freeze)"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(more: str, message: str, command: Command) -> None:
    ran = command(f"{TUNED} {more}")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err


@pytest.mark.slow
def test_what_the_users_code_prints_does_not_reach_the_answer(tmp_path: Path, command: Command) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "net.py"
    code = ["import torch", "print('imported')", "def make():", "    print('made')", "    return torch.nn.Linear(3, 4)"]
    file.write_text("\n".join(code))
    ran = command(f"forecast {file}:make --device V100 --batch 2 --input 3 --json")
    assert json.loads(ran.out)["parameters"] == 16
    assert "imported" in ran.err


@pytest.mark.parametrize(
    ("device", "precision", "is_said"), [("V100", "fp8", True), ("T4", "bf16", True), ("H100", "fp8", False)]
)
def test_a_format_that_a_device_lacks_is_said(device: str, precision: str, is_said: bool) -> None:
    warnings = answer(f"forecast resnet18 --device {device} --batch 2 --precision {precision}")["warnings"]
    assert any("arithmetic" in warning for warning in warnings) == is_said
