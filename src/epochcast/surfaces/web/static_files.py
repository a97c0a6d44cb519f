"""Scripts, styles and pictures of the pages, made ready when the server starts: compressed, with the digest of each.

The bundle of Vega comes out of vl-convert, which needs a second and tens of megabytes: a process of its own makes it
(`python -m epochcast.surfaces.web.chart_bundle`), and who asks for it meanwhile waits.
"""

import asyncio
import gzip
import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from epochcast.errors import EpochcastError
from epochcast.surfaces.web.problems import log

FOLDER = Path(__file__).parent / "static"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
BUNDLE = "vega.js"
# Ten minutes; after that a browser asks whether its copy is still good, by the digest.
_CACHED = "public, max-age=600, stale-while-revalidate=60"


class NoBundle(EpochcastError):
    """The process that makes the bundle of charts ended without it."""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    digest: str

    @classmethod
    def of(cls, content: bytes, media_type: str) -> "StaticFile":
        """A file, compressed once."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        return cls(content, gzip.compress(content, mtime=0), media_type, digest)

    def answer(self, request: Request) -> Response:
        """Nothing but 304 where the browser has it; compressed where the browser can read that."""
        tag = f'"{self.digest}"'
        headers = {"Cache-Control": _CACHED, "ETag": tag, "Vary": "Accept-Encoding"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.content, media_type=self.media_type, headers=headers)
        headers["Content-Encoding"] = "gzip"
        return Response(self.compressed, media_type=self.media_type, headers=headers)


@dataclass(slots=True)
class StaticFiles:
    """All of a server."""

    _files: Mapping[str, StaticFile] = field(default_factory=dict)
    _bundle: "asyncio.Task[StaticFile] | None" = None

    def start(self) -> None:
        """Read the files; begin to make the bundle."""
        listed = [file for file in FOLDER.iterdir() if file.suffix in TYPES]
        self._files = {file.name: StaticFile.of(file.read_bytes(), TYPES[file.suffix]) for file in listed}
        self._bundle = asyncio.create_task(_made_bundle())

    async def end(self) -> None:
        """Stop making it."""
        if self._bundle is not None:
            self._bundle.cancel()
            with suppress(asyncio.CancelledError, EpochcastError):
                await self._bundle

    async def find(self, name: str) -> StaticFile | None:
        """The file of this name."""
        if name != BUNDLE:
            return self._files.get(name)
        if self._bundle is None or (self._bundle.done() and self._bundle.exception() is not None):
            self._bundle = asyncio.create_task(_made_bundle())  # it failed: once more for whoever asks now
        return await asyncio.shield(self._bundle)


async def _made_bundle() -> StaticFile:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "epochcast.surfaces.web.chart_bundle"),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        content, _ = await process.communicate()
    except BaseException:  # the server ends
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode or not content:
        log.error("the bundle of charts could not be made: its process ended with %s", process.returncode)
        raise NoBundle("the charts cannot be shown: the server could not make their script")
    return await run_in_threadpool(StaticFile.of, content, TYPES[".js"])
