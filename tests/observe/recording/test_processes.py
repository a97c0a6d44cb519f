"""What ends or copies a process: nothing that was recorded is lost, doubled or waited for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from epochcast.observe.logs.log_reader import read_log

TRACKED = """
import os, signal, sys, time
import epochcast as ec
path = sys.argv[1]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started all of this with Ctrl-C ignored
run = ec.track(job="mine", total=100, to=path)
for _ in range(7):
    run.step()
"""


def ran(path: Path, rest: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", TRACKED + rest, str(path)]
    return subprocess.run(program, check=False, capture_output=True, text=True, timeout=60)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_end_of_the_program_writes_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert ran(path, "").returncode == 0
    assert sum(line.get("steps", 0) for line in lines(path)) == 7
    assert (lines(path)[-1]["ec"], lines(path)[-1]["what"]) == ("stopped", "the program ended")


def test_ctrl_c_writes_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ended = ran(path, "with run:\n    signal.raise_signal(signal.SIGINT)\n")
    assert "KeyboardInterrupt" in ended.stderr
    assert sum(line.get("steps", 0) for line in lines(path)) == 7
    assert lines(path)[-1]["what"] == "KeyboardInterrupt"


def test_kill_9_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ended = ran(
        path,
        "run.settle()\n"
        "while not os.path.exists(path) or '\"step\": 7' not in open(path).read(): time.sleep(0.02)\n"
        "for _ in range(5): run.step()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n",
    )
    assert ended.returncode == -9
    assert read_log(path).reports[-1].step == 7


def test_a_forked_copy_is_silent_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ended = ran(
        path,
        "child = os.fork()\n"
        "for _ in range(1000): run.step(); run.settle()\n"
        "if child == 0: run.close(); sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "run.close()\n",
    )
    assert (ended.stdout.strip(), ended.stderr) == ("3", "")
    assert sum(line.get("steps", 0) for line in lines(path)) == 1007
    assert [line["ec"] for line in lines(path) if "ec" in line].count("end") == 1


def test_workers_of_a_loader_are_no_part_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    ended = ran(
        path,
        "import torch, threading\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, index): run.step(); return threading.active_count()\n"
        "loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2, multiprocessing_context='fork')\n"
        "seen = [int(one) for batch in loader for one in batch]\n"
        "print(run.steps, len(seen))\n"
        "run.close()\n",
    )
    assert ended.stdout.split() == ["7", "8"], ended.stderr
    assert sum(line.get("steps", 0) for line in lines(path)) == 7


def test_tracking_loads_neither_numpy_nor_a_framework(tmp_path: Path) -> None:
    ended = ran(tmp_path / "run.jsonl", "print(sorted({'numpy', 'torch', 'rich', 'sqlalchemy'} & set(sys.modules)))\n")
    assert ended.stdout.strip() == "[]"
