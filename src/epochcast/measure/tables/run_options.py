"""Options of a job that rows say in columns or notes of their own: what is run again in the backward pass, how tensor
parallel ranks share what they do not split, and whether a step is compiled.

    recompute = full                     every block runs again                          checkpointing
    recompute = selective                attention alone (Korthikanti et al. 2023)       checkpointing = "selective"
    note: TP with sequence parallel      norms and dropout are split over tokens         sequence_parallel

An option that a job does not have is left out.
"""

from dataclasses import fields
from typing import Any

from epochcast.base.caching import remembered
from epochcast.measure.tables.cells import Row, count, text
from epochcast.measure.tables.row_names import compiles, is_trainer
from epochcast.measure.tables.run_stack import run_compiler, run_hook_seconds
from epochcast.predict.forecast.job import Job

SELECTIVE = "selective"


def run_options(row: Row, framework: str) -> dict[str, Any]:
    """The options of a row's job, as far as a job has them."""
    options: dict[str, Any] = {"compile": _compiler(row, framework), "hook_seconds": run_hook_seconds(row)}
    recompute = text(row, "recompute").casefold()
    if recompute.startswith("full"):
        options["checkpointing"] = _default("checkpointing", full=True)
    elif recompute.startswith(SELECTIVE) and _takes_words("checkpointing"):
        options["checkpointing"] = SELECTIVE
    if "sequence_parallel" in _job_fields() and (count(row, "tp") or 1) > 1:
        options["sequence_parallel"] = is_sequence_parallel(row)
    return options


def is_sequence_parallel(row: Row) -> bool:
    """As the note says; else whether the trainer does so beside tensor parallel ranks."""
    return "sequence parallel" in text(row, "note").casefold() or is_trainer(
        "sequence_parallel", text(row, "framework")
    )


def _compiler(row: Row, framework: str) -> str:
    """As the row says; else XLA where its framework always compiles."""
    if not text(row, "compiled") and compiles(text(row, "framework")):
        return "xla"
    return run_compiler(row, framework)


@remembered(1)
def _job_fields() -> dict[str, Any]:
    return {item.name: item.type for item in fields(Job)}


def _takes_words(name: str) -> bool:
    return "str" in str(_job_fields()[name])


def _default(name: str, *, full: bool) -> Any:
    """What an option that was a switch and may be a word takes for all of it."""
    return "full" if _takes_words(name) and full else full
