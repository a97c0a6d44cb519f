"""One answer of every command, kept in tests/golden: its keys, verdicts and numbers, not the words of its notes.

A command that is missing here is named in `NOT_KEPT` with the reason. After a change on purpose: `pytest --renew`.
"""

import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answers.asking import FIXED, ask
from benchmarks.answers.comparing import compare
from benchmarks.answers.material import write_material

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
TOLERANCE = 1e-6
LONGEST_LIST = 12
SHOWN_OF_LONGER = 3

FIT = "history fit jobs.csv --target step_seconds --with ridge --out model.json"
TRACKED = "track train.log --total 4000 --job imagenet --run first"

# The last line is the question; those before it prepare it.
KEPT: Mapping[str, tuple[str, ...]] = {
    "advise": ("advise resnet50 --device V100 --cpus 8 --loader-seconds 8ms",),
    "calibrate": ("calibrate --device A100 --gemm-seconds bf16:8192x8192x8192=4.6ms",),
    "datasets": ("datasets",),
    "demo": ("demo",),
    "devices": ("devices V100-SXM2-16GB MI210",),
    "diff": (
        "diff resnet50 resnet101 --device A100 --batch 64 --dataset imagenet-1k --epochs 10 --max-time-increase 5%",
    ),
    "evaluate": ("evaluate measured.csv --by model",),
    "forecast": ("forecast resnet50 --device V100 --batch 64 --gpus 4 --dataset imagenet-1k --epochs 90 --explain",),
    "history compare": ("history compare jobs.csv --target step_seconds --quick --with ridge,linear --split holdout",),
    "history fit": (FIT,),
    "history predict": (FIT, "history predict new_jobs.csv --model model.json"),
    "inspect": ("inspect small.toml --device T4 --batch 64",),
    "instances": ("instances",),
    "instances add": ("instances add lab --device 'RTX A6000' --gpus 4 --price 2.5/h",),
    "instances remove": ("instances add lab --device 'RTX A6000' --gpus 4 --price 2.5/h", "instances remove lab"),
    "jobs": ("jobs",),
    "jobs init": ("jobs init resnet18 --name new --device T4 --batch 32",),
    "jobs schema": ("jobs schema",),
    "links": ("links",),
    "models": ("models",),
    "plan": ("plan resnet50 --dataset imagenet-1k --epochs 10 --batch 256 --clouds aws --gpus 1,8 --deadline 6h",),
    "runs": (TRACKED, "runs"),
    "scaling": ("scaling resnet50 --device V100 --batch 64 --gpus 1,4,16 --regime both --samples 1M --epochs 2",),
    "schedule plan": ("schedule plan queue.toml --policy edf --draws 9",),
    "schedule policies": ("schedule policies",),
    "schedule queue": ("schedule queue queue.toml --policy edf --draws 9",),
    "schedule simulate": ("schedule simulate workload.json --policy fifo,edf",),
    "store migrate": ("store migrate",),
    "topologies": ("topologies",),
    "track": ("track train.log --total 4000 --job imagenet --what-if 4xV100,1xA100",),
}

NOT_KEPT: Mapping[str, str] = {
    "bench collectives": "measures the machine",
    "bench loader": "measures the machine",
    "bench models": "measures the machine",
    "bench ops": "measures the machine",
    "doctor": "describes the installation",
    "fit": "needs measurements of the machine",
    "instances import": "needs the catalogue files of another project",
    "schedule cancel": "needs a queue that is being run",
    "schedule run": "runs programs",
    "schedule submit": "needs a queue that is being run",
    "serve": "serves until it is stopped",
    "serve token add": "answers with a secret drawn at random",
    "serve token end": "needs a secret drawn at random",
    "serve token list": "needs a secret drawn at random",
    "store export": "writes rows, not an answer",
    "store import": "reads rows, has no answer of its own",
    "store vacuum": "depends on the age of rows",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the files of the questions; the clock and the user's own files are fixed."""
    write_material(tmp_path)
    for name, value in FIXED.items():
        monkeypatch.setenv(name, value)
    time.tzset()
    yield tmp_path
    monkeypatch.undo()
    time.tzset()


RANDOM = {"key"}
"""Keys whose values are drawn anew for every run."""


def shortened(value: Any) -> Any:
    """The same JSON with only the beginning of long lists, so that a person can read the file."""
    match value:
        case dict():
            return {key: shortened(inner) for key, inner in value.items() if key not in RANDOM}
        case list():
            shown = value if len(value) <= LONGEST_LIST else value[:SHOWN_OF_LONGER]
            return [shortened(inner) for inner in shown]
    return value


@pytest.mark.parametrize("command", KEPT)
def test_the_answer_is_the_kept_one(command: str, folder: Path, request: pytest.FixtureRequest) -> None:
    answers = [ask(shlex.split(line), folder) for line in KEPT[command]]
    assert all(answer.json is not None for answer in answers), [answer.message for answer in answers]
    now = {"asked": KEPT[command][-1], "exit_code": answers[-1].exit_code, "answer": shortened(answers[-1].json)}
    path = GOLDEN / f"{command.replace(' ', '_')}.json"
    if request.config.getoption("--renew"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found = compare(json.loads(path.read_text(encoding="utf-8")), now, tolerance=TOLERANCE)
    assert found.is_equal and not found.added, (
        f"{path.name}: moved {found.moved}, missing {found.missing}, new {found.added}; if right: pytest --renew"
    )


def test_every_command_is_kept_or_excused() -> None:
    documented = re.findall(
        r"^## epochcast (.+)$", (ROOT / "docs" / "cli.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert not set(documented) - KEPT.keys() - NOT_KEPT.keys()
    assert not KEPT.keys() & NOT_KEPT.keys()


def test_no_kept_answer_is_left_over() -> None:
    kept = {path.stem.replace("_", " ") for path in GOLDEN.glob("*.json")}
    assert kept == set(KEPT)
