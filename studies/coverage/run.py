"""Which published networks the PyTorch front end captures: every timm name and every torchvision name, at its own
input size.

    python -m studies.coverage.run [--results FILE] [--families timm,torchvision] [--limit N]

Each network is built without weights and captured on `meta` at two batch sizes, forward, loss and backward. Results
are appended to FILE (one JSON object a line), so a broken run goes on where it stopped; docs/accuracy/coverage.md is
written from it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accuracy" / "coverage.md"
CHUNK = 120
SECONDS_PER_MODEL = 300
BY_HAND = True  # hours: `python -m studies` runs it only when named
NEEDS_DATA = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "epochcast-coverage.jsonl")
    parser.add_argument("--families", default="timm,torchvision")
    parser.add_argument("--limit", type=int, default=None, help="at most so many names of each family")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--worker", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        for reference in given.worker:
            append(given.results, capture(reference))
        return
    families = given.families.split(",")
    wanted = [f"{family}:{name}" for family in families for name in spread(names(family))[: given.limit]]
    sweep(wanted, given.results)
    rows = sorted((row for row in read(given.results) if row["model"] in set(wanted)), key=lambda row: row["model"])
    given.page.write_text(page(rows, families), encoding="utf-8")


def names(family: str) -> list[str]:
    """Every name of a family, its quantised twins left out: they are the same networks until they are converted."""
    from epochcast.describe.capture.torch.torchvision_shim import import_timm, import_torchvision

    if family == "timm":
        return list(import_timm().list_models())
    return [n for n in import_torchvision().models.list_models() if not n.startswith("quantized_")]


def spread(ordered: Sequence[str], stride: int = 16) -> list[str]:
    """Every sixteenth name, then the next ones: a run that is stopped early has seen every family."""
    return [name for first in range(stride) for name in ordered[first::stride]]


def sweep(wanted: Sequence[str], results: Path) -> None:
    """Captures what is not in the results yet, a chunk per process; a process that dies costs one network."""
    while left := [name for name in wanted if name not in {row["model"] for row in read(results)}]:
        chunk = left[:CHUNK]
        command = [sys.executable, "-m", "studies.coverage.run", "--results", str(results), "--worker", *chunk]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "EPOCHCAST_CACHE": "off"}
        finished = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL)
        if finished.returncode:
            done = {row["model"] for row in read(results)}
            culprit = next((name for name in chunk if name not in done), None)
            if culprit is not None:
                append(results, {"model": culprit, "problem": f"the process ended with {finished.returncode}"})


def capture(reference: str) -> dict[str, Any]:
    """One row: what was captured, or why not."""
    from epochcast.describe.capture.torch import load_torch
    from epochcast.describe.graph.recipe import Recipe
    from epochcast.errors import EpochcastError

    def late(*_: object) -> None:
        raise TimeoutError(f"takes more than {SECONDS_PER_MODEL} s of a processor")

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_MODEL)  # processor time: a busy machine fails nothing
    start = time.process_time()
    try:
        trace = load_torch(reference).trace(Recipe(32, mode="forward_backward"))
    except EpochcastError as problem:
        return {"model": reference, "problem": str(problem).splitlines()[0]}
    except Exception as problem:
        return {"model": reference, "problem": f"{type(problem).__name__}: {problem}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {
        "model": reference,
        "parameters": sum(p.elements for p in trace.parameters),
        "forward_flops_per_sample": trace.flops["forward"] / trace.batch,
        "backward_flops_per_sample": trace.flops["backward"] / trace.batch,
        "ops": len(trace.columns),
        "opaque": list(trace.opaque),
        "seconds": round(time.process_time() - start, 2),
    }


def append(results: Path, row: dict[str, Any]) -> None:
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read(results: Path) -> list[dict[str, Any]]:
    if not results.exists():
        return []
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines() if line]


def page(rows: Sequence[dict[str, Any]], families: Sequence[str]) -> str:
    """docs/accuracy/coverage.md"""
    return "\n".join(_page(rows, families)) + "\n"


def _page(rows: Sequence[dict[str, Any]], families: Sequence[str]) -> Iterator[str]:
    yield "# Coverage of the PyTorch front end"
    yield ""
    yield "Written by `python -m studies.coverage.run`. Every network is built without weights at its own input size"
    yield "and captured on `meta` at two batch sizes: forward, loss and real backward. An *opaque* operator has known"
    yield "bytes and unknown flops; a forecast lists it. Detection networks count by their backbone."
    yield ""
    yield "| family | networks | captured | share | without opaque operators | median processor seconds |"
    yield "|---|---|---|---|---|---|"
    for family in families:
        mine = [row for row in rows if row["model"].startswith(f"{family}:")]
        good = [row for row in mine if "problem" not in row]
        clear = sum(1 for row in good if not row["opaque"])
        seconds = sorted(row["seconds"] for row in good) or [0.0]
        share = len(good) / max(1, len(mine))
        yield f"| {family} | {len(mine)} | {len(good)} | {share:.1%} | {clear} | {seconds[len(seconds) // 2]:.1f} |"
    failed = [row for row in rows if "problem" in row]
    yield ""
    yield "## Not captured"
    yield ""
    if failed:
        yield "| network | reason |"
        yield "|---|---|"
        yield from (f"| `{row['model']}` | {_cell(row['problem'])} |" for row in failed)
    else:
        yield "None."
    yield ""
    yield "## Opaque operators"
    yield ""
    users_by_target: dict[str, list[str]] = {}
    for row in rows:
        for target in row.get("opaque", ()):
            users_by_target.setdefault(target, []).append(row["model"])
    if users_by_target:
        yield "| operator | networks |"
        yield "|---|---|"
        for target, users in sorted(users_by_target.items(), key=lambda item: -len(item[1])):
            more = f" and {len(users) - 4} more" if len(users) > 4 else ""
            yield f"| `{target}` | {', '.join(f'`{u}`' for u in users[:4])}{more} |"
    else:
        yield "None."


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
