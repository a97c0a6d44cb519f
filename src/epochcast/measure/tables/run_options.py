"""Options of a job that rows say in columns or notes of their own: what is run again in the backward pass, how tensor
parallel ranks share what they do not split, and the software around the step: its compiler, its framework's hooks.

    recompute = full                     every block runs again                          checkpointing = "full"
    recompute = selective                attention alone (Korthikanti et al. 2023)       checkpointing = "selective"
    recompute = selective (per op)       all but attention and every second product      checkpointing = "operators"
    note: TP with sequence parallel      norms and dropout are split over tokens         sequence_parallel
"""

import re
from typing import Any

from epochcast.describe.graph.compilers import EAGER, find_compiler
from epochcast.describe.graph.recipe import OPERATORS, SELECTIVE
from epochcast.measure.tables.cells import Row, count, text
from epochcast.measure.tables.row_names import compiles, is_trainer, listed
from epochcast.predict.cost.hosts import hooks

SUBMISSION = "mixed (submission-specific)"
"""The precision of rows derived from submissions to MLPerf, which fuse by hand whatever can be fused."""
_PER_OPERATOR = re.compile(r"per.?op|\bop\b|operator")
_EMPTIED = re.compile(r"cache emptied every (\d+) steps")
_YES, _NO = ("true", "1", "yes"), ("", "false", "0", "no", "nan")


def run_options(row: Row, framework: str) -> dict[str, Any]:
    """The options of a row's job."""
    options: dict[str, Any] = {"compile": run_compiler(row, framework), "hook_seconds": run_hook_seconds(row)}
    recompute = text(row, "recompute").casefold()
    if recompute.startswith("full"):
        options["checkpointing"] = "full"
    elif recompute.startswith(SELECTIVE):
        options["checkpointing"] = OPERATORS if _PER_OPERATOR.search(recompute) else SELECTIVE
    emptied = _EMPTIED.search(text(row, "note").casefold())
    if emptied is not None:
        options["empty_cache_steps"] = int(emptied[1])
    if (count(row, "tp") or 1) > 1:
        options["sequence_parallel"] = _is_sequence_parallel(row)
    return options


def _is_sequence_parallel(row: Row) -> bool:
    """As the note says; else whether the trainer does so beside tensor parallel ranks."""
    is_noted = "sequence parallel" in text(row, "note").casefold()
    return is_noted or is_trainer("sequence_parallel", text(row, "framework"))


def run_compiler(row: Row, framework: str) -> str:
    """The compiler of a row's column `compiled`, which says whether (then it is the framework's own) or which. Where it
    says nothing, XLA if the framework always compiles, `vendor` for a submission to a benchmark.
    """
    stated = row.get("compiled")
    word = text(row, "compiled").casefold()
    if not word and compiles(text(row, "framework")):
        return "xla"
    if word in _NO:
        return "vendor" if stated is None and row.get("precision") == SUBMISSION else EAGER
    if word in _YES:
        return "xla" if framework == "tensorflow" else "inductor"
    return find_compiler(listed("nearest_compiler", word) or word)


def compiler_notes(row: Row) -> list[str]:
    """What was assumed of a compiler that nobody here knows."""
    word = text(row, "compiled")
    name = listed("nearest_compiler", word) if word else None
    return [f"compiled by {word} is answered as {name}"] if name else []


def run_hook_seconds(row: Row) -> float:
    """Of the framework that the row names beside its own, as in "pytorch+adaptdl"."""
    names = str(row.get("framework") or "").casefold().replace("+", " ").split()
    return max((seconds for name, seconds in hooks().items() if name in names), default=0.0)
