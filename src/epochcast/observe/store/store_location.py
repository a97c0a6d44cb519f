"""Where the database is: at the given URL or path, at EPOCHCAST_STORE, or in the user's data folder."""

import os
import re
from pathlib import Path

from epochcast.errors import BadInput

VARIABLE = "EPOCHCAST_STORE"
_SCHEME = re.compile(r"([A-Za-z][\w+.-]*)://")
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")


def database_url(database: str | None = None) -> str:
    """The URL of the database, `sqlite:///PATH` or `postgresql+psycopg://…`; a path alone is an SQLite file."""
    text = (database if database is not None else os.environ.get(VARIABLE, "")).strip()
    if not text:
        if database is not None:
            raise BadInput("the URL of the database is empty")
        return _file_url(default_file())
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _file_url(Path(text).expanduser())
    if scheme[1] == "sqlite":
        path = text[len("sqlite:///") :] if text.startswith("sqlite:///") else ""
        if not path or path == ":memory:":
            raise BadInput("an SQLite database is a file: sqlite:///PATH (four slashes for a path from the root)")
        return _file_url(Path(path))
    if scheme[1] in _POSTGRES:
        return f"postgresql+psycopg://{text[scheme.end() :]}"
    raise BadInput(f"the database is SQLite (a path or sqlite:///PATH) or postgresql://…, got {scheme[1]}://…")


def default_file() -> Path:
    """The SQLite file that is used where nobody names another."""
    from platformdirs import user_data_path

    return user_data_path("epochcast") / "store.db"


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite database; None for a server."""
    return Path(url[len("sqlite:///") :]) if url.startswith("sqlite:///") else None


def shown_url(url: str) -> str:
    """The URL as it may be printed: a file as its path, no password."""
    file = sqlite_file(url)
    if file is not None:
        return str(file)
    plain = re.sub(r"^postgresql\+psycopg://", "postgresql://", url)
    plain = re.sub(r"^(postgresql://[^/?#]*?):[^/?#]*@", r"\1:***@", plain)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", plain)


def _file_url(path: Path) -> str:
    return f"sqlite:///{path.absolute()}"
