"""One answer of every command with `--json`, kept in tests/golden: its keys, verdicts and numbers, not the words of its
notes. Each has the shape of its command's schema. After a change on purpose: `pytest --renew`.
"""

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks.answers.asking import FIXED, ask
from benchmarks.answers.comparing import compare
from benchmarks.answers.material import write_material
from epochcast.measure.bench.measurements import Appender
from epochcast.measure.bench.random_shapes import OpLimits
from epochcast.surfaces.answer_schemas import ANSWERS, answer_schema
from epochcast.surfaces.cli import command_line
from tests.masked import masked
from tests.measure.fit.machines import collective_rows, op_rows

GOLDEN = Path(__file__).parent / "golden"
TOLERANCE = 1e-6
LONGEST_LIST = 12
SHOWN_OF_LONGER = 3

OF_ONE_RUN = "runs NAME"
"""`runs` answers differently where it is asked for one."""
OF_SHARED_RUNS = "fit --shared"
"""`fit` answers differently where it reads files that users share."""
GENERATES, POST_TRAINS, SPLITS = "forecast generate", "forecast grpo", "advise grpo"
"""`forecast` answers differently where a job generates text and where it trains from rewards; so does `advise`."""
IS_A_SCHEMA = "jobs schema"
"""Prints a schema, and so has none."""

FIT = "history fit jobs.csv --target step_seconds --with ridge --out model.json"
RUN = "schedule run small.json --look 0.1s --policy fifo_shared"
TRACKED = "track train.log --total 4000 --job imagenet --run first"

# The last line is the question; those before it prepare it.
KEPT: Mapping[str, tuple[str, ...]] = {
    "advise": ("advise resnet50 --device V100 --cpus 8 --loader-seconds 8ms",),
    SPLITS: (
        "advise llama3_2_1b --device H100 --gpus 4 --algorithm grpo --prompts-per-step 32 --generations 4 "
        "--prompt 256 --response 300",
    ),
    "afford": ("afford --budget 20 --clouds aws --devices T4 --gpus 1 --dataset cifar10 resnet18 resnet50",),
    "bench collectives": ("bench collectives --device cpu --ranks 2 --sizes 4KiB --out m.jsonl",),
    "bench loader": ("bench loader --batch 2 --budget 1s --out m.jsonl",),
    "bench models": ("bench models campaign.toml --device cpu --threads 1 --out m.jsonl",),
    "bench ops": ("bench ops --device cpu --threads 1 --dtypes float32 --budget 1ms --out m.jsonl",),
    "bill": (TRACKED, "bill first"),
    "calibrate": ("calibrate --device A100 --gemm-seconds bf16:8192x8192x8192=4.6ms",),
    "check": ("check resnet50 --device V100 --batch 64 --observed 200img/s",),
    "datasets": ("datasets",),
    "demo": ("demo",),
    "devices": ("devices V100-SXM2-16GB MI210",),
    "diff": (
        "diff resnet50 resnet101 --device A100 --batch 64 --dataset imagenet-1k --epochs 10 --max-time-increase 5%",
    ),
    "doctor": ("doctor",),
    "evaluate": ("evaluate measured.csv --by model",),
    "fit": ("fit measured.jsonl --out profile.json --no-save",),
    OF_SHARED_RUNS: ("fit --shared shared --no-save",),
    "forecast": ("forecast resnet50 --device V100 --batch 64 --gpus 4 --dataset imagenet-1k --epochs 90 --explain",),
    GENERATES: (
        "forecast llama3_1_8b --device H100 --mode generate --prompt 512 --response lognormal:mean=900,max=8192 "
        "--concurrency 256 --requests 1k",
    ),
    POST_TRAINS: (
        "forecast llama3_2_1b --device H100 --gpus 4 --algorithm grpo --prompts-per-step 64 --generations 8 "
        "--prompt 256 --response lognormal:mean=500,max=2048 --samples 7k",
    ),
    "history compare": ("history compare jobs.csv --target step_seconds --quick --with ridge,linear --split holdout",),
    "history fit": (FIT,),
    "history predict": (FIT, "history predict new_jobs.csv --model model.json"),
    "inspect": ("inspect small.toml --device T4 --batch 64",),
    "instances": ("instances",),
    "instances add": ("instances add lab --device 'RTX A6000' --gpus 4 --price 2.5/h",),
    "instances import": ("instances import aws.csv --read-on 2026-11-16",),
    "instances remove": ("instances add lab --device 'RTX A6000' --gpus 4 --price 2.5/h", "instances remove lab"),
    "instances update": ("instances update aws.csv --read-on 2026-11-16",),
    "jobs": ("jobs",),
    "jobs init": ("jobs init resnet18 --name new --device T4 --batch 32",),
    "jobs schema": ("jobs schema",),
    "links": ("links",),
    "models": ("models",),
    "oom": ("oom oom.log gpt2 --device 'RTX 3090' --batch 32",),
    "plan": ("plan resnet50 --dataset imagenet-1k --epochs 10 --batch 256 --clouds aws --gpus 1,8 --deadline 6h",),
    "runs": (TRACKED, "runs"),
    "runs NAME": (TRACKED, "runs first"),
    "scaling": ("scaling resnet50 --device V100 --batch 64 --gpus 1,4,16 --regime both --samples 1M --epochs 2",),
    "schedule cancel": (RUN, "schedule submit small later.json", "schedule cancel small later"),
    "schedule plan": ("schedule plan queue.toml --policy edf --draws 9",),
    "schedule policies": ("schedule policies",),
    "schedule queue": ("schedule queue queue.toml --policy edf --draws 9",),
    "schedule run": (RUN,),
    "schedule simulate": ("schedule simulate workload.json --policy fifo,edf",),
    "schedule submit": (RUN, "schedule submit small later.json"),
    "serve token add": ("serve token add ci",),
    "serve token end": ("serve token add ci", "serve token end ci"),
    "serve token list": ("serve token add ci", "serve token list"),
    "share": ("share 2it/s resnet50 --device A100 --batch 64",),
    "store export": (TRACKED, "store export all.jsonl"),
    "store import": (TRACKED, "store export all.jsonl", "store import all.jsonl --database other.db"),
    "store migrate": ("store migrate",),
    "store vacuum": (TRACKED, "store vacuum"),
    "topologies": ("topologies",),
    "track": ("track train.log --total 4000 --job imagenet --what-if 4xV100,1xA100",),
}

