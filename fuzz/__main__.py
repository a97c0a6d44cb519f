"""`make fuzz`: damaged input of every kind for some minutes; nothing but a user's error may come out.

    python -m fuzz [--seconds 600] [--seed 0] [--keep build/fuzz] [TARGET …]
    python -m fuzz --replay FILE…

Every target (spec files, ONNX, Keras, Hugging Face configs, tables, caches, …) gets an equal part of the time, in a
process of its own. What ended in another error, took more than ten seconds or filled memory is listed with its
shortest input in a file of its own, which `--replay` reads once more, and the exit code is 1. Not part of `make test`:
what it found once is a case of a test there.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from epochcast.errors import EpochcastError
from fuzz import kept
from fuzz.targets import TARGETS
from fuzz.watch import CURRENT

# What a process may need beyond its time: imports, and one input that hangs.
GRACE_SECONDS = 300


def main() -> int:
    """Run the targets one after another."""
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=600, help="for all targets together (default: 600)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other inputs (default: 0)")
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="folder of inputs (default: build/fuzz)")
    parser.add_argument("--replay", nargs="+", type=Path, metavar="FILE", help="read inputs that were kept")
    options = parser.parse_args()
    if options.replay:
        return replayed(options.replay)
    for name in options.targets:
        if name not in TARGETS:
            parser.error(f"no target {name!r}; known: {', '.join(TARGETS)}")
    names = options.targets or list(TARGETS)
    total = 0
    for name in names:
        total += fuzzed(name, options.seconds / len(names), options.seed, options.keep)
    print(f"{total} kinds of findings" if total else "nothing but user errors")
    return 1 if total else 0


def replayed(files: list[Path]) -> int:
    """Read kept inputs; what is no user's error is raised as it is."""
    for file in files:
        name, case = kept.read(file)
        with tempfile.TemporaryDirectory() as folder:
            os.environ |= _environment(folder)
            try:
                TARGETS[name].read(Path(folder), case)
                print(f"{file}: read")
            except EpochcastError as error:
                print(f"{file}: {error}")
    return 0


def _environment(folder: str) -> dict[str, str]:
    return {"EPOCHCAST_CACHE": "off", "EPOCHCAST_PROFILES": folder, "HF_HUB_OFFLINE": "1"}


def fuzzed(name: str, seconds: float, seed: int, keep: Path) -> int:
    """Run one target, print what it found, keep the inputs, and give how many kinds there are."""
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        environment = {**os.environ, **_environment(folder)}
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
        answer: dict[str, Any] = json.loads(out.read_text()) if out.is_file() else {"inputs": 0, "found": {}}
        current = out.with_name(CURRENT)
        if problem and current.is_file():
            problem += f"\n          input: {shutil.copy(current, keep / f'{name}-last.json')}"
    problems = answer["found"]
    print(f"{name}: {answer['inputs']} inputs, {len(problems)} kinds", flush=True)
    for number, (kind, about) in enumerate(sorted(problems.items(), key=lambda item: -item[1]["count"])):
        file = keep / f"{name}-{seed}-{number}.json"
        file.write_text(json.dumps({"target": name, "kind": kind, "input": about["input"]}), encoding="utf-8")
        print(f"  {about['count']:>5} × {kind}: {about['message']}")
        for line in about["trail"]:
            print(f"          {line}")
        print(f"          input: {file}")
    if problem:
        print(f"  {problem}")
    return len(problems) + bool(problem)


def _last_lines(text: str) -> str:
    return "\n".join(line[:200] for line in text.splitlines()[-12:])


if __name__ == "__main__":
    sys.exit(main())
