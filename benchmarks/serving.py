"""The server under load, beside a bare FastAPI endpoint on the same machine: `make bench-serve`.

wrk keeps some connections busy for some seconds. Forecasts are asked once with the same question (kept answers) and
once with a batch that always changes (worked out anew by the workers, of a network that is known); reports come in
requests of fifty, once of runs that are all new, each with its first request, and once of a thousand that are known.
`--database URL` measures on PostgreSQL (its tables must be there), `--seconds` says how long each takes. Times are of a
machine that may be shared; the ratio to the bare endpoint tells more. For runs as `ec.track` reports them, each once a
second over a connection of its own, for minutes: `benchmarks.live_runs`.
"""

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 8
ROWS = 50
LIVE_RUNS = 1_000

BARE = """
import sys, uvicorn
from fastapi import FastAPI, Request
app = FastAPI()
ANSWER = {"answer": "x" * 3000}
@app.post("/")
async def answer(request: Request):
    await request.json()
    return ANSWER
uvicorn.run(app, port=int(sys.argv[1]), log_level="error")
"""

SAME = """
wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"model": "resnet50", "device": "A100", "batch": 64, "samples": 50000, "epochs": 10}'
"""
CHANGING = """
wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = n + 1
  local asked = '{"model": "resnet50", "device": "A100", "samples": 50000, "batch": ' .. (1 + n % 4000) .. '}'
  return wrk.format(nil, nil, nil, asked)
end
"""
# `RUN` is which run a request is of, `FIRST` its first step.
REPORTS = f"""
wrk.method = "POST"; wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = n + 1
  local rows = {{}}
  local run, first = RUN, FIRST
  for i = 1, {ROWS} do
    local step = first + i
    local at = 1763370000 + 0.1 * step
    rows[i] = string.format('{{"ec":"train","step":%d,"at":%f,"steps":1,"step_seconds":0.1}}', step, at)
  end
  local start = string.format('{{"job":"load-%s","attempt":1,"at":1763370000,"total_steps":1000000}}', run)
  return wrk.format(nil, nil, nil, '{{"start":' .. start .. ',"observations":[' .. table.concat(rows, ",") .. "]}}")
end
"""
OPENING = REPORTS.replace("RUN", '"new-" .. n').replace("FIRST", "0")
STEADY = REPORTS.replace("RUN", f"n % {LIVE_RUNS}").replace("FIRST", f"math.floor(n / {LIVE_RUNS}) * {ROWS}")


@dataclass(frozen=True)
class Load:
    """What wrk measured."""

    requests_per_second: float
    p99_seconds: float
    failed: int


def measure(url: str, script: str, folder: Path, seconds: int) -> Load:
    """One load."""
    file = folder / "load.lua"
    file.write_text(script)
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", str(file), url]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate = re.search(r"Requests/sec:\s+([\d.]+)", printed)
    last = re.search(r"99%\s+([\d.]+)(us|ms|s)", printed)
    assert rate and last, printed
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", printed)
    unit = {"us": 1e-6, "ms": 1e-3, "s": 1.0}[last[2]]
    return Load(float(rate[1]), float(last[1]) * unit, int(failed[1]) if failed else 0)


def main() -> int:
    """Measure and print a table."""
    if shutil.which("wrk") is None:
        sys.stderr.write("wrk is not there: apt-get install wrk\n")
        return 2
    parser = argparse.ArgumentParser(description="The server under load, beside a bare FastAPI endpoint.")
    parser.add_argument("--database", help="Where runs are kept; a new SQLite file unless told otherwise.")
    parser.add_argument("--seconds", type=int, default=10, help="Of each load.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = asked.database or str(folder / "s.db")
        bare = subprocess.Popen([sys.executable, "-c", BARE, "8651"])
        command = [sys.executable, "-m", "epochcast", "serve", "--port", "8652", "--database", database]
        server = subprocess.Popen([*command, "--folder", str(folder / "uploads")], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None and "serving" in server.stderr.readline()
            wait_until_answered("http://127.0.0.1:8651/")
            url = "http://127.0.0.1:8652/api/v1"
            wait_until_answered(f"{url}/forecast")
            loads = {
                "bare FastAPI endpoint": ("http://127.0.0.1:8651/", SAME),
                "forecast, the same question": (f"{url}/forecast", SAME),
                "forecast, always another batch": (f"{url}/forecast", CHANGING),
                f"{ROWS} reports of a new run": (f"{url}/observations", OPENING),
                f"{ROWS} reports of {LIVE_RUNS:,} runs": (f"{url}/observations", STEADY),
            }
            measure(f"{url}/observations", STEADY, folder, 2)  # opens the thousand
            rows = {what: measure(*load, folder, asked.seconds) for what, load in loads.items()}
        finally:
            for process in (bare, server):
                process.send_signal(signal.SIGTERM)
                process.wait()
    first = rows["bare FastAPI endpoint"].requests_per_second
    print(f"{'':<38} {'requests/s':>11} {'99th pct':>10} {'of bare':>8} {'failed':>7}")
    for what, load in rows.items():
        share, last = load.requests_per_second / first, f"{1e3 * load.p99_seconds:.0f} ms"
        print(f"{what:<38} {load.requests_per_second:>11,.0f} {last:>10} {share:>8.2f} {load.failed:>7}")
    opening, steady = (ROWS * load.requests_per_second for load in list(rows.values())[-2:])
    print(f"reports kept per second: {opening:,.0f} while runs are opened, {steady:,.0f} of known ones")
    return 0


def wait_until_answered(url: str) -> None:
    """Until a server answers, and has what it needs loaded."""
    import time
    import urllib.request

    body = json.dumps({"model": "resnet50", "device": "A100", "batch": 64, "samples": 50000, "epochs": 10}).encode()
    for _ in range(120):
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
            urllib.request.urlopen(request, timeout=60).read()
            return
        except OSError:
            time.sleep(0.5)
    raise RuntimeError(f"{url} does not answer")


if __name__ == "__main__":
    sys.exit(main())
