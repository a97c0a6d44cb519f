"""The campaign file of `epochcast bench models`, in TOML: every list is one axis, and all combinations are measured.

    models = ["resnet18", "mnist_cnn", "file.py:factory"]
    batches = [4, 16]
    optimizers = ["sgd", "adam"]        # default: sgd
    precisions = ["fp32"]               # default: fp32
    modes = ["training", "forward"]     # training, forward_backward, forward, loader; default: training
    backend = "torch"                   # or keras
    data = "synthetic"                  # or file.py:make_loader, which gives (inputs, targets)
    repetitions = 2                     # default: 1
    seconds = "10s"                     # the most one configuration may take
    inputs = { r3d_18 = "3x4x56x56" }   # another input shape than the default

    [[runs]]                            # further sets; keys they leave out are as above
    models = ["vgg11"]
    batches = [2]

Repetitions are the outermost loop, so that those of one configuration are spread over the whole campaign.
"""

from collections.abc import Callable, Mapping
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from epochcast.base.bounds import check_questions
from epochcast.base.documents import parse_toml, read_text
from epochcast.describe.graph.recipe import MODES, Recipe
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.measure.bench.campaign import BenchQuestion
from epochcast.measure.bench.models_bench import BACKENDS, LOADER_MODE, STEP_SECONDS, SYNTHETIC, question_of
from epochcast.units import parse_seconds, parse_shape

MOST_BYTES = 1_000_000
"""A larger file is no campaign."""
KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "models": ("a list of names", lambda v: _is_list(v, str) and bool(v)),
    "batches": ("a list of whole numbers", lambda v: _is_list(v, int) and bool(v)),
    "optimizers": ("a list of names", lambda v: _is_list(v, str) and bool(v)),
    "precisions": ("a list of names", lambda v: _is_list(v, str) and bool(v)),
    "modes": ("a list of names", lambda v: _is_list(v, str) and bool(v)),
    "backend": ("text", lambda v: isinstance(v, str)),
    "data": ("text", lambda v: isinstance(v, str)),
    "repetitions": (
        "a whole number of at least 1",
        lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1,
    ),
    "seconds": ("a time like '10s'", lambda v: isinstance(v, str)),
    "inputs": ("a table of shapes by model", lambda v: isinstance(v, dict) and _is_list(list(v.values()), str)),
}
DEFAULTS: Mapping[str, Any] = {
    "optimizers": ["sgd"],
    "precisions": ["fp32"],
    "modes": ["training"],
    "backend": "torch",
    "data": SYNTHETIC,
    "repetitions": 1,
    "seconds": f"{STEP_SECONDS:g}s",
    "inputs": {},
}


def read_campaign(path: Path, device: str) -> list[BenchQuestion]:
    """Every configuration of a campaign file, as questions."""
    if not path.is_file():
        raise BadInput(f"no campaign file {str(path)!r}")
    document = parse_toml(read_text(path, MOST_BYTES), path.name)
    runs = document.pop("runs", None)
    if runs is not None and not _is_list(runs, dict):
        raise BadInput(f"{path.name}: runs must be [[runs]] tables")
    _check(document, path.name)
    sets = [{**DEFAULTS, **document}] if "models" in document or not runs else []
    for number, run in enumerate(runs or (), start=1):
        _check(run, f"{path.name}, run {number}")
        sets.append({**DEFAULTS, **document, **run})
    try:
        return _questions(sets, device)
    except EpochcastError as problem:
        problem.args = (f"{path.name}: {problem}",)
        raise


def _check(table: Mapping[str, Any], location: str) -> None:
    for key, value in table.items():
        if key not in KEYS:
            raise BadInput(f"{location}: {UnknownName('key', key, (*KEYS, 'runs'))}")
        description, is_valid = KEYS[key]
        if not is_valid(value):
            raise BadInput(f"{location}: {key} must be {description}, got {value!r}")


def _is_list(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in value)


def _questions(sets: list[dict[str, Any]], device: str) -> list[BenchQuestion]:
    questions: dict[str, BenchQuestion] = {}
    check_questions(sum(_size(table) for table in sets))
    most_repetitions = max(int(table["repetitions"]) for table in sets)
    for repetition, table in product(range(most_repetitions), sets):
        if repetition < table["repetitions"]:
            for question in _combinations(table, device, repetition):
                questions.setdefault(question.key, question)
    return list(questions.values())


def _size(table: Mapping[str, Any]) -> int:
    """How many questions a set comes to."""
    axes = (table.get(key, ()) for key in ("models", "batches", "optimizers", "precisions", "modes"))
    return prod((*map(len, axes), int(table["repetitions"])))


def _combinations(table: Mapping[str, Any], device: str, repetition: int) -> list[BenchQuestion]:
    for key in ("models", "batches"):
        if key not in table:
            raise BadInput(f"{key} is missing")
    if table["backend"] not in BACKENDS:
        raise UnknownName("backend", table["backend"], BACKENDS)
    unknown_models = sorted(set(table["inputs"]) - set(table["models"]))
    if unknown_models:
        raise UnknownName("model of `inputs`", unknown_models[0], table["models"])
    for text in table["inputs"].values():
        parse_shape(text)
    axes = (table[key] for key in ("models", "batches", "optimizers", "precisions", "modes"))
    return [
        question_of(
            model,
            Recipe(batch, optimizer, precision, "training" if mode == LOADER_MODE else _mode(mode)),
            device=device,
            backend=table["backend"],
            input_text=table["inputs"].get(model, ""),
            data=table["data"],
            only_loader=mode == LOADER_MODE,
            repetition=repetition,
            limit_seconds=parse_seconds(table["seconds"]),
        )
        for model, batch, optimizer, precision, mode in product(*axes)
    ]


def _mode(mode: str) -> str:
    if mode not in MODES:
        raise UnknownName("mode", mode, (*MODES, LOADER_MODE))
    return mode
