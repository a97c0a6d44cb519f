"""The workflow that `epochcast diff --init` writes, for GitHub Actions or GitLab CI."""

from collections.abc import Mapping
from pathlib import Path

from epochcast.errors import BadInput, UnknownName

GITHUB, GITLAB = "github", "gitlab"

_GITHUB = """\
name: training-cost
on: pull_request
permissions:
  contents: read
  pull-requests: write
jobs:
  forecast:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - uses: epochcast/epochcast@v1
        with:
          quiet-below: 2%
          options: --max-time-increase 5% --max-cost-increase 5%
"""
_GITLAB = """\
# Include it from .gitlab-ci.yml. GITLAB_TOKEN is a project access token with the scope "api", for the comment.
training-cost:
  image: python:3.12
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"
    EPOCHCAST_INSTALL: epochcast
  script:
    - pip install --quiet "$EPOCHCAST_INSTALL"
    - git fetch origin "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"
    - code=0
    - epochcast diff --base "origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME" --quiet-below 2% --max-time-increase 5%
      --max-cost-increase 5% --markdown epochcast-comment.md --badge epochcast-badge.json || code=$?
    - if [ -n "$GITLAB_TOKEN" ]; then python -m epochcast.surfaces.integrations.pull_request epochcast-comment.md; fi
    - exit "$code"
  artifacts:
    when: always
    expose_as: training forecast
    paths: [epochcast-comment.md]
"""
WORKFLOWS: Mapping[str, tuple[str, str]] = {
    GITHUB: (".github/workflows/epochcast.yml", _GITHUB),
    GITLAB: (".gitlab/epochcast.yml", _GITLAB),
}
"""Where the workflow of each system is, and its text."""


def write_workflow(system: str, folder: Path) -> Path:
    """Write the workflow into a repository; an existing file is never replaced."""
    from epochcast.base.atomic_files import write_text

    if system not in WORKFLOWS:
        raise UnknownName("system of continuous integration", system, WORKFLOWS)
    name, text = WORKFLOWS[system]
    path = folder / name
    if path.exists():
        raise BadInput(f"{name} exists: remove it, or edit it")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
