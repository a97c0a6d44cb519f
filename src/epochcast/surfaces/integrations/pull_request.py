"""One comment of a pull request (GitHub) or merge request (GitLab), updated in place.

    python -m epochcast.surfaces.integrations.pull_request comment.md

The comment is found again by its first line. A quiet one (`diff --quiet-below`) is never a new comment: it only
replaces what is there. Where it runs follows from what the two systems set: GITHUB_API_URL, GITHUB_REPOSITORY,
GITHUB_EVENT_PATH and GITHUB_TOKEN; or CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID and GITLAB_TOKEN.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from epochcast.base.documents import parse_json, read_text
from epochcast.errors import BadInput, EpochcastError
from epochcast.surfaces.render.diff_markdown import MARK, QUIET_MARK

TIMEOUT_SECONDS = 30.0
PAGE_LENGTH, MOST_PAGES = 100, 50


@dataclass(frozen=True, slots=True)
class CommentPlace:
    """Where the comments of one request are: `items` lists and takes new ones; `item` has one by its number."""

    items: str
    item: str
    headers: Mapping[str, str]
    update_method: str


def comment_place(environment: Mapping[str, str]) -> CommentPlace:
    """The request that a job of GitHub Actions or GitLab CI runs for."""
    if environment.get("GITHUB_ACTIONS"):
        api, repository = (_needed(environment, name) for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY"))
        event = parse_json(read_text(Path(_needed(environment, "GITHUB_EVENT_PATH"))), "the event of GitHub")
        number = event.get("number") or event.get("pull_request", {}).get("number")
        if not isinstance(number, int):
            raise BadInput("this run of GitHub Actions is of no pull request: there is nothing to comment on")
        base = f"{api}/repos/{repository}/issues"
        headers = {"Authorization": f"Bearer {_needed(environment, 'GITHUB_TOKEN')}"}
        return CommentPlace(f"{base}/{number}/comments", f"{base}/comments/{{id}}", headers, "PATCH")
    if environment.get("GITLAB_CI"):
        api, project = (_needed(environment, name) for name in ("CI_API_V4_URL", "CI_PROJECT_ID"))
        notes = f"{api}/projects/{project}/merge_requests/{_needed(environment, 'CI_MERGE_REQUEST_IID')}/notes"
        return CommentPlace(notes, f"{notes}/{{id}}", {"PRIVATE-TOKEN": _needed(environment, "GITLAB_TOKEN")}, "PUT")
    raise BadInput(
        "comments are written from GitHub Actions and GitLab CI: neither GITHUB_ACTIONS nor GITLAB_CI is set"
    )


def put_comment(text: str, place: CommentPlace) -> str:
    """Write the comment, in place of the one that is there: "created", "updated" or "quiet"."""
    old = next((each for each in _comments(place) if str(each.get("body", "")).startswith(MARK)), None)
    if old is not None:
        _ask(place, place.update_method, place.item.format(id=old["id"]), {"body": text})
        return "updated"
    if QUIET_MARK in text:
        return "quiet"
    _ask(place, "POST", place.items, {"body": text})
    return "created"


def _comments(place: CommentPlace) -> Iterator[Mapping[str, Any]]:
    for page in range(1, MOST_PAGES + 1):
        comments = _ask(place, "GET", f"{place.items}?per_page={PAGE_LENGTH}&page={page}")
        if not isinstance(comments, list):
            raise BadInput(f"{place.items} answered no list of comments")
        yield from (each for each in comments if isinstance(each, dict))
        if len(comments) < PAGE_LENGTH:
            return


def _ask(place: CommentPlace, method: str, url: str, body: Mapping[str, Any] | None = None) -> Any:
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url} is no address of an API")
    content = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json", **place.headers}
    try:
        with urlopen(Request(url, content, headers, method=method), timeout=TIMEOUT_SECONDS) as answer:
            return parse_json(answer.read() or b"null", url)
    except (URLError, OSError) as error:
        raise BadInput(f"{method} {url}: {error}") from None


def _needed(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise BadInput(f"{name} is not set: a comment cannot be written without it")
    return value


def main(arguments: list[str]) -> int:
    """Put the comment of a file; one line says what happened."""
    try:
        if len(arguments) != 1:
            raise BadInput("give the file of the comment: python -m epochcast.surfaces.integrations.pull_request FILE")
        done = put_comment(read_text(Path(arguments[0])), comment_place(os.environ))
    except EpochcastError as error:
        sys.stderr.write(f"epochcast: {error}\n")
        return error.exit_code
    sys.stdout.write(f"comment: {done}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
