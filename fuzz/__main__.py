"""`make fuzz`: damaged input of every kind for some minutes; nothing but a user's error may come out.

    python -m fuzz [--seconds 600] [--seed 0] [TARGET …]

Every target (spec files, ONNX, Keras, Hugging Face configs, tables, caches, …) gets an equal part of the time, in a
process of its own. What ended in another error, took more than ten seconds or filled memory is listed with its
shortest input, and the exit code is 1. Not part of `make test`: what it found once is a case of a test there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.targets import TARGETS

# What a process may need beyond its time: imports, and one input that hangs.
GRACE_SECONDS = 300


def main() -> int:
    """Run the targets one after another."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other inputs (default: 0)")
    options = parser.parse_args()
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"no target {name!r}; known: {', '.join(TARGETS)}")
    names = options.targets or list(TARGETS)
    total = 0
    for name in names:
        total += fuzzed(name, options.seconds / len(names), options.seed)
    print(f"{total} kinds of findings" if total else "nothing but user errors")
    return 1 if total else 0


def fuzzed(name: str, seconds: float, seed: int) -> int:
    """Run one target, print what it found, and give how many kinds there are."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        environment = {**os.environ, "EPOCHCAST_CACHE": "off", "EPOCHCAST_PROFILES": folder, "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-m", "fuzz.watch", name, str(seconds), str(seed), str(out)]
        problem = ""
        try:
            done = subprocess.run(
                command, env=environment, timeout=seconds + GRACE_SECONDS, capture_output=True, text=True, check=False
            )
            if done.returncode:
                problem = f"the process ended with {done.returncode}: {_last_lines(done.stderr)}"
        except subprocess.TimeoutExpired:
            problem = "an input hung in code that cannot be interrupted"
        answer = json.loads(out.read_text()) if out.is_file() else {"inputs": 0, "found": {}}
    found = answer["found"]
    print(f"{name}: {answer['inputs']} inputs, {len(found)} kinds", flush=True)
    for kind, about in sorted(found.items(), key=lambda item: -item[1]["count"]):
        print(f"  {about['count']:>5} × {kind}: {about['message']}")
        for line in about["trail"]:
            print(f"          {line}")
        print(f"          input: {about['input']}")
    if problem:
        print(f"  {problem}")
    return len(found) + bool(problem)


def _last_lines(text: str) -> str:
    return "\n".join(line[:200] for line in text.splitlines()[-12:])


if __name__ == "__main__":
    sys.exit(main())
