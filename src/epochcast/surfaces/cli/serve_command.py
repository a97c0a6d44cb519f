"""`epochcast serve`: the dashboard and the API; `epochcast serve token …`: who may use it from elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from epochcast.errors import MissingExtra
from epochcast.surfaces.cli.command_line import FORECASTS, Json, command_group, show
from epochcast.surfaces.cli.database_options import Database

_NEEDED = ("fastapi", "uvicorn", "starlette", "jinja2", "prometheus_client", "sqlalchemy", "altair")


serve_app = command_group(
    "serve",
    FORECASTS,
    invoke_without_command=True,
    epilog="Examples: epochcast serve · epochcast serve --demo · epochcast serve --host 0.0.0.0 --database postgresql://…",
    help="Start the dashboard and the API.",
)


@serve_app.callback()
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any other than loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8642,
    database: Database = None,
    folder: Annotated[Path | None, typer.Option(help="Folder for uploaded model files.")] = None,
    token: Annotated[bool, typer.Option("--token", help="Require a token on loopback, too.")] = False,
    public_name: Annotated[
        list[str] | None, typer.Option(help="Host name of a proxy in front of the server; may be repeated.")
    ] = None,
    webhook: Annotated[
        list[str] | None, typer.Option(help="Webhook URL for drift, finished and over-budget events; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Worker processes.", min=1, max=256)] = 2,
    demo: Annotated[bool, typer.Option("--demo", help="Show made-up runs, in a separate database.")] = False,
) -> int:
    """Start the dashboard and the API; Ctrl-C stops them. `token` manages access from other machines."""
    if context.invoked_subcommand is not None:
        return 0
    with _needed():
        from epochcast.surfaces.web.server_process import default_folder, run_server
        from epochcast.surfaces.web.server_settings import ServerSettings, is_loopback
        from epochcast.surfaces.web.webhooks import check_webhook
    settings = ServerSettings(
        folder=(folder or default_folder()).absolute(),
        database=database,
        host=host,
        port=port,
        needs_token=token or not is_loopback(host),
        workers=workers,
        public_names=tuple(public_name or ()),
        webhooks=tuple(check_webhook(url) for url in webhook or ()),
        is_demo=demo,
    )
    return run_server(settings, _say)


token_app = command_group(
    "token",
    None,
    parent=serve_app,
    no_args_is_help=True,
    epilog="Example: epochcast serve token add ci --scope write --project vision",
    help="Manage access tokens.",
)


@token_app.command(epilog="Example: epochcast serve token add ci --scope write --project vision")
def add(
    name: Annotated[str, typer.Argument(help="Name of the token.", show_default=False)],
    scope: Annotated[list[str] | None, typer.Option(help="read or write; may be repeated [default: both].")] = None,
    project: Annotated[str | None, typer.Option(help="Limit the token to runs of this project.")] = None,
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Create a token. It is shown once; the database stores only a digest."""
    with _needed():
        from epochcast.observe.store.access_tokens import SCOPES, make_token
        from epochcast.observe.store.store_opening import open_store
    with open_store(database) as store:
        secret = make_token(store, name, tuple(scope or SCOPES), project)
    show({"name": name, "token": secret}, as_json, lambda: f"token {name}, shown this once: {secret}")
    return 0


@token_app.command("list", epilog="Example: epochcast serve token list")
def list_tokens(database: Database = None, as_json: Json = False) -> int:
    """List all tokens: names, scopes, projects."""
    with _needed():
        from epochcast.observe.store.access_tokens import all_tokens
        from epochcast.observe.store.store_opening import open_store
    with open_store(database) as store:
        tokens = all_tokens(store)

    def view() -> Any:
        from epochcast.surfaces import render

        return render.tokens(tokens)

    show({"tokens": [asdict(token) for token in tokens]}, as_json, view)
    return 0


@token_app.command(epilog="Example: epochcast serve token end ci")
def end(
    name: Annotated[str, typer.Argument(help="Name of the token.", show_default=False)],
    database: Database = None,
    as_json: Json = False,
) -> int:
    """Revoke a token; takes effect within seconds."""
    with _needed():
        from epochcast.observe.store.access_tokens import end_token
        from epochcast.observe.store.store_opening import open_store
    with open_store(database) as store:
        end_token(store, name)
    show({"name": name, "ended": True}, as_json, lambda: f"token {name} was ended")
    return 0


@contextmanager
def _needed() -> Iterator[None]:
    """For a missing package, name the extra that has it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _NEEDED:
            raise
        raise MissingExtra("serve", error.name) from None


def _say(line: str) -> None:
    sys.stderr.write(f"epochcast: {line}\n")
    sys.stderr.flush()
