"""The workflows of docs/how-to/diff.md, step by step, in a repository with a branch to merge."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.decide.diff.conftest import git, network, repository

__all__ = ["repository"]

ROOT = Path(__file__).parents[1]
RECIPES = [
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/how-to/diff.md").read_text(), re.S)
]
GITHUB, GITLAB, WITH_LOCK, PRE_COMMIT = RECIPES


def steps_of(recipe: dict[str, Any]) -> list[str]:
    """The commands of a workflow in order."""
    if "jobs" in recipe:
        return [step["run"] for step in recipe["jobs"]["forecast"]["steps"] if "run" in step]
    script: list[str] = recipe["training-cost"]["script"]
    return script


@pytest.fixture
def runner(repository: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a runner: our epochcast; pip and gh write down what they are asked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, body in (
        ("epochcast", f'exec "{sys.executable}" -m epochcast "$@"'),
        ("pip", f'echo "pip $*" >> "{tmp_path}/asked"'),
        ("gh", f'echo "gh $*" >> "{tmp_path}/asked"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    git(repository, "clone", "-q", "--bare", str(repository), str(tmp_path / "origin.git"))
    git(repository, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(repository, "fetch", "-q", "origin")
    git(repository, "checkout", "-q", "-b", "change")
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "EPOCHCAST": "epochcast-0.2.0.whl",
        "GITHUB_BASE_REF": "main",
        "GITHUB_HEAD_REF": "change",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }


def codes(recipe: dict[str, Any], folder: Path, environment: dict[str, str]) -> list[int]:
    """What every step ends with, as `if: always()` runs them."""
    return [
        subprocess.run(["bash", "-ec", step], cwd=folder, env=environment, capture_output=True, check=False).returncode
        for step in steps_of(recipe)
    ]


def test_the_workflow_of_github_stops_a_dearer_change_and_comments_it(
    repository: Path, runner: dict[str, str], tmp_path: Path
) -> None:
    (repository / "net.toml").write_text(network(32, 128))
    git(repository, "commit", "-qam", "wider")
    assert codes(GITHUB, repository, runner) == [0, 3, 0, 0]
    assert "❌ **time +" in (tmp_path / "summary.md").read_text()
    assert "gh pr comment change" in (tmp_path / "asked").read_text()


def test_the_workflow_of_gitlab_lets_an_equal_change_pass(repository: Path, runner: dict[str, str]) -> None:
    assert codes(GITLAB, repository, runner) == [0, 0, 0]
    assert "✅ within the limits" in (repository / "comment.md").read_text()


def test_the_workflow_with_a_lock_needs_no_base(repository: Path, runner: dict[str, str]) -> None:
    accepted = subprocess.run(["epochcast", "diff", "--lock", "--accept"], cwd=repository, env=runner, check=False)
    assert accepted.returncode == 0
    (repository / "net.toml").write_text(network(32, 128))
    assert codes(WITH_LOCK, repository, runner) == [0, 3]


def test_the_hook_of_pre_commit_is_the_one_that_the_page_names(repository: Path, runner: dict[str, str]) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (asked,) = PRE_COMMIT["repos"][0]["hooks"]
    assert asked["id"] == hook["id"]
    assert not hook["pass_filenames"]
    command = [*hook["entry"].split(), *asked["args"]]
    assert subprocess.run([*hook["entry"].split(), "--accept"], cwd=repository, env=runner, check=False).returncode == 0
    assert subprocess.run(command, cwd=repository, env=runner, check=False).returncode == 0
