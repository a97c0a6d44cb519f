"""A thousand runs that report to a server at the same time, for minutes or hours: `python -m benchmarks.live_runs`, or
`make soak SECONDS=3600`.

Each run has a connection of its own and sends its reports once a second, as `ec.track` does, whether or not the server
has answered the one before: a time counts from when a request was due, so that a server that falls behind is seen. The
runs are opened in the first seconds. Meanwhile somebody listens to all events, and the page of runs and the counts for
Prometheus are asked for every few seconds. Every ten seconds a line tells the rate, the times, and the memory of the
server with its follower. At the end: times over all, how memory changed after `--settle` seconds, and whether every
report that was acknowledged is in the store. The exit code is 1 where one is lost, or a request failed.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

WINDOW_SECONDS = 10.0
LOOK_SECONDS = 2.0


@dataclass
class Heard:
    """What happened in a window of time."""

    seconds: list[float] = field(default_factory=list)
    look_seconds: dict[str, list[float]] = field(default_factory=dict)
    events: int = 0
    failed: int = 0


@dataclass
class Account:
    """What happened in all: seconds of every request, reports that were acknowledged, memory by time."""

    seconds: "array[float]" = field(default_factory=lambda: array("f"))
    reports: int = 0
    failed: int = 0
    memory: list[tuple[float, dict[str, int]]] = field(default_factory=list)

    def change(self, name: str, settle_seconds: float) -> float | None:
        """By what part the memory of a process changed: the mean of the last tenth over that after it settled."""
        held = [memory[name] for at, memory in self.memory if at >= settle_seconds and name in memory]
        if len(held) < 4:
            return None
        tenth = max(1, len(held) // 10)
        return sum(held[-tenth:]) / sum(held[:tenth]) - 1


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str, body: bytes = b"") -> int:
    """The status of an answer, which is read to its end."""
    writer.write(f"{head}Host: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    first = await reader.readline()
    length = 0
    while (line := await reader.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line[15:])
    await reader.readexactly(length)
    return int(first.split()[1])


def reports(run: int, second: int, rows: int) -> bytes:
    """The reports of one second of a run."""
    began = 1_763_370_000.0
    start = {"job": f"live-{run}", "attempt": 1, "at": began, "total_steps": 1_000_000}
    observations = [
        {"ec": "train", "step": step, "at": began + step / rows, "steps": 1, "step_seconds": 1 / rows, "loss": 2.5}
        for step in range(second * rows, (second + 1) * rows)
    ]
    return json.dumps({"start": start, "observations": observations}).encode()


async def one_run(
    port: int, run: int, runs: int, seconds: float, rows: int, heard: Heard, account: Account, begin: float
) -> None:
    """Report until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /api/v1/observations HTTP/1.1\r\nContent-Type: application/json\r\n"
    due = begin + run / runs
    for second in range(int(seconds)):
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        status = await request(reader, writer, head, reports(run, second, rows))
        heard.seconds.append(time.monotonic() - due)
        account.seconds.append(heard.seconds[-1])
        heard.failed += status != 200
        account.failed += status != 200
        account.reports += rows if status == 200 else 0
        due += 1.0
    writer.close()


async def look(port: int, heard: Heard) -> None:
    """Ask for what people and Prometheus look at."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        for path in ("/runs", "/metrics", "/api/v1/runs"):
            began = time.monotonic()
            heard.failed += await request(reader, writer, f"GET {path} HTTP/1.1\r\n") != 200
            heard.look_seconds.setdefault(path, []).append(time.monotonic() - began)
        await asyncio.sleep(LOOK_SECONDS)


async def listen(port: int, heard: Heard) -> None:
    """Hear all events."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while line := await reader.readline():
        heard.events += line.startswith(b"event:")


def resident_bytes(process: int) -> dict[str, int]:
    """Of a server and its follower."""
    listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    followers = [int(child) for child in listed if "web.follower" in Path(f"/proc/{child}/cmdline").read_text()]
    processes = {"server": process, **dict(zip(["follower"], followers, strict=False))}
    return {
        name: int(Path(f"/proc/{number}/statm").read_text().split()[1]) * 4096 for name, number in processes.items()
    }


