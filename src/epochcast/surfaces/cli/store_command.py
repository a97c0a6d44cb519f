"""`epochcast store`: the database of runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from epochcast.errors import BadInput
from epochcast.surfaces.cli.command_line import NAMES, Json, command_group, show
from epochcast.surfaces.cli.database_options import Database, counted
from epochcast.surfaces.cli.help_groups import GroupedCommand

store_app = command_group(
    "store",
    NAMES,
    no_args_is_help=True,
    epilog="Example: epochcast store export backup.jsonl",
    help="The database of tracked runs: migrate, export, import, vacuum.",
)


@store_app.command(cls=GroupedCommand, epilog="Example: epochcast store migrate --database postgresql://db/epochcast")
def migrate(database: Database = None, as_json: Json = False) -> int:
    """Create or upgrade the tables, in one transaction."""
    from epochcast.observe.store.store_location import database_url, shown_url
    from epochcast.observe.store.store_opening import migrated

    before, after = migrated(database)
    where = shown_url(database_url(database))
    change = "nothing to do, version" if before == after else f"from version {before} to" if before else "made, version"
    show({"database": where, "before": before, "after": after}, as_json, lambda: f"tables of {where}: {change} {after}")
    return 0


@store_app.command(cls=GroupedCommand, epilog="Example: epochcast store export backup.jsonl")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write; - for standard output.", show_default=False)],
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Export the store as JSON lines: a consistent backup, or a move to another database."""
    from epochcast.observe.store.store_export import export_lines

    if str(file) == "-" and as_json:
        raise BadInput("--json and the export both want standard output: name a file")
    if file.is_dir():
        raise BadInput(f"{file} is a folder; name a file to write to")
    with _existing(database) as store, counted("lines written") as done, _output(file) as output:
        lines = 0
        for lines, line in enumerate(export_lines(store), 1):
            output.write(f"{line}\n")
            done(lines)
    if str(file) != "-":
        show({"file": str(file), "lines": lines}, as_json, lambda: f"{lines:,} lines written to {file}")
    return 0


@store_app.command("import", cls=GroupedCommand, epilog="Example: epochcast store import backup.jsonl")
def import_(
    file: Annotated[Path, typer.Argument(help="An export, or a measurement file of `bench`; - for standard input.")],
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Import an export, all or nothing; existing rows stay, so importing twice is safe."""
    from epochcast.observe.store.store_import import import_lines, import_measurements, is_measurements
    from epochcast.observe.store.store_opening import open_store

    if str(file) != "-" and not file.is_file():
        raise BadInput(f"{file} is a folder; name a file" if file.is_dir() else f"there is no file {file}")
    with open_store(database) as store:
        if str(file) != "-" and is_measurements(file):
            added = {"measurement": import_measurements(store, file)}
        else:
            with counted("lines read") as done, _input(file) as lines:
                added = import_lines(store, lines, "standard input" if str(file) == "-" else file.name, done)

    def view() -> Any:
        new = ", ".join(f"{count:,} {kind}s" for kind, count in added.items() if count)
        return f"new in the store: {new or 'nothing'}"

    show({"file": str(file), "added": added}, as_json, view)
    return 0


@store_app.command(cls=GroupedCommand, epilog="Example: epochcast store vacuum --whole 30d --delete-after 365d")
def vacuum(
    whole: Annotated[str, typer.Option(help="Keep reports younger than this as they are.")] = "7d",
    delete_after: Annotated[
        str | None, typer.Option(help="Also delete runs that ended longer ago than this, like 365d.")
    ] = None,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Thin old reports to 1,000 per attempt and rank (keeping first, last and mean pace) and free space."""
    from epochcast.observe.store import thinning
    from epochcast.units import parse_seconds, show_bytes

    seconds = parse_seconds(whole, "--whole", unit="d")
    after = None if delete_after is None else parse_seconds(delete_after, "--delete-after", unit="d")
    with _existing(database) as store:
        done = thinning.vacuum(store, whole_seconds=seconds, remove_after_seconds=after)

    def view() -> Any:
        return (
            f"reports {done.rows_before:,} → {done.rows_after:,}, {done.runs_removed:,} runs deleted, "
            f"{show_bytes(done.bytes_before)} → {show_bytes(done.bytes_after)}"
        )

    show(done.as_dict(), as_json, view)
    return 0


@contextmanager
def _existing(database: str | None) -> Iterator[Any]:
    from epochcast.observe.store.store_location import database_url, shown_url
    from epochcast.observe.store.store_opening import existing_store

    store = existing_store(database)
    if store is None:
        raise BadInput(
            f"there is no store yet at {shown_url(database_url(database))}; `epochcast track LOG --store` makes it"
        )
    with store:
        yield store


@contextmanager
def _output(file: Path) -> Iterator[IO[str]]:
    if str(file) == "-":
        yield sys.stdout
        return
    from epochcast.base.atomic_files import replacing

    with replacing(file) as temporary, temporary.open("w", encoding="utf-8") as output:
        yield output


@contextmanager
def _input(file: Path) -> Iterator[Any]:
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    with file.open("rb") as lines:
        yield lines
