"""The comment of a pull request, against servers of this test that answer as GitHub and GitLab do."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from epochcast.errors import BadInput
from epochcast.surfaces.integrations.pull_request import comment_place, main, put_comment
from epochcast.surfaces.render.diff_markdown import MARK, QUIET_MARK


@dataclass
class Comments:
    """What a server keeps: comments by their number, and the requests it was asked."""

    url: str = ""
    kept: dict[int, str] = field(default_factory=lambda: {7: "looks good"})
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)


@pytest.fixture
def comments() -> Iterator[Comments]:
    kept = Comments()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, body: Any, code: int = 200) -> None:
            kept.asked.append((self.command, self.path, dict(self.headers)))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def _body(self) -> str:
            return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

        def do_GET(self) -> None:
            self._answer([{"id": number, "body": text} for number, text in kept.kept.items()])

        def do_POST(self) -> None:
            kept.kept[max(kept.kept, default=0) + 1] = self._body()
            self._answer({}, 201)

        def do_PATCH(self) -> None:
            kept.kept[int(self.path.rpartition("/")[2])] = self._body()
            self._answer({})

        do_PUT = do_PATCH

        def log_message(self, *arguments: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        kept.url = f"http://127.0.0.1:{server.server_port}"
        yield kept
        server.shutdown()


def github(comments: Comments, folder: Path) -> dict[str, str]:
    (folder / "event.json").write_text(json.dumps({"number": 12}))
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": comments.url,
        "GITHUB_REPOSITORY": "team/model",
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_TOKEN": "secret",
    }


def test_one_comment_of_github_is_made_and_then_updated(comments: Comments, tmp_path: Path) -> None:
    place = comment_place(github(comments, tmp_path))
    assert put_comment(f"{MARK}\nfirst", place) == "created"
    assert put_comment(f"{MARK}\nsecond", place) == "updated"
    assert comments.kept == {7: "looks good", 8: f"{MARK}\nsecond"}
    methods = [(method, path.partition("?")[0]) for method, path, _ in comments.asked]
    assert ("POST", "/repos/team/model/issues/12/comments") in methods
    assert methods[-1] == ("PATCH", "/repos/team/model/issues/comments/8")
    assert all(headers["Authorization"] == "Bearer secret" for *_, headers in comments.asked)


def test_a_quiet_comment_only_replaces_one(comments: Comments, tmp_path: Path) -> None:
    place = comment_place(github(comments, tmp_path))
    assert put_comment(f"{MARK}\n{QUIET_MARK}\n", place) == "quiet"
    assert comments.kept == {7: "looks good"}
    put_comment(f"{MARK}\nloud", place)
    assert put_comment(f"{MARK}\n{QUIET_MARK}\n", place) == "updated"
    assert QUIET_MARK in comments.kept[8]


def test_a_note_of_gitlab_is_updated_in_place(comments: Comments) -> None:
    place = comment_place(
        {
            **{"GITLAB_CI": "true", "CI_API_V4_URL": comments.url, "CI_PROJECT_ID": "3"},
            **{"CI_MERGE_REQUEST_IID": "5", "GITLAB_TOKEN": "secret"},
        }
    )
    put_comment(f"{MARK}\nfirst", place)
    assert put_comment(f"{MARK}\nsecond", place) == "updated"
    method, path, headers = comments.asked[-1]
    assert (method, path) == ("PUT", "/projects/3/merge_requests/5/notes/8")
    assert headers["Private-Token"] == "secret"


def test_what_is_missing_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="neither GITHUB_ACTIONS nor GITLAB_CI is set"):
        comment_place({})
    with pytest.raises(BadInput, match="CI_MERGE_REQUEST_IID is not set"):
        comment_place({"GITLAB_CI": "true", "CI_API_V4_URL": "http://127.0.0.1:9", "CI_PROJECT_ID": "3"})
    away = Comments("http://127.0.0.1:9")
    with pytest.raises(BadInput, match=r"GET http://127.0.0.1:9/.*refused"):
        put_comment(MARK, comment_place(github(away, tmp_path)))
    assert main([]) == 2 and capsys.readouterr().err.count("\n") == 1
