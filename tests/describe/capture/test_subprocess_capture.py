"""The user's code in a process of its own: nothing mixes, nothing lands in our output, nothing outlives us."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import epochcast as ec
from epochcast.describe.capture.import_watch import MOST_FILES
from epochcast.surfaces.cli import command_line as app

NETWORK = """
import os
import sys
from helper import WIDTH
import torch

DEPTH = int(os.environ.get("OWN_DEPTH", "1"))
SCALE = int(open(os.path.join(os.path.dirname(__file__), "scale.txt")).read())
print("hello from", sys.argv)


def make():
    import late

    return torch.nn.Sequential(*[torch.nn.Linear(WIDTH * SCALE, 10) for _ in range(DEPTH)][:1])
"""


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHCAST_CACHE", str(tmp_path / "kept"))


def written(folder: Path, width: int) -> str:
    folder.mkdir()
    (folder / "net.py").write_text(NETWORK, encoding="utf-8")
    (folder / "helper.py").write_text(f"WIDTH = {width}\n", encoding="utf-8")
    (folder / "late.py").write_text("", encoding="utf-8")
    (folder / "scale.txt").write_text("1", encoding="utf-8")
    return f"{folder}/net.py:make"


def parameters(reference: str) -> int | None:
    return ec.forecast(reference, device="V100", batch=64).parameters


def test_equally_named_neighbours_do_not_mix_and_a_changed_import_changes_the_answer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = written(tmp_path / "a", 60), written(tmp_path / "b", 30720)
    modules, path = set(sys.modules), list(sys.path)
    session = ec.Session()
    assert ec.forecast(small, device="V100", batch=64, session=session).parameters == 610
    assert parameters(large) == 307_210
    printed = capfd.readouterr()
    assert printed.out == ""
    assert f"hello from ['{tmp_path}/a/net.py']" in printed.err
    assert not {"helper", "late", "epochcast_user_net"} & (set(sys.modules) - modules)
    assert sys.path == path
    assert parameters(small) == 610  # from the cache: nothing runs
    assert "hello" not in capfd.readouterr().err
    (tmp_path / "a" / "helper.py").write_text("WIDTH = 70\n", encoding="utf-8")
    assert ec.forecast(small, device="V100", batch=64, session=session).parameters == 710
    (tmp_path / "a" / "scale.txt").write_text("2", encoding="utf-8")
    assert parameters(small) == 1410


def test_compiled_files_of_libraries_do_not_keep_a_capture_from_being_read_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """transformers and Lightning open thousands of them."""
    reference = written(tmp_path / "a", 60)
    opened = f"for n in range({MOST_FILES + 100}):\n    p = '{tmp_path}/%d.pyc' % n\n"
    opening = f"{opened}    open(p, 'w').close()\n    open(p).close()\n"
    (tmp_path / "a" / "helper.py").write_text(f"WIDTH = 60\n{opening}", encoding="utf-8")
    assert parameters(reference) == 610
    assert capfd.readouterr().err.count("hello from") == 1  # one process answers all questions
    assert parameters(reference) == 610
    assert "hello" not in capfd.readouterr().err


def test_a_variable_that_the_file_reads_is_part_of_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "net.py").write_text(
        "import os, torch\ndef make():\n    return torch.nn.Linear(int(os.environ['OWN_WIDTH']), 1)\n", encoding="utf-8"
    )
    for width in (3, 5):
        monkeypatch.setenv("OWN_WIDTH", str(width))
        assert parameters(f"{tmp_path}/net.py:make") == width + 1


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--data', required=True)\n"
            "parser.parse_args()\n",
            "ends the program (SystemExit: 2): net.py: error: the following arguments are required: --data",
        ),
        (
            "def make():\n    import os\n    print('last words')\n    os._exit(7)\n",
            "ended with exit code 7, without an",
        ),
        (
            "def make():\n    print('loading')\n    raise SystemExit('no data found')\n",
            "net.py:make ends the program: no data found",
        ),
    ],
    ids=["argparse", "a crash", "its own words"],
)
def test_a_program_that_ends_itself_is_one_line(
    code: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(
        f"{code}\ndef other(): pass\nmake = globals().get('make', other)\n", encoding="utf-8"
    )
    assert app.run(["forecast", f"{tmp_path}/net.py:make", "--device", "V100", "--batch", "64", "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *_ = printed.err.splitlines()
    assert says in first
    assert "Traceback" not in printed.err
    assert "loading" not in printed.err


def test_a_failure_shows_lines_of_the_users_file_and_none_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import torch\ndef load(): return torch.load('nowhere.pt')\ndef make(): return load()\ndef needs(x): return x\n"
    )
    (tmp_path / "net.py").write_text(code, encoding="utf-8")
    for name, lines in (("make", ["line 3, in make", "line 2, in load"]), ("needs", [])):
        assert app.run(["forecast", f"{tmp_path}/net.py:{name}", "--device", "V100", "--batch", "64"]) == 2
        printed = capsys.readouterr().err
        assert all(line in printed for line in lines)
        assert "epochcast/describe/capture" not in printed.replace("\\", "/")


def test_what_the_code_prints_is_not_in_the_json(tmp_path: Path) -> None:
    reference = written(tmp_path / "a", 60)
    command = [sys.executable, "-m", "epochcast", "forecast", reference, "--device", "V100", "--batch", "64", "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout)["parameters"] == 610
    assert "hello from" in ended.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_its_parent(how: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import os, time\ndef make():\n    open('pid.part', 'w').write(str(os.getpid()))\n"
        "    os.rename('pid.part', 'pid')\n    time.sleep(600)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "epochcast", "forecast", "net.py:make", "--device", "V100", "--batch", "1"]
    parent = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "pid").exists, 120)
    child = int((tmp_path / "pid").read_text(encoding="utf-8"))
    assert is_running(child)
    parent.send_signal(how)
    parent.wait(30)
    wait_until(lambda: not is_running(child), 30)


def wait_until(holds: object, seconds: float) -> None:
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
