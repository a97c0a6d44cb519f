"""Every tutorial works from an empty folder, as printed; `pytest --renew` rewrites what its commands print.

A page is played from its first block to its last in one shell. A block with `title="NAME"` is the file NAME. A block of
the language `console` holds commands after `$ ` and what they print; every command ends with 0, unless its line ends
with `; echo "exit code $?"`. What is still running at the end of the page is stopped.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.ports import free_port

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r'^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
PORT, HOME = "8642", "/home/you"
MOST_SECONDS = 900
_ENDED = re.compile(r"\n?<ended (\d+)>\n")

Matches = Callable[[Path, str], None]


def commands(block: str) -> list[str]:
    """What a block types."""
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def script(page: str) -> Iterator[str]:
    """The page for a shell, which says after every command how it ended."""
    for block in BLOCK.finditer(page):
        if block["title"]:
            yield f"cat > {block['title']} <<'END OF FILE'\n{block['text']}END OF FILE"
        elif block["kind"] == "console":
            for command in commands(block["text"]):
                yield f"{{ {command}\n}} < /dev/null 2>&1; printf '\\n<ended %s>\\n' $?"


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty home. Its path is as long for everybody, because lines that name it are folded."""
    with tempfile.TemporaryDirectory(prefix="you-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def environment(tmp_path: Path, home: Path) -> dict[str, str]:
    """A home of its own, our epochcast as a command, a terminal of a hundred columns."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, body in (("epochcast", f'"{sys.executable}" -m epochcast'), ("python", f'"{sys.executable}"')):
        (programs / name).write_text(f'#!/bin/sh\nexec {body} "$@"\n')
        (programs / name).chmod(0o755)
    known = {"NAME": "you", "EMAIL": "you@example.org", "DATE": "2026-11-17T09:00:00Z"}
    identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in known.items()}
    unset = {"EPOCHCAST_DATA", "EPOCHCAST_STORE", "XDG_DATA_HOME", "XDG_CACHE_HOME"}
    return {
        **{name: value for name, value in os.environ.items() if name not in unset},
        **identity,
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "TZ": "UTC",
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def played(page: str, folder: Path, environment: dict[str, str]) -> list[tuple[str, int]]:
    """What every command printed, and how it ended."""
    port = str(free_port())
    lines = "\n".join(script(page)).replace(PORT, port)
    shell = subprocess.Popen(
        ["bash"],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = shell.communicate(f"{lines}\nkill $(jobs -p) 2>/dev/null\n", timeout=MOST_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
    today = datetime.now(UTC).date().isoformat()
    masked = printed.replace(port, PORT).replace(today, "2026-11-17").replace(environment["HOME"], HOME)
    parts = _ENDED.split(masked)
    return [(parts[place], int(parts[place + 1])) for place in range(0, len(parts) - 1, 2)]


@pytest.mark.parametrize("path", TUTORIALS, ids=[path.stem for path in TUTORIALS])
def test_a_tutorial_works_from_an_empty_folder(
    path: Path, matches: Matches, home: Path, environment: dict[str, str]
) -> None:
    page = path.read_text(encoding="utf-8")
    folder = home / "tutorial"
    folder.mkdir()
    typed = [one for block in BLOCK.finditer(page) if block["kind"] == "console" for one in commands(block["text"])]
    answers = played(page, folder, environment)
    assert len(answers) == len(typed) > 2, answers[-1:]
    failed = [(line, *answer) for line, answer in zip(typed, answers, strict=True) if answer[1] != 0]
    assert failed == []
    left = iter(zip(typed, answers, strict=True))

    def shown(block: re.Match[str]) -> str:
        if block["title"] or block["kind"] != "console":
            return block[0]
        texts = [f"$ {line}\n{printed.strip(chr(10))}".strip() for line, (printed, _) in _first(left, block["text"])]
        return "```console\n" + "\n\n".join(texts) + "\n```"

    matches(path, BLOCK.sub(shown, page))


def _first(left: Iterator[tuple[str, tuple[str, int]]], block: str) -> list[tuple[str, tuple[str, int]]]:
    """The commands of this block."""
    return [next(left) for _ in commands(block)]


def test_the_tutorials_are_these() -> None:
    assert [path.stem for path in TUTORIALS] == [
        "cost-check-in-ci",
        "fine-tune-an-llm",
        "first-forecast",
        "plan-a-budget",
        "team-dashboard",
        "track-a-run",
    ]
