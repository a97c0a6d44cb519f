"""Tokens that let somebody in: random, shown once, kept as a digest alone.

A token has scopes (`read`, `write`) and may belong to a project: then it sees and adds the runs of that project only.
A digest without a salt is enough, since a token is 256 random bits and cannot be guessed from a list.
"""

import hashlib
import secrets
import time
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.store.database_tables import tokens
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_rows import checked_name

SCOPES = ("read", "write")
PREFIX = "ec_"
USED_SECONDS = 60.0
"""When a token was last used is known this well."""
_COLUMNS = ("id", "name", "project", "added_at_seconds", "ended_at_seconds", "used_at_seconds")


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. `project` None: all of them."""

    id: int
    name: str
    scopes: tuple[str, ...]
    project: str | None
    added_at_seconds: float
    ended_at_seconds: float | None = None
    used_at_seconds: float | None = None


def make_token(store: Store, name: str, scopes: tuple[str, ...] = SCOPES, project: str | None = None) -> str:
    """A new token under a name; what is given back is never shown again."""
    for scope in scopes:
        if scope not in SCOPES:
            raise UnknownName("scope", scope, SCOPES)
    if not scopes:
        raise BadInput("a token needs a scope: read, write")
    if project is not None and "/" in project:  # it stands before the names of runs, with a slash between them
        raise BadInput(f"the name of a project has no slash, got {project[:100]!r}")
    secret = PREFIX + secrets.token_urlsafe(32)
    values = {
        "name": checked_name(name),
        "digest": digest_of(secret),
        "scopes": ",".join(sorted(set(scopes))),
        "project": None if project is None else checked_name(project),
        "added_at_seconds": time.time(),
    }
    with store.writing() as connection:
        if connection.execute(select(tokens.c.id).where(tokens.c.name == values["name"])).first() is not None:
            raise BadInput(f"there is a token called {name!r} already")
        connection.execute(insert(tokens).values(**values))
    return secret


def find_token(store: Store, secret: str) -> Token | None:
    """The token with this text; None for one that is unknown or was ended."""
    query = select(tokens).where(tokens.c.digest == digest_of(secret), tokens.c.ended_at_seconds.is_(None))
    with store.reading() as connection:
        row = connection.execute(query).first()
    return None if row is None else _token(row)


def note_used(store: Store, token: Token) -> None:
    """It was used now."""
    now = time.time()
    if token.used_at_seconds is None or abs(now - token.used_at_seconds) > USED_SECONDS:
        with store.writing() as connection:
            connection.execute(update(tokens).where(tokens.c.id == token.id).values(used_at_seconds=now))


def all_tokens(store: Store) -> list[Token]:
    """Every token, the newest first."""
    with store.reading() as connection:
        return [_token(row) for row in connection.execute(select(tokens).order_by(tokens.c.id.desc()))]


def end_token(store: Store, name: str) -> None:
    """A token lets nobody in from now on."""
    with store.writing() as connection:
        ended = connection.execute(
            update(tokens)
            .where(tokens.c.name == name, tokens.c.ended_at_seconds.is_(None))
            .values(ended_at_seconds=time.time())
        )
        if ended.rowcount == 0:
            raise UnknownName("token", name, connection.execute(select(tokens.c.name)).scalars())


def digest_of(secret: str) -> str:
    """What is kept of a token's text."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _token(row: object) -> Token:
    values = {name: getattr(row, name) for name in _COLUMNS}
    return Token(scopes=tuple(str(getattr(row, "scopes")).split(",")), **values)  # noqa: B009
