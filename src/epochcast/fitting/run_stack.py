"""The software around the step of a measured run: the compiler that fused it, the framework whose hooks it ran."""

from collections.abc import Mapping
from typing import Any

from epochcast.cost.hosts import hooks
from epochcast.graph.compilers import EAGER, find_compiler

_YES, _NO = ("true", "1", "yes"), ("", "false", "0", "no", "nan")


def run_compiler(row: Mapping[str, Any], framework: str) -> str:
    """The compiler of a row's column `compiled`, which says whether (then it is the framework's own) or which."""
    stated = row.get("compiled")
    text = "" if stated is None else str(stated).strip().casefold()
    if text in _NO:
        return EAGER
    if text in _YES:
        return "xla" if framework == "tensorflow" else "inductor"
    return find_compiler(text)


def run_hook_seconds(row: Mapping[str, Any]) -> float:
    """Of the framework that the row names beside its own, as in "pytorch+adaptdl"."""
    names = str(row.get("framework") or "").casefold().replace("+", " ").split()
    return max((seconds for name, seconds in hooks().items() if name in names), default=0.0)
