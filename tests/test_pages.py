"""Pages that repeat what the code says are compared with it; `pytest --renew` rewrites them.

- In README.md and the pages of docs/, a fenced block of the language `console` holds commands after `$ ` and what they
  print, perhaps only the first lines (`| head -12`). They run in a folder whose `epochcast.toml` is the page's first
  TOML block that has a `[[job]]`, and its `queue.toml` the first that has `[[node_types]]`. Tutorials are played by
  test_tutorials.py.
- docs/reference/cli*.md list every option of every command, models-*.md every model.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from epochcast.units import show_count

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "epochcast"
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(page.read_text(encoding="utf-8")) and page.parent.name != "tutorials"
]
JOB_FILE, QUEUE_FILE = (
    re.compile(rf"^```toml\n((?:(?!```).*\n)*?\[\[{table}\]\]\n(?:(?!```).*\n)*)", re.MULTILINE)
    for table in ("job", "node_types")
)

LONGEST_PAGE = 200
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


Row = tuple[str, str, str]
"""Of an option: its names, what it means, its default."""

REFERENCE = ROOT / "docs" / "reference"
JOB_OPTIONS = "cli-job-options"
FEWEST_SHARING = 5
"""An option of `forecast` that so many commands share, word for word, is one of a job: on a page of its own."""
SHOWING = ("`--json`", "`--wide`")
"""Not of a job, but of how answers are shown."""
CLI_PAGES = {
    "cli-forecasts": ("Commands: forecasts", "forecast inspect advise scaling"),
    "cli-decisions": ("Commands: money and changes", "plan afford diff"),
    "cli-runs": ("Commands: runs and assistants", "track check oom runs bill share mcp"),
    "cli-queue": ("Commands: queues", "schedule"),
    "cli-server": ("Commands: the server and the store", "serve store"),
    "cli-measurements": ("Commands: measurements and history", "evaluate calibrate fit bench history"),
    "cli-catalogues": (
        "Commands: first steps, job files and catalogues",
        "demo tour doctor jobs models devices datasets links topologies instances",
    ),
}
"""By page: its title, and the commands on it in their order."""


def _options(command: Any) -> Iterator[Row]:
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        name = parameter.name.upper() if is_argument else ", ".join(parameter.opts)
        if "--help" in parameter.opts:
            continue
        default = parameter.default
        shown = "required" if parameter.required else "" if default in (None, False, ()) else f"`{default}`"
        yield f"`{name}`", (parameter.help or "").replace("|", chr(92) + "|"), shown


def _rows(options: Iterable[Row]) -> Iterator[str]:
    yield "| argument or option | meaning | default |"
    yield "|---|---|---|"
    yield from (f"| {name} | {meaning} | {default} |" for name, meaning, default in options)


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or those of a group; the group itself where it answers alone."""
    if getattr(command, "invoke_without_command", True):
        yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from _commands(f"{name} {part}", inner)


def _cli_index(places: Mapping[str, list[tuple[str, Any]]]) -> Iterator[str]:
    yield "# The command line"
    yield ""
    yield "Written from the commands themselves by `pytest --renew`. Every command but `tour` takes `--json`: one JSON"
    yield "object on standard output and nothing else. `epochcast COMMAND --help` says the same as these pages."
    yield f"Commands about a job share the [options of a job]({JOB_OPTIONS}.md)."
    yield ""
    yield "| exit code | meaning |"
    yield "|---|---|"
    yield "| 0 | fine |"
    yield "| 2 | bad input: one line on standard error says what was asked, what was found and what would work |"
    yield "| 3 | over a given budget, deadline or limit |"
    yield "| 4 | does not fit in memory; the answer is printed all the same |"
    yield "| 5 | no confident answer |"
    yield ""
    yield "| command | what it does |"
    yield "|---|---|"
    for page, commands in places.items():
        for name, command in commands:
            yield f"| [`{name}`]({page}.md#{name.replace(' ', '-')}) | {' '.join((command.help or '').split())} |"


def _cli_page(title: str, commands: Iterable[tuple[str, Any]], shared: Sequence[Row]) -> Iterator[str]:
    yield f"# {title}"
    yield ""
    yield "Written from the commands themselves by `pytest --renew`. [All commands and exit codes](cli.md)."
    for name, command in commands:
        options = list(_options(command))
        own = [option for option in options if option not in shared]
        yield ""
        yield f"## {name}"
        yield ""
        yield " ".join((command.help or "").split())
        yield ""
        yield f"    {(command.epilog or name).removeprefix('Example: ').removeprefix('Examples: ')}"
        yield ""
        if own:
            yield from _rows(own)
        if len(own) < len(options):
            yield ""
            yield f"Also the [options of a job]({JOB_OPTIONS}.md)."