def at(seconds: Sequence[float], fraction: float) -> float:
    """A quantile, in milliseconds."""
    return 1e3 * sorted(seconds)[min(len(seconds) - 1, int(fraction * len(seconds)))] if seconds else 0.0


async def tell(process: int, heard: Heard, account: Account, rows: int) -> None:
    """A line for every window."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(WINDOW_SECONDS)
        seconds, looks, events, failed = heard.seconds, heard.look_seconds, heard.events, heard.failed
        heard.seconds, heard.look_seconds, heard.events, heard.failed = [], {}, 0, 0
        resident = resident_bytes(process)
        account.memory.append((time.monotonic() - began, resident))
        memory = " ".join(f"{name} {held / 2**20:.0f} MiB" for name, held in resident.items())
        seen = " ".join(f"{path} {at(each, 1.0):.0f}" for path, each in looks.items())
        print(
            f"{time.monotonic() - began:5.0f} s  {len(seconds) * rows / WINDOW_SECONDS:6,.0f} reports/s  "
            f"p50 {at(seconds, 0.5):4.0f}  p99 {at(seconds, 0.99):4.0f}  max {at(seconds, 1.0):4.0f} ms  "
            f"longest look [ms]: {seen}  events/s {events / WINDOW_SECONDS:.0f}  {memory}  failed {failed}",
            flush=True,
        )


async def play(port: int, process: int, runs: int, seconds: float, rows: int) -> Account:
    """All of it."""
    heard, account = Heard(), Account()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = json.dumps({"model": "resnet18", "device": "A100", "batch": 8}).encode()
    head = "POST /api/v1/forecast HTTP/1.1\r\nContent-Type: application/json\r\n"
    for batch in range(1, 5):  # until both workers have loaded what they need
        await request(reader, writer, head, asked.replace(b"8}", b"%d}" % batch))
    beside = [look(port, heard), listen(port, heard), tell(process, heard, account, rows)]
    tasks = [asyncio.create_task(watcher) for watcher in beside]
    begin = time.monotonic() + 1.0
    await asyncio.gather(*(one_run(port, run, runs, seconds, rows, heard, account, begin) for run in range(runs)))
    for task in tasks:
        task.cancel()
    return account


def lost_reports(database: str, account: Account) -> int:
    """Acknowledged reports that are not in the store."""
    from epochcast.observe.store.store_opening import open_store

    with open_store(database) as store:
        return account.reports - store.count_observations()


def summary(account: Account, lost: int, settle_seconds: float) -> str:
    """All in some lines."""
    lines = [
        f"{len(account.seconds):,} requests, {account.reports:,} reports acknowledged, {lost:,} lost, "
        f"{account.failed:,} failed",
        *(f"{name} {at(account.seconds, part):.0f} ms" for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))),
    ]
    for name in ("server", "follower"):
        change = account.change(name, settle_seconds)
        if change is not None:
            lines.append(f"memory of the {name} after {settle_seconds:g} s: {change:+.1%} until the end")
    return "\n".join(lines)


def main() -> int:
    """Start a server and report to it."""
    parser = argparse.ArgumentParser(description="A thousand live runs on one server.")
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=5, help="Reports of a run in a second.")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--settle", type=float, default=600.0, help="Seconds before memory has to be flat.")
    parser.add_argument("--database", help="Where runs are kept; a new SQLite file unless told otherwise.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        database = asked.database or str(Path(name) / "s.db")
        command = [sys.executable, "-m", "epochcast", "serve", "--port", "0", "--database", database]
        server = subprocess.Popen([*command, "--folder", f"{name}/uploads"], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            port = int(server.stderr.readline().split("http://")[1].split()[0].rpartition(":")[2])
            account = asyncio.run(play(port, server.pid, asked.runs, asked.seconds, asked.rows))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
        lost = lost_reports(database, account)
        print(summary(account, lost, asked.settle))
    return 1 if lost or account.failed else 0


if __name__ == "__main__":
    sys.exit(main())
