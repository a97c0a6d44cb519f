"""Starting a server: the place it listens on, the first token, and the loop until it is stopped."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import uvicorn

from epochcast.errors import BadInput
from epochcast.observe.store.access_tokens import all_tokens, make_token
from epochcast.observe.store.store_opening import open_store
from epochcast.surfaces.web.bounded_head import BoundedHead
from epochcast.surfaces.web.server_settings import ServerSettings

Say = Callable[[str], None]
# How long open requests may take when the server is stopped.
END_SECONDS = 10
# A thread that writes to the database lets the one that answers go on after this time; Python's own is 5 ms.
SWITCH_SECONDS = 0.001


def run_server(settings: ServerSettings, say: Say) -> int:
    """Serve until SIGINT or SIGTERM. Made-up runs are removed at the end."""
    if not settings.is_demo:
        return _served(settings, say)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn passes it on at its end: the folder goes first
    with TemporaryDirectory(prefix="epochcast-demo-", ignore_cleanup_errors=True) as folder:
        return _served(_with_demo(settings, Path(folder)), say)


def _served(settings: ServerSettings, say: Say) -> int:
    host = settings.host
    listening = listen(host, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    try:
        settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadInput(f"the folder {settings.folder} cannot be made: {error.strerror}") from None
    _first_token(settings, say)
    from epochcast.surfaces.web.server_app import make_app

    app = make_app(settings)
    shown = f"[{host}]" if ":" in host else host
    say(f"serving on http://{shown}:{settings.port} (Ctrl-C ends it)")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=cast(type[asyncio.Protocol], partial(BoundedHead, settings.limits.header_seconds)),
        timeout_graceful_shutdown=END_SECONDS,
        lifespan="on",
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def default_folder() -> Path:
    """Where uploads are kept unless somebody says otherwise."""
    from platformdirs import user_data_path

    return user_data_path("epochcast") / "uploads"


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address, or one line that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise BadInput(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    listening.listen(1024)
    listening.set_inheritable(True)
    return listening


def _first_token(settings: ServerSettings, say: Say) -> None:
    """A server that asks for tokens and has none makes the first one, and shows it this once."""
    if not settings.needs_token:
        return
    with open_store(settings.database) as store:
        if all_tokens(store):
            return
        secret = make_token(store, "first")
    say(f"token, shown this once: {secret}")


def _with_demo(settings: ServerSettings, folder: Path) -> ServerSettings:
    from epochcast.surfaces.web.demo_runs import fill, keep_reporting

    database = str(folder / "store.db")
    fill(database)
    keep_reporting(database)
    return replace(settings, database=database, folder=folder / "uploads")