MEASURES = {"bench collectives", "bench loader", "bench models", "bench ops"}
"""Commands that take seconds to measure."""

# Values that are measured, drawn or the machine's own: placeholders stand for them in the files.
_CAMPAIGN = (
    *("machine", "seconds", "rows[].machine", "rows[].seconds", "rows[].low_seconds", "rows[].spread"),
    *("rows[].repeats", "rows[].details.date"),
)
_TIMED = ("rows[].details.steal_fraction?", "rows[].details.processor_seconds?")
MASKED: Mapping[str, tuple[str, ...]] = {
    "bench collectives": (*_CAMPAIGN, *_TIMED),
    "bench loader": (
        *_CAMPAIGN,
        *("rows[].details.samples", "rows[].details.variation", "rows[].details.idle_cpus?"),
        *("rows[].details.stored_bytes", "rows[].details.worker_seconds", "rows[].details.decode_seconds"),
        *("rows[].details.wait_seconds", "rows[].details.collate_seconds", "rows[].details.transfer_seconds"),
        "rows[].details.receive_seconds",
    ),
    "bench models": (*_CAMPAIGN, *_TIMED, "rows[].peak_bytes"),
    "bench ops": (*_CAMPAIGN, *_TIMED),
    "doctor": (
        *("python", "extras[].packages[].installed?", "extras[].packages[].fits", "extras[].install", "problems"),
        *("other_packages", "prices.stale", "models[].trained?", "models[].size_bytes", "blas_threads?"),
    ),
    "fit": ("device", "op_median_ape_left_out"),  # what is left of a nearly exact fit: rounding of the linear algebra
    "runs": ("runs[].key",),
    "share": ("shared.measured_in", "shared.epochcast"),
    "runs NAME": ("key",),
    "schedule run": ("[].at_seconds", "[0].engine_id", "[2].machine_dollars", "[2].dollars"),
    "schedule simulate": ("policies.fifo.decision_seconds_p99", "policies.edf.decision_seconds_p99"),
    "serve token add": ("token",),
    "serve token list": ("tokens[].added_at_seconds",),
    "store vacuum": ("bytes_before", "bytes_after"),
}


CAMPAIGN = 'models = ["mnist_cnn"]\nbatches = [4]\nseconds = "0.2s"\n'
CATALOGUE = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone\n"
    "p4d.24xlarge,A100,8,96,1152,20.5,7.5,us-east-1,us-east-1a\n"
    "trn1.2xlarge,Trainium,1,8,32,1.34,,us-east-1,us-east-1a\n"
)


