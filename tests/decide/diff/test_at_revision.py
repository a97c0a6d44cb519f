"""The user's own Python at a revision, in a process as the command line starts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import git

pytest.importorskip("torch")

NET = """
import torch
WIDTH = {width}
def model():
    return torch.nn.Sequential(torch.nn.Conv2d(3, WIDTH, 3), torch.nn.Flatten()), torch.zeros(1, 3, 8, 8)
"""
HOOK = """
import importlib.util, sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "ours":
            return importlib.util.spec_from_file_location(
                name, {folder!r} + "/__init__.py", submodule_search_locations=[{folder!r}])
sys.meta_path.insert(0, Finder)
"""


def compared(folder: Path, imports: Path) -> "subprocess.CompletedProcess[str]":
    """`ours.net:model` now and at HEAD, with another folder to import from."""
    command = [sys.executable, "-m", "epochcast", "diff", "ours.net:model", "--base", "HEAD", "--device", "A100"]
    paths = os.pathsep.join([*(path for path in sys.path if path), str(imports)])
    environment = {**os.environ, "PYTHONPATH": paths, "EPOCHCAST_CACHE": "off"}
    options = [*command, "--batch", "8", "--json"]
    return subprocess.run(options, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def package(repository: Path) -> Path:
    """A package in src/ whose network is twice as wide in the working tree."""
    folder = repository / "src" / "ours"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "net.py").write_text(NET.format(width=32))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "package")
    (folder / "net.py").write_text(NET.format(width=64))
    return folder


def test_a_package_of_the_working_tree_is_imported_from_the_revision(repository: Path, package: Path) -> None:
    ran = compared(repository, package.parent)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["change"]["parameters"] == 2


def test_code_that_an_import_hook_finds_in_the_working_tree_is_refused(
    repository: Path, package: Path, tmp_path: Path
) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(HOOK.format(folder=str(package)))
    ran = compared(repository, hooks)
    assert ran.returncode == 2
    assert "is imported from the working tree" in ran.stderr
