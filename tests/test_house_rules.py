"""The mechanical rules of CONTRIBUTING.md, checked on the source tree. Layers are import-linter's, types are mypy's."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import HERE, MARKED
from tests.every import every

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "epochcast"
SHIPPED = sorted(SRC.rglob("*.py"))
MODULES = [*SHIPPED, *sorted((ROOT / "training").rglob("*.py"))]
TABLES = sorted(SRC.rglob("*.toml"))

MOST_LINES = 450
NUMBER = re.compile(r"\b(int|float|Interval)\b")
UNITLESS = re.compile(r"(^|_)(time|latency|duration|bandwidth|memory|cost|price|speed)$")
SCALED = re.compile(r"_(ms|us|ns|minutes|hours|days|kb|mb|gb|tb|kib|mib|gib|gflops|tflops|gbps|mhz|ghz|percent)$")
RATE = re.compile(r"_per_(hour|gib)$")  # how prices are quoted: dollars_per_hour
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
UNSAFE_CALLS = {"eval", "exec"}
KEEPS_OTHERWISE = {
    "errors.py": "pickles an exception with its notes",
    "predict/forecast/forecast.py": "pickles a forecast without its details",
    "describe/capture/torch/meta_modules.py": "copy.deepcopy wants ids; the tensors are alive beside them",
    "describe/capture/torch/aten_recorder.py": "modules may be unhashable; the recorded one stays alive",
}
BESIDE_THE_PACKAGE = {"training", "studies", "benchmarks", "fuzz", "tests"}
NAMELESS = {"util", "utils", "helper", "helpers", "misc"}

every_module = every("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
every_shipped_module = every("module", SHIPPED, ids=lambda path: str(path.relative_to(SRC)))
every_table = every("table", TABLES, ids=lambda path: str(path.relative_to(SRC)))


@cache
def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def annotated_names(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, name, annotation) of every annotated variable, field, parameter and function result."""
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name)):
                yield node.lineno, name, ast.unparse(node.annotation)
            case ast.arg(annotation=ast.expr() as annotation):
                yield node.lineno, node.arg, ast.unparse(annotation)
            case ast.FunctionDef(returns=ast.expr() as returns) | ast.AsyncFunctionDef(returns=ast.expr() as returns):
                yield node.lineno, node.name, ast.unparse(returns)


def unit_problems(tree: ast.AST) -> Iterator[str]:
    """Numbers whose names lack a unit, or have one that is no base unit."""
    for line, name, annotation in annotated_names(tree):
        if not NUMBER.search(annotation) or "Callable" in annotation or RATE.search(name):
            continue
        if UNITLESS.search(name):
            yield f"line {line}: {name} has no unit"
        if SCALED.search(name):
            yield f"line {line}: {name} is not in a base unit"


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of every call of a plain name, or of a builtin by its full name."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="builtins"), attr=name)):
                yield node.lineno, name


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, top package) of every absolute import."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name.partition(".")[0]) for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield node.lineno, name.partition(".")[0]


def unsafe(tree: ast.AST) -> Iterator[str]:
    """Ways to run what a file or a user says: pickles, eval, exec."""
    yield from (f"line {line}: imports {name}" for line, name in imports(tree) if name in UNSAFE_MODULES)
    yield from (f"line {line}: calls {name}" for line, name in calls(tree) if name in UNSAFE_CALLS)


def hidden_keeping(tree: ast.AST) -> Iterator[str]:
    """Ways to keep an answer other than in a `Cache`: inside `__dict__`, or under an id that another object may get."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="__dict__"):
                yield f"line {node.lineno}: looks into __dict__"
            case ast.Call(func=ast.Name(id="id")):
                yield f"line {node.lineno}: calls id"
            case ast.ClassDef(body=body) if any("frozen=True" in ast.unparse(d) for d in node.decorator_list):
                members = (member for member in body if isinstance(member, ast.FunctionDef))
                names = {m.name for m in members if any("cached_property" in ast.unparse(d) for d in m.decorator_list)}
                yield from (f"line {node.lineno}: {name} of a frozen thing is a cached_property" for name in names)


def rows(table: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a shipped table: `[name]`, `[[name]]`, or `[section.name]` where a section holds only rows.

    A file with a `source` at its top is one row.
    """
    if "source" in table:
        yield "the file", table
        return
    for name, value in table.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield from ((f"{name}[{index}]", row) for index, row in enumerate(value))
        elif isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
            yield from ((f"{name}.{inner}", row) for inner, row in value.items())
        elif isinstance(value, dict):
            yield name, value


