"""Workers that end with whoever started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from epochcast.base.child_processes import end_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=end_with_parent, initargs=(os.getpid(),))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 600)
    time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="running processes are looked for in /proc")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_busy_worker_of_a_pool_ends_with_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    os.kill(parent.pid, how)
    parent.wait(30)
    end = time.monotonic() + 30
    while is_running(worker):
        assert time.monotonic() < end, "the worker is still there"
        time.sleep(0.05)
    parent.stdout.close()


def is_running(process: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
