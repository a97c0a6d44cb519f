"""The software beside the framework of a measured run: whether a compiler fused its step."""

from collections.abc import Mapping
from typing import Any

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