SHARED_RUN = {
    **{"version": 1, "origin": "check", "seen": "typed", "device": "A100-SXM4-40GB"},
    **{"measured_in": "2026-11", "epochcast": "0.1.0"},
    "job": {"model": "resnet50", "batch": 64, "precision": "fp32"},
    "step_seconds": {"low": 0.09, "mid": 0.1, "high": 0.11, "coverage": 0.9},
}
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 23.65 GiB "
    "of which 1.10 GiB is free. Including non-PyTorch memory, this process has 22.55 GiB memory in use. Of the "
    "allocated memory 21.70 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated.\n"
)


def write_more(folder: Path) -> None:
    """What questions need that no compared answer is about: a campaign, measurements, a price list, jobs that run, an
    error.
    """
    (folder / "oom.log").write_text(OUT_OF_MEMORY, encoding="utf-8")
    (folder / "shared").mkdir()
    (folder / "shared" / "run.json").write_text(json.dumps(SHARED_RUN), encoding="utf-8")
    (folder / "campaign.toml").write_text(CAMPAIGN, encoding="utf-8")
    (folder / "aws.csv").write_text(CATALOGUE, encoding="utf-8")
    with Appender(folder / "measured.jsonl") as out:
        for row in [*op_rows(40), *collective_rows()]:
            out.append(row)
    kinds = [{"name": "lab", "device": "T4", "gpus": 1, "dollars_per_hour": 1.0, "quota": 1}]
    for name in ("small", "later"):
        job = {"id": name, "deadline_seconds": 600, "run_seconds": {"T4": {"1": 20}}, "command": ["true"]}
        queue = {"nodes": 1, "node_types": kinds, "jobs": [job]}
        (folder / f"{name}.json").write_text(json.dumps(queue), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of the questions; the clock, the user's own files and the largest op are fixed."""
    write_material(tmp_path)
    write_more(tmp_path)
    for name, value in FIXED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("epochcast.measure.bench.ops_bench.limits_on", lambda _device: OpLimits(1e9, 2**26))
    time.tzset()
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


def shortened(value: Any) -> Any:
    """The same JSON with only the beginning of long lists, so that a person can read the file."""
    match value:
        case dict():
            return {key: shortened(inner) for key, inner in value.items()}
        case list():
            shown = value if len(value) <= LONGEST_LIST else value[:SHOWN_OF_LONGER]
            return [shortened(inner) for inner in shown]
    return value


def misshapen(command: str, answer: Any) -> Iterator[str]:
    """Where an answer, or one of several lines, differs from the schema of its command."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = answer if command == IS_A_SCHEMA else answer_schema(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    for line in answer if isinstance(answer, list) else [answer] if command != IS_A_SCHEMA else []:
        for error in jsonschema.Draft202012Validator(schema).iter_errors(line):
            yield f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for key in line.keys() - schema["properties"].keys():
            yield f"{key} is not in the schema"


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] if name in MEASURES else []) for name in KEPT]
)
def test_the_answer_is_the_kept_one(command: str, folder: Path, request: pytest.FixtureRequest) -> None:
    answers = [ask(shlex.split(line), folder) for line in KEPT[command]]
    assert all(answer.json is not None for answer in answers), [answer.message for answer in answers]
    last = answers[-1]
    assert not list(misshapen(command, last.json))
    answer = shortened(masked(last.json, MASKED.get(command, ())))
    now = {"asked": KEPT[command][-1], "exit_code": last.exit_code, "answer": answer}
    path = GOLDEN / f"{command.replace(' ', '_')}.json"
    if request.config.getoption("--renew"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    differences = compare(json.loads(path.read_text(encoding="utf-8")), now, tolerance=TOLERANCE)
    assert differences.is_equal and not differences.added, (
        f"{path.name}: moved {differences.moved}, missing {differences.missing}, new {differences.added}; "
        "if right: pytest --renew"
    )


def commands_with_json() -> Iterator[str]:
    for name in command_line.COMMANDS:
        import_module(f"epochcast.surfaces.cli.{name}_command")
    yield from _with_json(typer.main.get_command(command_line.app), ())


def _with_json(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_json(inner, (*path, name))
    if any("--json" in parameter.opts for parameter in command.params):
        yield " ".join(path)


def test_every_command_with_json_has_a_kept_answer_and_a_schema() -> None:
    kept = {path.stem.replace("_", " ") for path in GOLDEN.glob("*.json")}
    variants = {OF_ONE_RUN, OF_SHARED_RUNS, GENERATES, POST_TRAINS, SPLITS}
    assert kept == set(KEPT) == {*commands_with_json(), *variants} == {*ANSWERS, IS_A_SCHEMA}
    assert MASKED.keys() <= KEPT.keys()
