"""Inside the process that measures the user's code: a question of a campaign, a loader, or a probe of memory.

The process is `describe.capture.subprocess_capture_host`'s; only who answers is another.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from epochcast.describe.capture.subprocess_capture_host import answered, become_program
from epochcast.measure.bench.campaign import BenchQuestion, measured_here


class BenchHost:
    """Measures for one reference to the user's code."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._reference: str = request["reference"]
        become_program(self._reference)
        _set_threads(request["threads"])

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """By the one key of the request."""
        ((kind, ask),) = request.items()
        return answered(self._reference, lambda: {"value": _ANSWERS[kind](ask)})


def _question(ask: Mapping[str, Any]) -> dict[str, Any]:
    row = measured_here(BenchQuestion(**ask))
    return {field.name: getattr(row, field.name) for field in fields(row)} | {"machine": asdict(row.machine)}


def _loader(ask: Mapping[str, Any]) -> dict[str, Any]:
    from epochcast.measure.bench.loader_bench import find_loader, measure_loader

    return asdict(measure_loader(find_loader(ask["reference"]), name=ask["reference"]))


def _probe(ask: Mapping[str, Any]) -> dict[str, Any]:
    from epochcast.measure.bench.memory_probe import probe_here

    shape, batches = ask["input_shape"], ask["batches"]
    probe = probe_here(
        ask["reference"],
        None if shape is None else tuple(shape),
        optimizer=ask["optimizer"],
        batches=(batches[0], batches[1]),
    )
    return asdict(probe)


_ANSWERS = {"question": _question, "loader": _loader, "probe": _probe}


def _set_threads(threads: int | None) -> None:
    """As many threads of torch as the process has that asks; None leaves torch alone."""
    if threads is None:
        return
    import torch

    torch.set_num_threads(threads)


HOST = BenchHost