def has_numbers(value: object) -> bool:
    """Whether a number stands anywhere inside; a list of aliases has none and needs no source."""
    match value:
        case dict():
            return any(has_numbers(inner) for inner in value.values())
        case list():
            return any(has_numbers(inner) for inner in value)
        case bool():
            return False
        case _:
            return isinstance(value, int | float)


def sourceless(table: dict[str, Any]) -> list[str]:
    """Names of the rows that do not say where their numbers come from."""
    return [name for name, row in rows(table) if has_numbers(row) and not str(row.get("source", "")).strip()]


@every_module
def test_numbers_carry_base_units(module: Path) -> None:
    assert list(unit_problems(parsed(module))) == []


@every_module
def test_a_module_is_short_enough_to_read(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


@every_module
def test_a_file_name_is_an_idea(module: Path) -> None:
    assert not NAMELESS.intersection(module.relative_to(ROOT).with_suffix("").parts)


@every_module
def test_the_library_does_not_print(module: Path) -> None:
    if module.is_relative_to(SRC / "surfaces" / "cli"):
        return
    tree = parsed(module)
    assert [f"line {line}" for line, name in calls(tree) if name == "print"] == []


@every_shipped_module
def test_what_ships_imports_nothing_that_does_not(module: Path) -> None:
    tree = parsed(module)
    assert [f"line {line}: {name}" for line, name in imports(tree) if name in BESIDE_THE_PACKAGE] == []


@every_module
def test_nothing_runs_what_a_file_says(module: Path) -> None:
    assert list(unsafe(parsed(module))) == []


@every_shipped_module
def test_answers_are_kept_in_caches(module: Path) -> None:
    if module.relative_to(SRC).as_posix() not in KEEPS_OTHERWISE:
        assert list(hidden_keeping(parsed(module))) == []


@every_table
def test_every_shipped_row_names_its_source(table: Path) -> None:
    assert sourceless(tomllib.loads(table.read_text(encoding="utf-8"))) == []


def test_marks_are_given_to_files_that_exist() -> None:
    places = [place for places in MARKED.values() for place in places]
    assert [place for place in places if not (HERE / place).exists()] == []


# The rules themselves, on small wrong and right examples.


@pytest.mark.parametrize(
    "wrong",
    [
        "latency: float = 5",
        "def f(launch_us: int) -> None: ...",
        "async def f(*, memory: float | None) -> None: ...",
        "def step_time() -> Interval: ...",
        "self.bandwidth: float = 1",
        "size_gb: dict[str, float]",
    ],
)
def test_a_number_without_a_base_unit_is_found(wrong: str) -> None:
    assert len(list(unit_problems(ast.parse(wrong)))) == 1


@pytest.mark.parametrize(
    "right",
    [
        "launch_seconds: float",
        "price_dollars_per_hour: float",
        "time: str",
        "cost: Callable[[float], float]",
        "def memory() -> Memory: ...",
    ],
)
def test_a_number_with_a_base_unit_passes(right: str) -> None:
    assert list(unit_problems(ast.parse(right))) == []


@pytest.mark.parametrize("wrong", ["import pickle", "from joblib.pool import f", "eval('1')", "builtins.exec('1')"])
def test_an_unsafe_call_or_import_is_found(wrong: str) -> None:
    assert len(list(unsafe(ast.parse(wrong)))) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        "trace.__dict__['kept'] = 1",
        "kept = trace.__dict__.setdefault('kept', {})",
        "key = id(trace)",
        "@dataclass(frozen=True)\nclass A:\n    @cached_property\n    def b(self) -> int: ...",
    ],
)
def test_an_answer_kept_outside_a_cache_is_found(wrong: str) -> None:
    assert len(list(hidden_keeping(ast.parse(wrong)))) == 1


def test_a_cached_property_of_what_changes_passes() -> None:
    assert list(hidden_keeping(ast.parse("class A:\n    @cached_property\n    def b(self) -> int: ..."))) == []


def test_a_method_called_eval_is_safe() -> None:
    assert list(unsafe(ast.parse("model.eval()"))) == []


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ({"V100": {"source": "data sheet"}, "A100": {"watts": 400}}, ["A100"]),
        ({"device": [{"watts": 1, "source": "x"}, {"watts": 1.5, "source": " "}]}, ["device[1]"]),
        ({"links": {"nvlink": {"source": "x"}, "pcie": {"lanes": 16}}}, ["links.pcie"]),
        ({"source": "paper", "layers": {"conv": {"stride": 2}}}, []),
        ({"format": 1}, []),
        ({"family": {"V100": ["V100-SXM2-16GB"]}}, []),
        ({"peaks": {"fp32": [1e12]}}, ["peaks"]),
    ],
)
def test_a_row_without_a_source_is_found(table: dict[str, Any], found: list[str]) -> None:
    assert sourceless(table) == found
