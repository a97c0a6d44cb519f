"""The package as users get it: wheel and sdist in empty environments, and what its metadata promise.

Dependencies come from the package index that pip is set up for; where none can be reached, installing is skipped.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import epochcast

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "epochcast"
MOST_CORE_BYTES = 150e6
PACKAGED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
UNREACHABLE = re.compile("No matching distribution|Could not find a version|Failed to fetch|error sending request")
NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Built:
    """What is released."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Both files; the wheel is made from the sdist, so that the sdist is complete."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT))
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def _run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env={**clean, **(environment or {})}, check=False)
    if done.returncode and UNREACHABLE.search(done.stdout + done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _check_installed(program: Path, libraries: Path) -> None:
    assert _run(str(program), "--version") == f"epochcast {epochcast.__version__}\n"
    assert json.loads(_run(str(program), "doctor", "--json"))["version"] == epochcast.__version__
    assert "resnet50 on V100" in _run(str(program), "demo")
    files = [path for path in libraries.rglob("*") if path.is_file() and path.relative_to(libraries).parts[0] != "pip"]
    assert any(path.name == "py.typed" and path.parent.name == "epochcast" for path in files)
    assert sum(path.stat().st_size for path in files) < MOST_CORE_BYTES


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_pip_installs_into_an_empty_environment(built: Built, kind: str, tmp_path: Path) -> None:
    venv.create(tmp_path, with_pip=True)
    _run(str(tmp_path / "bin" / "python"), "-m", "pip", "install", "--quiet", str(getattr(built, kind)))
    (libraries,) = (tmp_path / "lib").glob("python*/site-packages")
    _check_installed(tmp_path / "bin" / "epochcast", libraries)


def test_uv_installs_the_checkout_as_a_tool(tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    folders = {
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        **({"UV_DEFAULT_INDEX": index} if index else {}),
    }
    _run(str(uv), "tool", "install", "--python", sys.executable, str(ROOT), environment=folders)
    (libraries,) = (tmp_path / "tools" / "epochcast" / "lib").glob("python*/site-packages")
    _check_installed(tmp_path / "bin" / "epochcast", libraries)


def test_the_demo_needs_the_core_alone() -> None:
    """As in an environment without extras: modules of other packages are not even looked for."""
    others = {"torch", "keras", "transformers", "scipy", "polars", "pandas", "sqlalchemy", "fastapi", "altair", "yaml"}
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(others)}))\n"
        "from epochcast.surfaces.cli.command_line import run\n"
        "sys.exit(run(['demo']))"
    )
    assert "resnet50 on V100" in _run(sys.executable, "-c", code, environment={"PYTHONPATH": str(ROOT / "src")})


def test_the_wheel_has_every_file_of_the_package(built: Built) -> None:
    packed = set(zipfile.ZipFile(built.wheel).namelist())
    tracked = _run("git", "-C", str(ROOT), "ls-files", "src/epochcast").split()
    assert [name for name in tracked if name.removeprefix("src/") not in packed] == []
    assert {Path(name).name for name in packed} >= {"py.typed", "LICENSE", "NOTICE"}


def test_the_sdist_has_what_a_packager_needs(built: Built) -> None:
    with tarfile.open(built.sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert names >= {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "tests/conftest.py", "docs/index.md"}


def test_one_version_is_named_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    released = re.search(r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released is not None
    assert {citation["version"], released[1]} == {epochcast.__version__}


def _asked_extras(module: Path) -> Iterator[tuple[str, str | None]]:
    """(extra, package) of every `MissingExtra("extra", "package")`; None for a package that is computed."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="MissingExtra"), args=[ast.Constant(value=str(extra)), *rest]):
                named = rest[0].value if rest and isinstance(rest[0], ast.Constant) else None
                yield extra, named if isinstance(named, str) else None


def test_a_message_about_an_extra_names_one_that_has_the_package() -> None:
    extras = {
        extra: {match[0].lower() for line in lines if (match := NAME.match(line))}
        for extra, lines in PACKAGED["optional-dependencies"].items()
    }
    asked = [(path, *pair) for path in sorted(SRC.rglob("*.py")) for pair in _asked_extras(path)]
    assert len(asked) > 20
    wrong = [
        f"{path.relative_to(SRC)}: {extra} {package}"
        for path, extra, package in asked
        if extra not in extras or (package is not None and package.lower() not in extras[extra])
    ]
    assert wrong == []


def test_the_workflow_runs_what_a_developer_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["steps"][-1] == {"run": ".ci/run"}
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
