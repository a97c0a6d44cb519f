"""What is compiled is kept on disk, and a process that cannot keep it works all the same."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from epochcast.schedule.policies.numba_functions import compiled, is_cached
import small
before = is_cached(small.twice)
print(before, small.twice(21), is_cached(small.twice))
"""
SMALL = """
from epochcast.schedule.policies.numba_functions import compiled

@compiled
def twice(number):
    return 2 * number
"""


def _ran(folder: Path, cache: Path) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "NUMBA_CACHE_DIR": str(cache)}
    ran = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_what_was_compiled_is_ready_in_the_next_process(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(SMALL)
    assert _ran(tmp_path, tmp_path / "cache") == "False 42 True"
    assert _ran(tmp_path, tmp_path / "cache") == "True 42 True"
    # A file that changed is compiled anew.
    os.utime(tmp_path / "small.py", (4e9, 4e9))
    assert _ran(tmp_path, tmp_path / "cache") == "False 42 True"
