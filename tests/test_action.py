"""The composite action and the workflows of `epochcast diff --init`: their steps are run, in a repository with a
change, against a server that answers as GitHub does.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.decide.diff.conftest import git, network, repository
from tests.surfaces.integrations.test_pull_request import Comments, comments, github

from epochcast.decide.diff.workflow import GITHUB, GITLAB, WORKFLOWS
from epochcast.surfaces.render.diff_markdown import MARK

__all__ = ["comments", "repository"]

ACTION = yaml.safe_load((Path(__file__).parents[1] / "action.yml").read_text(encoding="utf-8"))


def programs(folder: Path) -> str:
    """A PATH with `epochcast` and `python` of this installation."""
    folder.mkdir(exist_ok=True)
    command = f'exec "{sys.executable}" -c "import sys; from epochcast.surfaces.cli import main; main()" "$@"'
    for name, text in (("epochcast", command), ("python", f'exec "{sys.executable}" "$@"')):
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def expanded(text: str, values: Mapping[str, str]) -> str:
    """What GitHub makes of `${{ name }}`."""
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda match: values[match[1]], text)


def run_action(given: Mapping[str, str], environment: Mapping[str, str], folder: Path) -> int:
    """The steps of the action, as a runner runs them; the code of the first that fails."""
    names = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()} | dict(given)
    values = {f"inputs.{name}": value for name, value in names.items()} | {"github.token": "secret"}
    values = {name: expanded(value, values) for name, value in values.items()}
    for step in ACTION["runs"]["steps"]:
        condition = step.get("if")
        if condition is not None:
            name, wanted = re.fullmatch(r"\$\{\{ (\S+) == '(.*)' \}\}", condition).groups()  # type: ignore[union-attr]
            if values[name] != wanted:
                continue
        output = folder / "output"
        output.write_text("")
        own = {name: expanded(str(value), values) for name, value in step.get("env", {}).items()}
        variables = {**os.environ, **environment, **own, "GITHUB_OUTPUT": str(output)}
        ran = subprocess.run(["bash", "-e", "-c", step["run"]], env=variables, check=False)
        if ran.returncode:
            return ran.returncode
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{key}"] = value
    return 0


@pytest.fixture
def changed(repository: Path) -> Path:
    """A branch that widens the network."""
    git(repository, "branch", "origin/main")
    (repository / "net.toml").write_text(network(32, 128))
    git(repository, "commit", "-q", "-am", "wider")
    return repository


def runner(comments: Comments, folder: Path) -> dict[str, str]:
    return {
        **github(comments, folder),
        "GITHUB_BASE_REF": "main",
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "PATH": programs(folder / "bin"),
    }


def test_the_action_keeps_one_comment_and_fails_beyond_a_limit(
    changed: Path, comments: Comments, tmp_path: Path
) -> None:
    environment = runner(comments, tmp_path)
    given = {"install": "", "references": "job:small", "options": "--max-time-increase 1%"}
    assert run_action(given, environment, tmp_path) == 3
    assert run_action({**given, "options": "--max-time-increase 900%"}, environment, tmp_path) == 0
    ours = [text for text in comments.kept.values() if text.startswith(MARK)]
    assert len(ours) == 1 and "within the limits" in ours[0]
    assert (tmp_path / "summary.md").read_text().count(MARK) == 2
    assert json.loads((changed / "epochcast-badge.json").read_text())["label"] == "training"


def test_the_action_is_quiet_where_nothing_changes(repository: Path, comments: Comments, tmp_path: Path) -> None:
    git(repository, "branch", "origin/main")
    assert run_action({"install": "", "references": "job:small"}, runner(comments, tmp_path), tmp_path) == 0
    assert list(comments.kept.values()) == ["looks good"]


def test_the_workflow_of_github_uses_inputs_that_the_action_has() -> None:
    workflow: dict[str, Any] = yaml.safe_load(WORKFLOWS[GITHUB][1])
    (step,) = [step for step in workflow["jobs"]["forecast"]["steps"] if "epochcast" in step["uses"]]
    assert step["uses"].endswith("/epochcast@v1")
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert workflow["permissions"]["pull-requests"] == "write"


def test_the_template_of_gitlab_runs(changed: Path, comments: Comments, tmp_path: Path) -> None:
    template = yaml.safe_load(WORKFLOWS[GITLAB][1])["training-cost"]
    upstream = tmp_path / "upstream"
    shutil.copytree(changed / ".git", upstream / ".git")
    git(changed, "branch", "-D", "origin/main")
    git(upstream, "update-ref", "refs/heads/main", "HEAD~1")
    git(changed, "remote", "add", "origin", str(upstream))
    script = [line for line in template["script"] if not line.startswith("pip ")]
    environment = {
        **{"GITLAB_CI": "true", "CI_API_V4_URL": comments.url, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "5"},
        **{"GITLAB_TOKEN": "secret", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "PATH": programs(tmp_path / "bin")},
    }
    ran = subprocess.run(["bash", "-e", "-c", "\n".join(script)], env={**os.environ, **environment}, check=False)
    assert ran.returncode == 3
    assert sum(text.startswith(MARK) for text in comments.kept.values()) == 1
