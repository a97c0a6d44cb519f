"""Real servers: processes that tests start, call over loopback and end."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import httpx
import pytest

START_SECONDS = 90


class Served:
    """A server as `epochcast serve` starts it."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "epochcast", "serve", "--port", "0", *arguments]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
        )
        self.said: list[str] = []
        self._lines: Queue[str | None] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.url = self._address()
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.rstrip())
            self._lines.put(line)
        self._lines.put(None)

    def _address(self) -> str:
        while True:
            try:
                line = self._lines.get(timeout=START_SECONDS)
            except Empty:
                self.end()
                pytest.fail(f"the server did not start: {self.said}")
            if line is None:
                pytest.fail(f"the server ended: {self.said}")
            address = re.search(r"serving on (http://\S+)", line)
            if address:
                return address[1]

    @property
    def token(self) -> str:
        """The token that it showed."""
        return next(line.rpartition(" ")[2] for line in self.said if "shown this once" in line)

    def kill(self) -> None:
        """As a power cut ends it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """As Ctrl-C or systemd end it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    """One on loopback, where no token is asked for."""
    served = Served("--database", str(folder / "store.db"), "--folder", str(folder / "uploads"), "--workers", "1")
    yield served
    served.end()


@pytest.fixture(scope="module")
def client(server: Served) -> httpx.Client:
    return server.client
