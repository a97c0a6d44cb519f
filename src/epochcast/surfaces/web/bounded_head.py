"""HTTP connections on which the head of a request arrives in bounded time, around those of uvicorn.

uvicorn itself waits for ever: whoever opens connections and sends half a line would hold as many as the system gives.
The time counts from the opening of a connection, and from the first byte of every later request on it; between two
requests uvicorn's own limit holds. Bodies have theirs in `request_guard`.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedHead(asyncio.Protocol):
    """One connection."""

    def __init__(self, head_seconds: float, **named: Any) -> None:
        """`named` is what uvicorn makes its connections with."""
        self._head_seconds = head_seconds
        self._http: Any = AutoHTTPProtocol(**named)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._http.connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; wait for the rest of a head."""
        if not self._is_answering:
            self._wait()
        self._http.data_received(data)
        if self._is_answering:
            self._stop()

    def eof_received(self) -> bool | None:
        """Nothing more comes."""
        ends: bool | None = self._http.eof_received()
        return ends

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        self._stop()
        self._http.connection_lost(error)

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """It has read."""
        self._http.resume_writing()

    @property
    def _is_answering(self) -> bool:
        cycle = self._http.cycle
        return cycle is not None and not cycle.response_complete

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._head_seconds, self._too_late)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        self._timer = None
        if self._transport is not None and not self._transport.is_closing() and not self._is_answering:
            self._transport.write(_TOO_LATE)
            self._transport.close()
