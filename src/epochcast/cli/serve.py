"""`epochcast serve`: the dashboard and the API; `epochcast serve token …`: who may use it from elsewhere."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from epochcast.cli.app import FORECASTS, Json, app, show
from epochcast.cli.database import Database
from epochcast.cli.help_groups import GroupedCommand
from epochcast.errors import MissingExtra

PORT_HELP = "The port; 0 takes a free one."


@app.command(
    cls=GroupedCommand,
    rich_help_panel=FORECASTS,
    epilog="Examples: epochcast serve · epochcast serve --demo · epochcast serve --host 0.0.0.0 --database postgresql://…",
)
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; others than loopback need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help=PORT_HELP, min=0, max=65535)] = 8642,
    database: Database = None,
    folder: Annotated[Path | None, typer.Option(help="Where uploaded model files are kept.")] = None,
    token: Annotated[bool, typer.Option("--token/--no-token", help="Ask for a token on loopback, too.")] = False,
    public_name: Annotated[
        list[str] | None, typer.Option(help="A name under which a proxy in front is called; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that answer.", min=1, max=256)] = 2,
    demo: Annotated[bool, typer.Option("--demo", help="With runs made up for a first look, in a database of its own.")] = False,
) -> int:
    """The dashboard and the API, until Ctrl-C."""
    try:
        from epochcast.web.serving import run_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("fastapi", "uvicorn", "starlette", "jinja2", "prometheus_client", "sqlalchemy"):
            raise
        raise MissingExtra("serve", error.name) from None
    return run_server(
        host=host,
        port=port,
        database=database,
        folder=folder,
        asks_token=token,
        public_names=tuple(public_name or ()),
        workers=workers,
        is_demo=demo,
        say=lambda line: sys.stderr.write(f"epochcast: {line}\n") and None,
    )
