"""One rank of the group that `collectives` measures: a child process with torch.distributed.

Rank 0 decides how often a collective is repeated (`timing.time_executions`) and tells the others before each sample.
A sample is the slowest rank's: all leave a barrier, run so many collectives in a row, and take the maximum.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from time import perf_counter
from typing import Any

from epochcast.bench.children import serve
from epochcast.bench.timing import Timing, time_executions
from epochcast.errors import BadInput

# Small collectives in a row per execution, so that leaving the barrier one after the other weighs little.
ROW = 8
ROW_BYTES = 2**20
# A rank that waits longer for the others than this gives up.
PATIENCE = timedelta(seconds=120)


def answer(order: Mapping[str, Any]) -> Mapping[str, Any]:
    """Join the group, or time one collective in it."""
    return _join(order) if order["do"] == "join" else _measure(order)


def _join(order: Mapping[str, Any]) -> Mapping[str, Any]:
    import torch
    from torch import distributed

    if not distributed.is_available():
        raise BadInput("this torch was built without torch.distributed; install a build that has it")
    backend, rank, ranks = str(order["backend"]), int(os.environ["RANK"]), int(order["ranks"])
    if not distributed.is_backend_available(backend):
        raise BadInput(f"this torch was built without {backend}; known here: {_backends(distributed)}")
    if backend == "nccl":
        if ranks > torch.cuda.device_count():
            raise BadInput(f"nccl needs a GPU per rank: {ranks} ranks, {torch.cuda.device_count()} GPUs")
        torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    distributed.init_process_group(
        backend, init_method=f"file://{order['store']}", rank=rank, world_size=ranks, timeout=PATIENCE
    )
    return {"torch": torch.__version__}


def _backends(distributed: Any) -> str:
    return ", ".join(name for name in ("gloo", "nccl", "mpi") if distributed.is_backend_available(name)) or "none"


def _measure(order: Mapping[str, Any]) -> Mapping[str, Any]:
    import torch
    from torch import distributed

    device = torch.device("cuda", torch.cuda.current_device()) if order["backend"] == "nccl" else torch.device("cpu")
    collective = COLLECTIVES[str(order["collective"])](int(order["size_bytes"]) // 4, device)
    row = ROW if int(order["size_bytes"]) <= ROW_BYTES else 1

    def execute() -> None:
        for _ in range(row):
            collective()

    def together(count: int) -> float:
        """Seconds of one execution on the slowest rank."""
        distributed.barrier()
        _wait(device)
        began = perf_counter()
        for _ in range(count):
            execute()
        _wait(device)
        taken = torch.tensor([perf_counter() - began], device=device, dtype=torch.float64)
        distributed.all_reduce(taken, distributed.ReduceOp.MAX)
        return float(taken.item()) / count

    def tell(count: int) -> int:
        told = torch.tensor([count], device=device)
        distributed.broadcast(told, 0)
        return int(told.item())

    if distributed.get_rank() != 0:
        while count := tell(0):
            together(count)
        return {}

    def sample(_: Callable[[], object], count: int) -> float:
        return together(tell(count))

    timing = time_executions(execute, float(order["limit_seconds"]), sample)
    tell(0)
    return asdict(_each(timing, row))


def _each(timing: Timing, row: int) -> Timing:
    """Of one collective, where an execution is a row of them."""
    whole = (timing.seconds, timing.low_seconds, timing.processor_seconds or 0.0)
    seconds, low_seconds, processor_seconds = (value / row for value in whole)
    return replace(
        timing,
        seconds=seconds,
        low_seconds=low_seconds,
        processor_seconds=processor_seconds or None,
        repeats=timing.repeats * row,
    )


def _wait(device: Any) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


# ---- the collectives: each call is one of them, of so many float32 in all ------------------------------------


def _all_reduce(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    buffer = torch.ones(elements, device=device)
    distributed.all_reduce(buffer)
    if float(buffer[0]) != distributed.get_world_size():
        raise BadInput(f"the all-reduce gave {float(buffer[0])} where {distributed.get_world_size()} is right")
    buffer.zero_()
    return lambda: distributed.all_reduce(buffer)


def _all_gather(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    gather: Any = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    part = torch.zeros(elements // distributed.get_world_size(), device=device)
    whole = torch.zeros(len(part) * distributed.get_world_size(), device=device)
    return lambda: gather(whole, part)


def _reduce_scatter(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    scatter: Any = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
    part = torch.zeros(elements // distributed.get_world_size(), device=device)
    whole = torch.zeros(len(part) * distributed.get_world_size(), device=device)
    return lambda: scatter(part, whole)


COLLECTIVES: Mapping[str, Callable[[int, Any], Callable[[], object]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
}

if __name__ == "__main__":
    serve(answer)
