"""Pages that repeat what the code says are compared with it; `pytest --renew` rewrites them.

- In README.md and the pages of docs/, a fenced block of the language `console` holds commands after `$ ` and what they
  print, perhaps only the first lines (`| head -12`). They run in a folder whose `epochcast.toml` is the page's first TOML block that has a `[[job]]`, and its
  `queue.toml` the first that has `[[node_types]]`.
- docs/reference/cli.md lists every option of every command.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from shlex import split
from typing import Any

import pytest
import typer.main

import epochcast
from epochcast.surfaces.cli import command_line as application

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "epochcast"
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text(encoding="utf-8"))
]
JOB_FILE, QUEUE_FILE = (
    re.compile(rf"^```toml\n((?:(?!```).*\n)*?\[\[{table}\]\]\n(?:(?!```).*\n)*)", re.MULTILINE)
    for table in ("job", "node_types")
)

KINDS = {"tutorials", "how-to", "reference", "explanation", "accuracy"}

Matches = Callable[[Path, str], None]


@pytest.fixture
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)


def _ran_again(block: str) -> str:
    """The commands of a block with what they print now."""
    lines = []
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        command, _, count = line[2:].partition(" | head -")
        program, *arguments = split(command)
        assert program == "epochcast", f"only epochcast is run in a console block, not {program!r}"
        printed = StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            application.run(arguments)
        shown = printed.getvalue().splitlines()[: int(count) if count else None]
        lines += [line, "\n".join(shown).strip("\n"), ""]
    return "\n".join(lines[:-1]) + "\n"


@pytest.mark.usefixtures("plain_terminal")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_shows_what_commands_print(
    page: Path, matches: Matches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    if jobs := JOB_FILE.search(text):
        Path("epochcast.toml").write_text(jobs[1], encoding="utf-8")
    if queue := QUEUE_FILE.search(text):
        Path("queue.toml").write_text(queue[1], encoding="utf-8")
    matches(page, BLOCK.sub(lambda block: _ran_again(block[1]), text))


def _options(command: Any) -> Iterator[str]:
    yield "| argument or option | meaning | default |"
    yield "|---|---|---|"
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        name = parameter.name.upper() if is_argument else ", ".join(parameter.opts)
        if "--help" in parameter.opts:
            continue
        default = parameter.default
        shown = "required" if parameter.required else "" if default in (None, False, ()) else f"`{default}`"
        yield f"| `{name}` | {(parameter.help or '').replace('|', chr(92) + '|')} | {shown} |"


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _cli_page() -> Iterator[str]:
    yield "# The command line"
    yield ""
    yield "Written from the commands themselves by `pytest --renew`. Every command but `tour` takes `--json`: one JSON"
    yield "object on standard output and nothing else. `epochcast COMMAND --help` says the same as this page."
    yield ""
    yield "| exit code | meaning |"
    yield "|---|---|"
    yield "| 0 | fine |"
    yield "| 2 | bad input: one line on standard error says what was asked, what was found and what would work |"
    yield "| 3 | over a given budget, deadline or limit |"
    yield "| 4 | does not fit in memory; the answer is printed all the same |"
    yield "| 5 | no confident answer |"
    for module in application.COMMANDS:
        import_module(f"epochcast.surfaces.cli.{module}_command")
    group: Any = typer.main.get_command(application.app)
    for name, command in _commands(group, "epochcast"):
        yield ""
        yield f"## {name}"
        yield ""
        yield " ".join((command.help or "").split())
        yield ""
        yield f"    {(command.epilog or name).removeprefix('Example: ')}"
        yield ""
        yield from _options(command)


def test_the_page_of_commands_is_complete(matches: Matches) -> None:
    matches(ROOT / "docs" / "reference" / "cli.md", "\n".join(_cli_page()) + "\n")


def test_the_api_page_has_every_public_name_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: epochcast\.(\w+)", page, re.MULTILINE)
    assert sorted(names) == sorted(set(epochcast.__all__) - {"__version__"})


def test_every_public_name_has_an_example() -> None:
    """pytest runs it: the doctests of `src` are among the tests."""
    named = [name for name in epochcast.__all__ if name != "__version__"]
    assert [name for name in named if ">>> " not in (getattr(epochcast, name).__doc__ or "")] == []


def test_every_page_is_in_the_navigation_under_its_kind() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))
    assert {page.parent.name for page in docs.rglob("*.md") if page.name != "index.md"} == KINDS


def test_the_readme_is_short_and_shows_pictures() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 180
    assert lines.count("<picture>") == 1 and any("docs/pictures/terminal.svg" in line for line in lines[:14])
    assert [block for block in BLOCK.findall("\n".join(lines)) if len(block.splitlines()) > 1 + 15] == []


def test_links_and_pictures_of_the_readme_lead_somewhere() -> None:
    """mkdocs checks those of docs/."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"(?:\]\(|srcset=\"|src=\")(?!https?:)([^)\"#]+)", text)
    assert len(targets) > 20
    assert [target for target in targets if not (ROOT / target).exists()] == []
