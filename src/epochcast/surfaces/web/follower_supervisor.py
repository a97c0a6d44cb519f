"""The process beside the server (`follower`), started again where it died."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from epochcast.surfaces.web.problems import log

AGAIN_SECONDS = 2.0


@dataclass(slots=True)
class FollowerSupervisor:
    """Keeps a follower running."""

    database: str
    holder: str
    webhooks: tuple[str, ...] = ()
    process: "asyncio.subprocess.Process | None" = None
    _task: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._keep())

    async def end(self) -> None:
        """End the process, kindly: it gives its lease back."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), AGAIN_SECONDS)
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    async def _keep(self) -> None:
        settings = json.dumps({"database": self.database, "holder": self.holder, "webhooks": list(self.webhooks)})
        while True:
            self.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "epochcast.surfaces.web.follower_process", str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
            assert self.process.stdin is not None
            with suppress(ConnectionError):
                self.process.stdin.write(settings.encode() + b"\n")
                await self.process.stdin.drain()
                self.process.stdin.close()
            code = await self.process.wait()
            log.warning("the process that follows runs ended with %s; it is started again", code)
            await asyncio.sleep(AGAIN_SECONDS)
