"""Rows to an epochcast server: batches by HTTP, with the standard library alone.

    POST URL/api/v1/observations
    Authorization: Bearer TOKEN                       (EPOCHCAST_TOKEN, where it is set)
    {"start": {…}, "observations": [{…, "number": 17}, …]}

An answer of 200 to 299 says that all of them are kept. Everything else, and no answer in time, is tried again; sending
the same rows twice does no harm. Redirects are not followed: a token goes to the server that was named, and no other.
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from epochcast.observe.recording.recorded_rows import AttemptStart, RecordedRow
from epochcast.observe.recording.sink import ServerRefuses

PATH = "/api/v1/observations"
TOKEN = "EPOCHCAST_TOKEN"
# Longer than this no answer is waited for. Only the thread that sends waits.
ANSWER_SECONDS = 5.0


MOST_ANSWER_BYTES = 1 << 16


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes an error of every redirect."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        """There is none."""


class ServerSink:
    """Sends to one server."""

    def __init__(self, url: str, token: str | None = None, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.name = url.rstrip("/")
        self._url = self.name if self.name.endswith(PATH) else self.name + PATH
        self._token = token if token is not None else os.environ.get(TOKEN)
        self._answer_seconds = answer_seconds
        self._opener = urllib.request.build_opener(_NoRedirect)

    def send(self, start: AttemptStart, rows: Sequence[RecordedRow]) -> int:
        """Send all in one request."""
        observations = [{**row.as_dict(start), "number": row.number} for row in rows]
        body = json.dumps({"start": start.as_dict(), "observations": observations}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "epochcast"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._url, body, headers, method="POST")
        try:
            with self._opener.open(request, timeout=self._answer_seconds) as answer:
                answer.read(MOST_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            raise ServerRefuses(f"the server answers {error.code}: {_detail(error)}", error.code) from None
        except urllib.error.URLError as error:
            raise ServerRefuses(f"the server cannot be reached: {error.reason}") from None
        return len(rows)


def _detail(error: urllib.error.HTTPError) -> str:
    """The sentence of an epochcast server; of others what HTTP calls it, and where a redirect leads."""
    if 300 <= error.code < 400:
        return f"report to {error.headers.get('Location', 'elsewhere')} instead"
    try:
        return str(json.loads(error.read(MOST_ANSWER_BYTES))["detail"])[:300]
    except (OSError, ValueError, KeyError, TypeError):
        return str(error.reason)
