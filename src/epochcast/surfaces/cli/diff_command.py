"""`epochcast diff`"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epochcast.decide.diff.diff_request import DiffRequest
from epochcast.errors import BadInput, OverLimit
from epochcast.surfaces.cli.command_line import Explain, Json, show, wrote
from epochcast.surfaces.cli.job_flags import TypedOptions, options_command
from epochcast.surfaces.cli.price_age import price_age

if TYPE_CHECKING:
    from epochcast.decide.diff.diff_answer import Diff
    from epochcast.decide.diff.diff_compare import DiffSession

NOT_COMPARABLE = 5
"""The exit code where a limit cannot be checked: the lock is of another epochcast."""


@options_command(
    epilog="Example: epochcast diff resnet50 resnet101 --device A100 --batch 64 --max-time-increase 5%",
    request=DiffRequest,
)
def diff(
    typed: TypedOptions,
    request: DiffRequest,
    base: Annotated[
        str | None,
        typer.Argument(help="A model, or job:NAME of epochcast.toml. With --base or --lock: what is compared."),
    ] = None,
    head: Annotated[str | None, typer.Argument(help="The model or job:NAME to compare it with.")] = None,
    lock: Annotated[
        bool, typer.Option("--lock", help="Compare with epochcast.lock: job:NAME, or all jobs of epochcast.toml.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="With --lock: write the forecasts of now into epochcast.lock.")
    ] = False,
    markdown: Annotated[Path | None, typer.Option(help="Write a comment for a pull request into this file.")] = None,
    badge: Annotated[
        Path | None, typer.Option(help="Write the head's time and cost for shields.io into this file.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Write the workflow for pull requests and exit (GitHub, or --ci gitlab).")
    ] = False,
    ci: Annotated[str | None, typer.Option(help="With --init: github or gitlab [default: github].")] = None,
    profile: Annotated[Path | None, typer.Option(help="Forecast with this file of `epochcast fit`.")] = None,
    explain: Explain = False,
    as_json: Json = False,
) -> int:
    """Compare time, memory and cost of two versions. Lists the layers responsible."""
    if init or ci is not None:
        return _init(ci, as_json, is_asked=init)
    from epochcast.decide.diff.diff_compare import DiffSession
    from epochcast.decide.diff.side_reference import DiffQuestion

    comparison = DiffSession(DiffQuestion(typed.options, typed.config), request.limits, profile)
    base_revision, head_revision = request.base_revision, request.head_revision
    _check(base, head, (base_revision, head_revision), lock, accept)
    for path in (markdown, badge):
        if path is not None and not path.parent.is_dir():
            raise BadInput(f"no folder {str(path.parent)!r} to write {path.name} to")
    if accept:
        return _accept(comparison, [reference for reference in (base, head) if reference is not None], as_json)
    if lock:
        answers = _of_lock(comparison, [reference for reference in (base, head) if reference is not None])
    elif base_revision is not None:
        references = [base] if base is not None else _jobs()
        answers = {each: comparison.of_revisions(each, base_revision, head_revision) for each in references}
    else:
        assert base is not None and head is not None  # checked
        answers = {head: comparison.of_two(base, head)}
    _write_files(tuple(answers.values()), markdown, badge)
    return _answer(answers, as_json, explain, is_single=base is not None)


def _check(
    base: str | None, head: str | None, revisions: tuple[str | None, str | None], lock: bool, accept: bool
) -> None:
    """Refuse what is said twice or not at all."""
    if lock and any(revisions):
        raise BadInput("--lock compares with epochcast.lock, --base with a revision: give one of them")
    if accept and not lock:
        raise BadInput("--accept goes with --lock: epochcast diff --lock --accept")
    if revisions[1] is not None and revisions[0] is None:
        raise BadInput("--head goes with --base: epochcast diff job:NAME --base main --head REV")
    if revisions[0] is not None and head is not None:
        raise BadInput("at two revisions one thing is compared: give one model or job:NAME beside --base")
    if not lock and revisions[0] is None and (base is None or head is None):
        raise BadInput("Missing argument 'BASE HEAD' (or --base REV, or --lock); see: epochcast diff --help")


def _jobs() -> Sequence[str]:
    from epochcast.decide.diff.side_reference import job_names

    names = job_names()
    if not names:
        raise BadInput("epochcast.toml has no jobs; `epochcast jobs init` writes one")
    return names


def _lock_path() -> Path:
    from epochcast.decide.diff.forecast_lock import FILE
    from epochcast.predict.forecast.job_file import find_job_file

    return find_job_file().with_name(FILE)


def _of_lock(comparison: "DiffSession", references: Sequence[str]) -> "dict[str, Diff]":
    from epochcast.decide.diff.diff_compare import check_reference
    from epochcast.decide.diff.forecast_lock import read_lock

    path = _lock_path()
    lock = read_lock(path)
    return {each: comparison.of_lock(lock, path, check_reference(each)) for each in references or _jobs()}


def _accept(comparison: "DiffSession", references: Sequence[str], as_json: bool) -> int:
    """Write the forecasts of now; jobs that are not named and still exist stay as they were accepted."""
    from epochcast.decide.diff.diff_compare import check_reference
    from epochcast.decide.diff.forecast_lock import Lock, read_lock
    from epochcast.decide.diff.side_reference import JOB

    path, names = _lock_path(), [name.removeprefix(JOB) for name in _jobs()]
    accepted = [check_reference(each).removeprefix(JOB) for each in references] or names
    sides = {name: comparison.now(f"{JOB}{name}") for name in accepted}
    before = read_lock(path).jobs if references and path.is_file() else {}
    lock = Lock({name: locked for name, locked in before.items() if name in names})
    lock.accepting(sides).write(path)

    def view() -> Any:
        return f"{path.name}: accepted {', '.join(accepted)}"

    show({"file": str(path), "accepted": accepted}, as_json, view)
    return 0


def _init(system: str | None, as_json: bool, *, is_asked: bool) -> int:
    """Write the workflow of a repository."""
    from epochcast.decide.diff.workflow import GITHUB, write_workflow

    if not is_asked:
        raise BadInput("--ci goes with --init: epochcast diff --init --ci gitlab")
    path = write_workflow(system or GITHUB, Path())

    def view() -> Any:
        return f"{path}: compares pull requests with their target branch; set the limits in it"

    show({"file": str(path)}, as_json, view)
    return 0


def _write_files(answers: "Sequence[Diff]", markdown: Path | None, badge: Path | None) -> None:
    """The comment and the badge."""
    from epochcast.base.atomic_files import write_text
    from epochcast.surfaces.render import diff_markdown

    if markdown is not None:
        write_text(markdown, diff_markdown.markdown(answers))
        wrote(markdown)
    if badge is not None:
        write_text(badge, json.dumps(diff_markdown.badge(answers)) + "\n")
        wrote(badge)


def _answer(answers: "Mapping[str, Diff]", as_json: bool, explain: bool, *, is_single: bool) -> int:
    """Show every comparison; the exit code says whether a limit was exceeded, or could not be checked."""
    every = list(answers.values())
    bodies = {
        name: {
            **answer.as_dict(),
            **price_age((answer.base.forecast.price_source, answer.head.forecast.price_source)),
        }
        for name, answer in answers.items()
    }
    exceeded = [{"of": name, **limit} for name, body in bodies.items() for limit in body["exceeded"]]
    body = next(iter(bodies.values())) if is_single and len(bodies) == 1 else {"jobs": bodies, "exceeded": exceeded}

    def view() -> Any:
        from rich.console import Group

        from epochcast.surfaces import render

        return Group(*(render.diff(answer) for answer in every))

    show(body, as_json, view, explain=explain)
    if any(answer.allowed and not answer.is_comparable for answer in every):
        return NOT_COMPARABLE
    return OverLimit.exit_code if exceeded else 0
