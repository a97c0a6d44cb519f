"""A hundred mistakes, as people make them: each is one clear line and exit code 2."""

import shlex
from pathlib import Path

import pytest

from epochcast.surfaces.cli.command_line import run

JOB = "forecast resnet50 --device V100 --batch 8"
MISTAKES = {
    "forecast": "Missing argument 'MODEL'",
    "forecast resnet51 --device V100 --batch 8": "no model called 'resnet51'; near: resnet",
    "forecast resnet50 --device V1000 --batch 8": "no device called 'V1000'; near: V100",
    "forecast resnet50 --device V100": "Missing option '--batch'",
    "forecast resnet50 --batch 8": "Missing option '--device'",
    "forecast resnet50 --device V100 --batch 0": "--batch must be at least 1, got 0",
    "forecast resnet50 --device V100 --batch -4": "--batch must be at least 1, got -4",
    "forecast resnet50 --device V100 --batch 1.5": "1.5",
    "forecast resnet50 --device V100 --batch nan": "'nan'",
    "forecast resnet50 --device V100 --batch inf": "'inf'",
    "forecast resnet50 --device V100 --batch ten": "'ten'",
    "forecast resnet50 --device V100 --batch ''": "--batch: must be a whole number or auto, got ''",
    f"forecast resnet50 --device V100 --batch 1{'0' * 26}": "--batch must be at most 10,000,000",
    "forecast '' --device V100 --batch 8": "a job needs a model",
    "forecast resnet50 --device '' --batch 8": "no device called ''",
    f"{JOB} --gpus 0": "--gpus must be at least 1, got 0",
    f"{JOB} --gpus -1": "--gpus must be at least 1, got -1",
    f"{JOB} --gpus 99999999999999": "--gpus must be at most",
    f"{JOB} --gpus 3 --nodes 2": "3 GPUs do not share out evenly over 2 nodes",
    f"{JOB} --nodes 0": "--nodes must be at least 1",
    f"{JOB} --precision fp12": "no precision called 'fp12'; near: fp32",
    f"{JOB} --optimizer sdg": "no optimizer called 'sdg'; near: sgd",
    f"{JOB} --strategy dpp": "no strategy called 'dpp'; near: ddp",
    f"{JOB} --gpus 8 --strategy tp3,dp2": "is for 6 GPUs, and there are 8",
    f"{JOB} --gpus 8 --link infinband": "no link called 'infinband'; near: infiniband",
    f"{JOB} --dataset imagnet": "no dataset called 'imagnet'; near: imagenet-1k",
    f"{JOB} --samples -1": "'-1' is no whole number",
    f"{JOB} --samples 1e400": "'1e400' is too large a number",
    f"{JOB} --dataset imagenet-1k --epochs 0": "--epochs must be at least 1",
    f"{JOB} --dataset imagenet-1k --epochs nan": "'nan'",
    f"{JOB} --validation-samples 1{'0' * 30}": "--validation-samples must be at most",
    f"{JOB} --input 3x0x224": "'3x0x224' is not a shape",
    f"{JOB} --input 224,224,3": "--input 224,224,3: looks like channels-last; epochcast reads channels first: "
    "--input 3x224x224",
    "forecast mnist_cnn --device V100 --batch 8 --input 28x28x1": "channels first: --input 1x28x28",
    "forecast r3d_18 --device V100 --batch 8 --input 16x112x112x3": "channels first: --input 3x16x112x112",
    "forecast timm:resnet18 --device V100 --batch 8 --input 224x224x3": "channels first: --input 3x224x224",
    "forecast torchvision:resnet18 --device V100 --batch 8 --input 224x224x3": "channels first: --input 3x224x224",
    "forecast gpt2 --device A100 --batch 1 --lora 8 --lora-target c_attn --lora-target c_prjo": "no linear layer is "
    "called c_prjo; the model has: c_attn, c_fc, c_proj",
    f"{JOB} --input 224": "takes an input of 3 positive sizes",
    f"{JOB} --input abc": "'abc' is not a shape",
    f"{JOB} --mode trainig": "no mode called 'trainig'",
    f"{JOB} --freeze nosuchlayer": "matches no parameter",
    f"{JOB} --augment 0": "--augment must be at least 1",
    f"{JOB} --compile tvm": "no compiler called 'tvm'",
    f"{JOB} --host-class laptopp": "no host class called 'laptopp'",
    f"{JOB} --loader-seconds -1ms": "'-1ms' is not a time",
    f"{JOB} --loader-seconds soon": "'soon' is not a time",
    f"{JOB} --loader-seconds inf": "'inf' is not a time",
    f"{JOB} --loader-seconds 8": "--loader-seconds 8: give a unit, for example 8ms",
    f"{JOB} --loader-seconds 8/64": "--loader-seconds 8: give a unit, for example 8ms",
    f"{JOB} --loader-seconds 0.0045": "--loader-seconds 0.0045: give a unit, for example 0.0045s",
    f"{JOB} --hook-seconds 2": "--hook-seconds 2: give a unit, for example 2ms",
    f"{JOB} --gemm-seconds 12": "--gemm-seconds 12: give a unit, for example 12ms",
    f"{JOB} --cpus 0 --loader-seconds 1ms": "--cpus must be above 0",
    f"{JOB} --framework jaxx": "no framework called 'jaxx'",
    f"{JOB} --profile nothere.json": "cannot read nothere.json",
    f"{JOB} --profile folder": "Is a directory",
    f"{JOB} --profile binary.json": "is not text in UTF-8",
    f"{JOB} --config nothere.json": "there is no file 'nothere.json'",
    f"{JOB} --config bad.json": "bad.json is not JSON",
    f"{JOB} --gemm-seconds 0": "must be above 0, got 0",
    f"{JOB} --bacth 3": "No such option: --bacth",
    "forecast resnet50 extra --device V100 --batch 8": "unexpected extra argument",
    "forecast nothere.onnx --device V100 --batch 8": "no file 'nothere.onnx'",
    "forecast empty.onnx --device V100 --batch 8": "empty.onnx is not an ONNX model",
    "forecast empty.keras --device V100 --batch 8": "empty.keras is not a Keras archive",
    "forecast empty.json --device V100 --batch 8": "empty.json is not JSON",
    "forecast empty.toml --device V100 --batch 8": "empty.toml is no spec",
    "forecast binary.json --device V100 --batch 8": "is not text in UTF-8",
    "forecast folder --device V100 --batch 8": "'folder' is a folder without config.json: give the model itself",
    "forecast nothere.py:make --device V100 --batch 8": "there is no file 'nothere.py'",
    "forecast hf:nothere.json --device V100 --batch 8": "there is no file 'nothere.json'",
    "forecast hf:folder --device V100 --batch 8": "there is no file 'folder/config.json'",
    "forecast decoder:layers=0,hidden=4,heads=1,vocab=3 --device V100 --batch 8": "layers must be between",
    "forecast decoder:layers=1000000000,hidden=4,heads=1,vocab=3 --device V100 --batch 8": "layers must be between",
    "forecast bert_base --device V100 --batch 8 --dataset imagenet-1k --epochs 1": "bert_base takes text",
    "forecast --job nothere": "no epochcast.toml in",
    "forecast gpt2 --device A100 --batch 8 --tokens -5": "'-5' is no whole number",
    "forecast gpt2 --device A100 --batch 8 --tokens 300Q": "'300Q' is no whole number",
    "forecast gpt2 --device A100 --batch 8 --lengths mean=0,max=3": "padded, bucketed, packed, full",
    "forecast resnet50 --device empty.toml --batch 8": "a data sheet needs memory",
    "inspect": "Missing argument 'MODEL'",
    "inspect nothere": "no model called 'nothere'",
    "inspect resnet50 --save /nowhere/x.json": "cannot write /nowhere/x.json",
    "inspect resnet50 --plot x.gif": "it needs --device and --batch",
    "inspect resnet50 --device V100 --batch 0": "--batch must be at least 1",
    "advise resnet50": "Missing option '--device'",
    "advise resnet50 --device V100 --host-memory lots": "'lots' is not a size in bytes",
    "advise resnet50 --device V100 --host-memory -1GiB": "'-1GiB' is not a size in bytes",
    "advise resnet50 --device V100 --loader nothere.py:make": "there is no file 'nothere.py'",
    "advise resnet50 --device V100 --loader net.py:make": "net.py has no 'make'",
    "advise resnet50 --device V100 --max-batch 0": "--max-batch must be at least 1",
    "advise resnet50 --device V100 --rule best": "no rule called 'best'",
    "advise resnet50 --device V100 --probe-batches 1": "'1' is not two batches",
    "scaling resnet50 --device V100 --batch 8 --gpus 1,two": "got '1,two'",
    "scaling resnet50 --device V100 --batch 8 --gpus 0": "numbers of GPUs go from 1 to 4096",
    "scaling resnet50 --device V100 --batch 8 --gpus 1,2 --regime sideways": "no regime called 'sideways'",
    "scaling resnet50 --device V100 --batch 8 --gpus 1,2 --plot /nowhere/p.png": "no folder '/nowhere'",
    "scaling resnet50 --device V100 --batch 8 --gpus 1,2 --allreduce rign": "near: ring",
    "plan resnet50": "a plan is for a whole job",
    "plan resnet50 --batch 256 --dataset imagenet-1k --deadline yesterday": "'yesterday' is not a time",
    "plan resnet50 --batch 256 --dataset imagenet-1k --deadline 6": "--deadline 6: give a unit, for example 6h",
    "plan resnet50 --batch 256 --dataset imagenet-1k --boot 4": "--boot 4: give a unit, for example 4m",
    "plan resnet50 --batch 256 --dataset imagenet-1k --spot 1 --restart 5": "--restart 5: give a unit, for example 5m",
    "plan resnet50 --samples 9 --spot 1 --checkpoint 30": "--checkpoint 30: give a unit, for example 30s",
    "plan resnet50 --batch 256 --dataset imagenet-1k --budget -5": "--budget: '-5' is not an amount of dollars",
    "plan resnet50 --batch 256 --dataset imagenet-1k --budget inf": "--budget: 'inf' is not an amount of dollars",
    "plan resnet50 --batch 256 --dataset imagenet-1k --clouds azzure": "no cloud called 'azzure'",
    "plan resnet50 --batch 256 --dataset imagenet-1k --plot p.xyz": "known endings: .png, .svg, .html",
    "evaluate nothere.csv": "no file 'nothere.csv'",
    "evaluate empty.csv": "empty.csv is not a csv table: it is empty",
    "evaluate folder": "'folder' is a folder, not a table",
    "evaluate other.csv": "a table of runs needs the columns model",
    "evaluate words.csv --by nothing": "no column to group by called 'nothing'",
    "calibrate words.csv --device V100": "batch_per_gpu must be a number, got 'ten'",
    "calibrate --device V100 --gemm-seconds 4096=12": "--gemm-seconds 12: give a unit, for example 12ms",
    "fit nothere.jsonl --out x.json": "no measurement file 'nothere.jsonl'",
    "fit folder --out x.json": "Is a directory",
    "bench": "Missing command",
    "bench loader net.py:make": "net.py has no 'make'",
    "bench ops --budget 5": "--budget 5: give a unit, for example 5m",
    "runs --since 7": "--since 7: give a unit, for example 7d",
    "store vacuum --whole 7": "--whole 7: give a unit, for example 7d",
    "schedule simulate nothere.json --every 10": "--every 10: give a unit, for example 10min",
    "schedule run nothere.json --look 2": "--look 2: give a unit, for example 2s",
    "bench nothing": "No such command 'nothing'",
    "track": "Missing argument",
    "track nothere.log": "cannot read nothere.log: No such file or directory",
    "track folder": "there is no file in folder",
    "track empty.log": "empty.log is empty",
    "track hello.log": "has no line that reports training",
    "track hello.log --what-if 4xV100": "--what-if needs --job",
    "track hello.log --regex (": "--regex is no regular expression",
    "track train.log --restart 5": "--restart 5: give a unit, for example 5min",
    "track train.log --total nan": "--total",
    "track train.log --total -1": "--total",
    "devices nothere": "no device called 'nothere'",
    "models nothere": "unexpected extra argument",
    "jobs nothere": "No such command 'nothere'",
    "nothing": "No such command 'nothing'",
    "--nothing": "No such option: --nothing",
    "forecasst resnet50 --device V100 --batch 4": "Did you mean 'forecast'?",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What people have lying around."""
    here = tmp_path_factory.mktemp("mistakes")
    (here / "folder").mkdir()
    for name in ("empty.toml", "empty.onnx", "empty.keras", "empty.json", "empty.csv", "empty.log"):
        (here / name).touch()
    (here / "binary.json").write_bytes(b"\xff\xfe\x00")
    (here / "bad.json").write_text("not json", encoding="utf-8")
    (here / "net.py").write_text("x = 1\n", encoding="utf-8")
    (here / "words.csv").write_text(
        "model,device,batch_per_gpu,step_seconds\nresnet50,V100,ten,0.1\n", encoding="utf-8"
    )
    (here / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (here / "hello.log").write_text("hello\n", encoding="utf-8")
    lines = [f"2031-04-05 06:0{i}:00,000 step {i * 10}/990 loss 0.1" for i in range(6)]
    (here / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return here


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_clear_line(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    code = run(shlex.split(line))
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err.count("\n")) == (2, "", 1), printed.err
    assert MISTAKES[line] in printed.err
