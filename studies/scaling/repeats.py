"""How much measured steps differ where all inputs of a forecast are the same.

Pollux placed the same job in the same numbers of GPUs per box in several orders (1 + 2 + 3, 3 + 1 + 2): on other boxes
of the cluster, at another time. Every such step is held against the median of the others. No forecast that does not
know boxes and hours can do much better.
"""

from collections.abc import Iterable, Mapping
from statistics import mean, median
from typing import Any

SOURCE = "pollux_osdi21"


def repeat_errors(table: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """By model: |median of the others - step|/step of every step that was measured again."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table:
        if row["source"] == SOURCE and row["placement"] and row["step_seconds"] and (row["nodes"] or 1) > 1:
            placed = "".join(sorted(row["placement"]))
            groups.setdefault((row["model"], row["batch_per_gpu"], row["grad_accum"], placed), []).append(
                float(row["step_seconds"])
            )
    errors_by_model: dict[str, list[float]] = {}
    for (model, *_), steps in groups.items():
        for place, seconds in enumerate(steps):
            others = [*steps[:place], *steps[place + 1 :]]
            if others:
                errors_by_model.setdefault(model, []).append(abs(median(others) / seconds - 1))
    return errors_by_model


def lines(errors: Mapping[str, list[float]]) -> list[str]:
    """The table of the page."""
    every = [error for group in errors.values() for error in group]
    rows = [("all", every), *sorted(errors.items())]
    shown = [f"| {name} | {len(group)} | {100 * mean(group):.1f} | {100 * median(group):.1f} |" for name, group in rows]
    return ["| model | n | mean error | median |", "|---|---|---|---|", *shown]
