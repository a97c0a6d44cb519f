"""Options of a job that rows say in columns or notes of their own: what is run again in the backward pass, how tensor
parallel ranks share what they do not split, and the software around the step: its compiler, its framework's hooks.

    recompute = full                     every block runs again                          checkpointing = "full"
    recompute = selective                attention alone (Korthikanti et al. 2023)       checkpointing = "selective"
    recompute = every 2 blocks together              segments of two run again            checkpointing = "full"
    recompute = half of the blocks                   every second block runs again        checkpointing = "half"
    recompute = activation offload, … + offload      saved activations in host memory     offload_activations
    recompute = selective (per op)       all but attention and every second product      checkpointing = "operators"
    recompute = selective, torchtitan    the same
    note: Activation Checkpointing=True, recompute=True   the same
    note: TP with sequence parallel      norms and dropout are split over tokens         sequence_parallel
"""

import re
from collections.abc import Mapping
from typing import Any

from epochcast.describe.graph.compilers import EAGER, find_compiler
from epochcast.describe.graph.kernels import UNSLOTH
from epochcast.describe.graph.recipe import HALF, OPERATORS, SELECTIVE
from epochcast.measure.tables.cells import Row, text
from epochcast.measure.tables.row_names import compiles, is_trainer, listed, row_names, source_layout
from epochcast.measure.tables.run_layout import tensor_ranks
from epochcast.predict.cost.hosts import hooks

SUBMISSION = "mixed (submission-specific)"
"""The precision of rows derived from submissions to MLPerf, which fuse by hand whatever can be fused."""
_PER_OPERATOR = re.compile(r"per.?op|\bop\b|operator")
_EMPTIED = re.compile(r"cache emptied every (\d+) steps")
_BEFORE_GRAPHS = re.compile(r"v0\.\d")
_CHECKPOINTS = re.compile(r"\bcheckpointing on\b|\b(?:activation checkpointing|recompute)=true\b")
_IN_PLACE_CHUNKS = 6
"""A loss whose gradient is written over its half-precision scores: three float32 copies of a sixth of them."""
_YES, _NO = ("true", "1", "yes"), ("", "false", "0", "no", "nan")


def run_options(row: Row, framework: str) -> dict[str, Any]:
    """The options of a row's job."""
    options: dict[str, Any] = {"compile": run_compiler(row, framework), "hook_seconds": run_hook_seconds(row)}
    recompute, note = text(row, "recompute").casefold(), text(row, "note").casefold()
    if recompute.startswith(("full", "every")):
        options["checkpointing"] = "full"
    elif recompute.startswith("half"):
        options["checkpointing"] = HALF
    elif recompute.startswith(SELECTIVE):
        is_per_operator = _PER_OPERATOR.search(recompute) or is_trainer("per_operator", text(row, "framework"))
        options["checkpointing"] = OPERATORS if is_per_operator else SELECTIVE
    elif not recompute and (is_trainer("checkpointed", text(row, "framework")) or _CHECKPOINTS.search(note)):
        options["checkpointing"] = _layout_of_source(row).get("recompute", "full")
    if "offload" in recompute:
        options["offload_activations"] = True
    options |= _library_options(row, note)
    if is_trainer("host_optimizer", f"{text(row, 'framework')} {text(row, 'optimizer')} {note}"):
        options["offload"] = "optimizer"
    emptied = _EMPTIED.search(note)
    usual_steps = _usual_emptied_steps(row)
    if emptied is not None or usual_steps is not None:
        options["empty_cache_steps"] = int(emptied[1]) if emptied else usual_steps
    if tensor_ranks(row) > 1:
        options["sequence_parallel"] = _is_sequence_parallel(row)
    return options


def _library_options(row: Row, note: str) -> dict[str, Any]:
    """What a library of kernels brings: its own instead of a compiler's, and a loss in place."""
    framework = text(row, "framework")
    in_place = is_trainer("loss_in_place", framework) or is_trainer("loss_in_place_by_note", note)
    chunks = {"loss_chunks": _IN_PLACE_CHUNKS} if in_place else {}
    return {**chunks, "kernels": UNSLOTH, "compile": EAGER} if has_library_kernels(row) else chunks


def has_library_kernels(row: Row) -> bool:
    """Whether the trainer brings kernels of its own, which `kernels` has; "triton" in `compiled` are these."""
    word = text(row, "compiled").casefold()
    return is_trainer("library_kernels", text(row, "framework")) and word in (*_NO, "triton", UNSLOTH)


def _usual_emptied_steps(row: Row) -> int | None:
    """Of a source whose script is known to empty the allocator's cache."""
    scripts: Mapping[str, Mapping[str, Any]] = row_names()["source_emptied_cache"]
    source = text(row, "source").casefold()
    return next((int(script["steps"]) for script in scripts.values() if script["words"] in source), None)


def _is_sequence_parallel(row: Row) -> bool:
    """As the note says; else whether the trainer or the source's script does so beside tensor parallel ranks."""
    is_noted = "sequence parallel" in text(row, "note").casefold()
    is_of_source = bool(_layout_of_source(row).get("sequence_parallel"))
    return is_noted or is_of_source or is_trainer("sequence_parallel", text(row, "framework"))


def _layout_of_source(row: Row) -> Mapping[str, Any]:
    return source_layout(text(row, "source"), text(row, "framework"))


def run_compiler(row: Row, framework: str) -> str:
    """The compiler of a row's column `compiled`, which says whether (then it is the framework's own) or which. Where it
    says nothing, XLA if the framework always compiles, `vendor` for a submission to a benchmark. Submissions of PyTorch
    before round 1.0 of MLPerf, the first with CUDA graphs, launch their fused kernels from Python, as Inductor does.
    """
    stated = row.get("compiled")
    word = text(row, "compiled").casefold()
    if not word and compiles(text(row, "framework")):
        return "xla"
    if word in _NO:
        if stated is not None or row.get("precision") != SUBMISSION:
            return EAGER
        is_launched = (
            _BEFORE_GRAPHS.match(text(row, "framework_version")) and "torch" in text(row, "framework").casefold()
        )
        return "inductor" if is_launched else "vendor"
    if word in _YES:
        is_xla = framework == "tensorflow" or compiles(text(row, "framework"))
        return EAGER if _is_left_eager(row) else "xla" if is_xla else "inductor"
    return find_compiler(listed("nearest_compiler", word) or word)


def _is_left_eager(row: Row) -> bool:
    """Whether a source that compiles leaves this network as it is."""
    entry = row_names()["left_eager"].get(text(row, "source"), {})
    return text(row, "framework") == entry.get("framework") and text(row, "model").startswith(
        tuple(entry.get("models", ()))
    )


def compiler_notes(row: Row) -> list[str]:
    """What was assumed of a compiler that nobody here knows."""
    word = text(row, "compiled")
    name = listed("nearest_compiler", word) if word and not has_library_kernels(row) else None
    return [f"compiled by {word} is answered as {name}"] if name else []


def run_hook_seconds(row: Row) -> float:
    """Of the framework that the row names beside its own, as in "pytorch+adaptdl"."""
    names = str(row.get("framework") or "").casefold().replace("+", " ").split()
    return max((seconds for name, seconds in hooks().items() if name in names), default=0.0)
