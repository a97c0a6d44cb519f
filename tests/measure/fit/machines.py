"""A made-up machine whose law is known, and what `epochcast bench` would have measured on it."""

from random import Random
from typing import Any

import numpy as np

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import ops_to_json, recipe_to_json
from epochcast.describe.graph.trace import Columns, columns_of
from epochcast.hardware.host_device import detect_host
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.measure.bench.random_shapes import OpLimits, draw

LAUNCH_SECONDS, FLOPS_PER_SECOND, BYTES_PER_SECOND = 6e-6, 4e10, 5e9
HOST_SECONDS = 2e-5


def machine() -> MeasuredMachine:
    """This host's processors by name, so that `--device local` means them."""
    host = detect_host()
    return MeasuredMachine("made-up", {"cpu": host.name, "cores": host.compute_units, "device": "cpu", "threads": 1})


def op_seconds(columns: Columns) -> np.ndarray[Any, Any]:
    """The law."""
    work = columns.flops / FLOPS_PER_SECOND + columns.bytes / BYTES_PER_SECOND
    return np.asarray(LAUNCH_SECONDS * np.maximum(columns.launches, 1) + work)


def op_rows(count: int) -> list[Measurement]:
    """Random ops, timed without noise."""
    random = Random(3)
    rows: list[Measurement] = []
    while len(rows) < count:
        for op in draw(random, OpLimits(flops=2e9, bytes=2e8)):
            seconds = float(op_seconds(columns_of([op]))[0])
            ask = {"device": "cpu", "ops": ops_to_json([op])}
            rows.append(Measurement("op", f"op/{len(rows)}", machine(), ask, seconds, seconds, 0.0, 30))
    return rows[:count]


def step_rows(names: tuple[str, ...], factor: float = 1.0) -> list[Measurement]:
    """Steps that take `factor` times their ops, and the host's part of each."""
    rows = []
    for name in names:
        for batch in (8, 32):
            columns = find_model(name).trace(Recipe(batch)).columns
            seconds = factor * float(op_seconds(columns).sum()) + HOST_SECONDS * len(columns)
            ask: dict[str, Any] = {"device": "cpu", "backend": "torch", "model": name, "input": "", "part": "step"}
            ask["recipe"] = recipe_to_json(Recipe(batch))
            rows.append(Measurement("model", f"{name}/{batch}", machine(), ask, seconds, seconds, 0.0, 30))
    return rows


def collective_rows() -> list[Measurement]:
    """All-reduces over two ranks: 2·(50 µs + n/2/1 GB/s)."""
    rows = []
    for size_bytes in (2**10, 2**16, 2**22, 2**26):
        seconds = 2 * (5e-5 + size_bytes / 2 / 1e9)
        ask = {"device": "cpu", "backend": "gloo", "collective": "all_reduce", "ranks": 2, "size_bytes": size_bytes}
        rows.append(Measurement("collective", f"all_reduce/{size_bytes}", machine(), ask, seconds, seconds, 0.0, 30))
    return rows
