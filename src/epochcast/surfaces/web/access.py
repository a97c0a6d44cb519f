"""Who may do what: the token of a request, or loopback alone where the server needs none.

Scripts send `Authorization: Bearer TOKEN`. A browser sends the token once to `/login` and gets a cookie that scripts of
pages cannot read and other sites cannot send. What changes something also has to come from a page of this server
(`Origin`), so that no other site can have a browser do it.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from epochcast.observe.store.access_tokens import SCOPES, Token, digest_of, find_token, note_used
from epochcast.observe.store.store import Store
from epochcast.observe.store.store_errors import StoreError, Unavailable
from epochcast.surfaces.web.problems import Problem
from epochcast.surfaces.web.server_settings import ServerSettings

COOKIE = "epochcast_token"
# A token that was ended is still let in for so long; looking it up for every request would cost as much as answering.
KNOWN_SECONDS = 5.0
MOST_KNOWN = 1_000
_SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `project` None: all projects."""

    name: str
    scopes: tuple[str, ...]
    project: str | None = None

    def may_see(self, project: str | None) -> bool:
        """Whether something of a project may be shown."""
        return self.project is None or self.project == project


ANYBODY = Caller("loopback", SCOPES)


@dataclass(slots=True)
class Access:
    """The door of one server."""

    settings: ServerSettings
    store: Store
    _looked_up: dict[str, tuple[float, Token | None]] = field(default_factory=dict)

    def check_page(self, request: Request) -> None:
        """Refuse what a page of another site has a browser do."""
        self._check_name(request)
        if request.method not in _SAFE:
            _check_origin(request)

    async def caller(self, request: Request, scope: str) -> Caller:
        """Who asks, if they may; otherwise a `Problem`."""
        self.check_page(request)
        caller = await self._identified(request)
        if scope not in caller.scopes:
            raise Problem(HTTPStatus.FORBIDDEN, f"this token may not {scope}")
        return caller

    async def _identified(self, request: Request) -> Caller:
        secret = secret_of(request)
        if secret is None:
            if not self.settings.needs_token:
                return ANYBODY
            raise _unknown("a token is needed: Authorization: Bearer TOKEN, or log in at /login")
        token = await self.token(secret)
        if token is None:
            raise _unknown("this token is unknown, or was ended")
        return Caller(token.name, token.scopes, token.project)

    async def is_let_in(self, request: Request) -> bool:
        """Whether the token of a request that was let in is still good; also while the database cannot say."""
        try:
            await self._identified(request)
        except Problem:
            return False
        except Unavailable:
            return True
        return True

    async def token(self, secret: str) -> Token | None:
        """The token with this text, looked up at most every few seconds."""
        digest, now = digest_of(secret), time.monotonic()
        kept = self._looked_up.get(digest)
        if kept is not None and now - kept[0] < KNOWN_SECONDS:
            return kept[1]
        token = await run_in_threadpool(_used_token, self.store, secret)
        if len(self._looked_up) >= MOST_KNOWN:
            self._looked_up.clear()
        self._looked_up[digest] = now, token
        return token

    def _check_name(self, request: Request) -> None:
        """Refuse a page of another site whose name leads to this address (DNS rebinding)."""
        if self.settings.is_open_to_any_name:
            return
        name = _host(request.headers.get("host", ""))
        if name not in self.settings.names:
            raise Problem(HTTPStatus.MISDIRECTED_REQUEST, f"this server is not called {name[:100]!r}")


def _used_token(store: Store, secret: str) -> Token | None:
    """The token, noted as used; one whose use cannot be written (a full disk) still lets in."""
    token = find_token(store, secret)
    if token is not None:
        with suppress(StoreError):
            note_used(store, token)
    return token


def secret_of(request: Request) -> str | None:
    """The token that a request carries."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.casefold() == "bearer" and secret.strip():
        return secret.strip()
    return request.cookies.get(COOKIE) or None


def _check_origin(request: Request) -> None:
    """A browser says which page asks; scripts say nothing.

    A page that hides its address has the origin `null`. `Sec-Fetch-Site`, which no page can set, then decides.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    match origin:
        case None:
            is_own = site in (None, "none", "same-origin")
        case "null":
            is_own = site == "same-origin"
        case _:
            is_own = urlsplit(origin).netloc.casefold() == request.headers.get("host", "").casefold()
    if not is_own:
        raise Problem(HTTPStatus.FORBIDDEN, "this request comes from a page of another site")


def _host(header: str) -> str:
    """Without the port."""
    name = header.casefold()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _unknown(detail: str) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": "Bearer"})
