"""What every request passes: limits of how many and how slow, headers that bind browsers, and a count.

The content policy lets a page load its own scripts, styles and data, and nothing else: no other site, no inline script,
no `eval`. The referrer goes to this server alone: without it (`no-referrer`) browsers would send our own forms with
`Origin: null`, which `access` cannot tell from a form on another site.
"""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epochcast.surfaces.web.metrics import Metrics
from epochcast.surfaces.web.problems import Problem, answer_to, problem
from epochcast.surfaces.web.server_settings import RequestLimits

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
MOST_CALLERS = 10_000


@dataclass(slots=True)
class Rate:
    """A bucket of requests for every address: so many at once, so many more each second."""

    per_second: float
    most: int
    _buckets: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def takes(self, address: str, now: float) -> bool:
        """Whether another request of this address is answered."""
        left, at = self._buckets.pop(address, (float(self.most), now))
        left = min(float(self.most), left + (now - at) * self.per_second)
        self._buckets[address] = max(0.0, left - 1), now
        while len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        return left >= 1


@dataclass(slots=True)
class BoundedBody:
    """The parts of a request's body, each and all of them in bounded time; then what comes after, whenever."""

    receive: Receive
    part_seconds: float
    all_seconds: float
    _end: float | None = None
    _is_whole: bool = False

    async def __call__(self) -> Message:
        """The next part; a `Problem` where it does not come in time."""
        if self._is_whole:
            return await self.receive()
        now = time.monotonic()
        if self._end is None:
            self._end = now + self.all_seconds
        try:
            part = await asyncio.wait_for(self.receive(), max(0.0, min(self.part_seconds, self._end - now)))
        except TimeoutError:
            self._is_whole = True
            close = {"Connection": "close"}
            raise Problem(HTTPStatus.REQUEST_TIMEOUT, "the body of the request did not arrive in time", close) from None
        self._is_whole = not part.get("more_body", False)
        return part


class Guard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, limits: RequestLimits, metrics: Metrics) -> None:
        self._app, self._metrics, self._limits = app, metrics, limits
        self._rate = Rate(limits.requests_per_second, limits.burst_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, has_begun = time.monotonic(), HTTPStatus.INTERNAL_SERVER_ERROR.value, False

        async def sending(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                names = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(header for header in _HEADERS if header[0] not in names)]
            await send(message)

        client = scope.get("client")
        address = client[0] if client else ""
        if not self._rate.takes(address, began):
            retry = {"Retry-After": "1"}
            refused = problem(HTTPStatus.TOO_MANY_REQUESTS, "too many requests from this address", retry)
            await refused(scope, receive, sending)
        else:
            body = BoundedBody(receive, self._limits.body_part_seconds, self._limits.body_seconds)
            try:
                await self._app(scope, body, sending)
            except Exception as error:  # of a middleware, or before a route was found
                answer = answer_to(Request(scope), error)
                if not has_begun:
                    await answer(scope, receive, sending)
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(route, str(status)).inc()
        if route != "/api/v1/events":  # a stream lasts as long as somebody listens
            self._metrics.request_seconds.labels(route).observe(time.monotonic() - began)