def _cli_pages() -> Iterator[tuple[str, Iterator[str]]]:
    """(name, lines) of every page of the command line."""
    for module in application.COMMANDS:
        import_module(f"epochcast.surfaces.cli.{module}_command")
    group: Any = typer.main.get_command(application.app)
    words = [word for _, listed in CLI_PAGES.values() for word in listed.split()]
    assert sorted(words) == sorted(group.commands), "every command is on one page"
    places = {
        page: [one for word in listed.split() for one in _commands(f"epochcast {word}", group.commands[word])]
        for page, (_, listed) in CLI_PAGES.items()
    }
    uses = Counter(option for commands in places.values() for _, command in commands for option in _options(command))
    (forecast,) = (command for name, command in places["cli-forecasts"] if name == "epochcast forecast")
    shared = [one for one in _options(forecast) if uses[one] >= FEWEST_SHARING and one[0] not in SHOWING]
    yield "cli", _cli_index(places)
    yield JOB_OPTIONS, _job_options(shared)
    for page, (title, _) in CLI_PAGES.items():
        yield page, _cli_page(title, places[page], shared)


def _job_options(shared: Sequence[Row]) -> Iterator[str]:
    yield "# Options of a job"
    yield ""
    yield "Commands about a job share these options, as far as they apply: `forecast`, `advise`, `scaling`, `plan`,"
    yield "`afford`, `diff`, `check`, `oom`, `inspect`, `share` and `jobs init`; its help lists those it takes."
    yield "The same names are keys of a [job file](../how-to/jobs.md) and [keywords in Python](python.md), with `_` for"
    yield "`-`."
    yield ""
    yield from _rows(shared)


def test_the_pages_of_commands_are_complete(matches: Matches) -> None:
    for name, lines in _cli_pages():
        text = "\n".join(lines) + "\n"
        assert text.count("\n") <= LONGEST_PAGE, name
        matches(REFERENCE / f"{name}.md", text)


def _zoo_page(models: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield "# The zoo"
    yield ""
    yield "Written from `epochcast models --counts` by `pytest --renew`. *Forward* is the matrix work of one sample"
    yield "(convolutions, matrix products, attention), with two FLOP per multiply-add. [Names](models.md)."
    yield ""
    yield "| model | what it is | input | parameters | forward |"
    yield "|---|---|---|---:|---:|"
    for model in models:
        counts = f"{model['parameters']:,} | {show_count(model['forward_flops_per_sample'], 'FLOP')}"
        yield f"| `{model['name']}` | {model['title']} | {'×'.join(map(str, model['input_shape']))} | {counts} |"


def _hub_page(hub: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    yield "# Ids of the Hugging Face Hub"
    yield ""
    yield "Written from `epochcast models` by `pytest --renew`. Ids that epochcast knows without asking the Hub, by"
    yield "publisher, with their parameters. Uploads of the same network by others are known, too. [Names](models.md)."
    yield ""
    yield "| publisher | ids |"
    yield "|---|---|"
    by_publisher: dict[str, list[str]] = {}
    for model in hub:
        publisher, _, name = model["id"].rpartition("/")
        parameters = show_count(model["parameters"], "") if model["parameters"] else "–"
        by_publisher.setdefault(publisher, []).append(f"`{name}` ({parameters.strip()})")
    for publisher in sorted(by_publisher, key=str.casefold):
        yield f"| {publisher or 'none'} | {', '.join(by_publisher[publisher])} |"


def test_the_pages_of_models_are_complete(matches: Matches) -> None:
    printed = StringIO()
    with redirect_stdout(printed):
        application.run(["models", "--counts", "--json"])
    answer = json.loads(printed.getvalue())
    for name, lines in (("zoo", _zoo_page(answer["models"])), ("hub", _hub_page(answer["hub"]))):
        text = "\n".join(lines) + "\n"
        assert text.count("\n") <= LONGEST_PAGE, name
        matches(REFERENCE / f"models-{name}.md", text)


def test_the_api_page_has_every_public_name_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: epochcast\.(\w+)", page, re.MULTILINE)
    assert sorted(names) == sorted(set(epochcast.__all__) - {"__version__"})


def test_every_public_name_has_an_example() -> None:
    """pytest runs it: the doctests of `src` are among the tests."""
    named = [name for name in epochcast.__all__ if name != "__version__"]
    assert [name for name in named if ">>> " not in (getattr(epochcast, name).__doc__ or "")] == []


def test_no_page_is_long() -> None:
    lines = {page: len(page.read_text(encoding="utf-8").splitlines()) for page in (ROOT / "docs").rglob("*.md")}
    assert {page.name: count for page, count in lines.items() if count > LONGEST_PAGE} == {}


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
