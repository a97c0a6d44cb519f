"""What every request passes: a name for what it is, a limit of how many, headers that bind browsers, and a count.

The content policy lets a page load its own scripts, styles and data, and nothing else: no other site, no inline script,
no `eval`. The referrer goes to this server alone: without it (`no-referrer`) browsers would send our own forms with
`Origin: null`, which `access` cannot tell from a form on another site.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epochcast.surfaces.web.metrics import Metrics
from epochcast.surfaces.web.problems import answer_to, problem
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


class Guard:
    """Around the whole application."""

    def __init__(self, app: ASGIApp, limits: RequestLimits, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._rate = Rate(limits.requests_per_second, limits.burst_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
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
            try:
                await self._app(scope, receive, sending)
            except Exception as error:  # of a middleware, or before a route was found
                await answer_to(error)(scope, receive, sending)
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(route, str(status)).inc()
        if route != "/api/v1/events":  # a stream lasts as long as somebody listens
            self._metrics.request_seconds.labels(route).observe(time.monotonic() - began)
