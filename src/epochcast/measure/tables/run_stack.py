"""The software around the step of a measured run: the compiler that fused it, the framework whose hooks it ran."""

from collections.abc import Mapping
from typing import Any

from epochcast.describe.graph.compilers import EAGER, find_compiler
from epochcast.predict.cost.hosts import hooks

# The precision of rows derived from submissions to MLPerf, which fuse by hand whatever can be fused.
SUBMISSION = "mixed (submission-specific)"
_YES, _NO = ("true", "1", "yes"), ("", "false", "0", "no", "nan")


def run_compiler(row: Mapping[str, Any], framework: str) -> str:
    """The compiler of a row's column `compiled`, which says whether (then it is the framework's own) or which; of a
    submission to a benchmark where it says nothing, `vendor`.
    """
    stated = row.get("compiled")
    text = "" if stated is None else str(stated).strip().casefold()
    if text in _NO:
        return "vendor" if stated is None and row.get("precision") == SUBMISSION else EAGER
    if text in _YES:
        return "xla" if framework == "tensorflow" else "inductor"
    return find_compiler(text)


def run_hook_seconds(row: Mapping[str, Any]) -> float:
    """Of the framework that the row names beside its own, as in "pytorch+adaptdl"."""
    names = str(row.get("framework") or "").casefold().replace("+", " ").split()
    return max((seconds for name, seconds in hooks().items() if name in names), default=0.0)
