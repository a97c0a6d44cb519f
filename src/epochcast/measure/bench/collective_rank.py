"""One rank of the group that `collectives` measures: a child process with torch.distributed.

Rank 0 decides how often a collective is repeated (`timing.time_executions`) and sends that number to the others before
each sample. A sample is that of the slowest rank: all leave a barrier, run the collectives, and take the maximum.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from time import perf_counter
from typing import Any

from epochcast.errors import BadInput
from epochcast.measure.bench.bench_children import serve
from epochcast.measure.bench.timing import Timing, time_executions

# Small collectives are run several times per execution: ranks leave the barrier at slightly different times.
REPEATS = 8
REPEATED_BYTES = 2**20
# How long a rank waits for the others before it fails.
TIMEOUT = timedelta(seconds=120)


def handle(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Join the group, or time one collective in it."""
    return _join(request) if request["do"] == "join" else _measure(request)


def _join(request: Mapping[str, Any]) -> Mapping[str, Any]:
    import torch
    from torch import distributed

    if not distributed.is_available():
        raise BadInput("this torch was built without torch.distributed; install a build that has it")
    backend, rank, ranks = str(request["backend"]), int(os.environ["RANK"]), int(request["ranks"])
    if not distributed.is_backend_available(backend):
        built = [name for name in ("gloo", "nccl", "mpi") if distributed.is_backend_available(name)]
        raise BadInput(f"this torch was built without {backend}; it has: {', '.join(built) or 'none'}")
    if backend == "nccl":
        if ranks > torch.cuda.device_count():
            raise BadInput(f"nccl needs a GPU per rank: {ranks} ranks, {torch.cuda.device_count()} GPUs")
        torch.cuda.set_device(rank)
    torch.set_num_threads(1)
    distributed.init_process_group(
        backend, init_method=f"file://{request['store']}", rank=rank, world_size=ranks, timeout=TIMEOUT
    )
    return {"torch": torch.__version__}


def _measure(request: Mapping[str, Any]) -> Mapping[str, Any]:
    import torch
    from torch import distributed

    device = torch.device("cuda", torch.cuda.current_device()) if request["backend"] == "nccl" else torch.device("cpu")
    collective = COLLECTIVES[str(request["collective"])](int(request["size_bytes"]) // 4, device)
    repeats_per_execution = REPEATS if int(request["size_bytes"]) <= REPEATED_BYTES else 1

    def execute() -> None:
        for _ in range(repeats_per_execution):
            collective()

    def slowest_seconds(count: int) -> float:
        """Seconds of one execution on the slowest rank."""
        distributed.barrier()
        _wait(device)
        began = perf_counter()
        for _ in range(count):
            execute()
        _wait(device)
        seconds = torch.tensor([perf_counter() - began], device=device, dtype=torch.float64)
        distributed.all_reduce(seconds, distributed.ReduceOp.MAX)
        return float(seconds.item()) / count

    def share_count(count: int) -> int:
        shared_count = torch.tensor([count], device=device)
        distributed.broadcast(shared_count, 0)
        return int(shared_count.item())

    if distributed.get_rank() != 0:
        while count := share_count(0):
            slowest_seconds(count)
        return {}

    def sample(_: Callable[[], object], count: int) -> float:
        return slowest_seconds(share_count(count))

    timing = time_executions(execute, float(request["limit_seconds"]), sample)
    share_count(0)
    return asdict(_per_collective(timing, repeats_per_execution))


def _per_collective(timing: Timing, repeats_per_execution: int) -> Timing:
    """The timing of one collective, where an execution has several."""
    values = (timing.seconds, timing.low_seconds, timing.processor_seconds or 0.0)
    seconds, low_seconds, processor_seconds = (value / repeats_per_execution for value in values)
    return replace(
        timing,
        seconds=seconds,
        low_seconds=low_seconds,
        processor_seconds=processor_seconds or None,
        repeats=timing.repeats * repeats_per_execution,
    )


def _wait(device: Any) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)


# ---- the collectives: each call runs one, of `elements` float32 in total -------------------------------------


def _all_reduce(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    buffer = torch.ones(elements, device=device)
    distributed.all_reduce(buffer)
    if float(buffer[0]) != distributed.get_world_size():
        raise BadInput(f"the all-reduce gave {float(buffer[0])} instead of {distributed.get_world_size()}")
    buffer.zero_()
    return lambda: distributed.all_reduce(buffer)


def _all_gather(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    gather: Any = getattr(distributed, "all_gather_single", None) or distributed.all_gather_into_tensor
    part = torch.zeros(elements // distributed.get_world_size(), device=device)
    gathered = torch.zeros(len(part) * distributed.get_world_size(), device=device)
    return lambda: gather(gathered, part)


def _reduce_scatter(elements: int, device: Any) -> Callable[[], object]:
    import torch
    from torch import distributed

    scatter: Any = getattr(distributed, "reduce_scatter_single", None) or distributed.reduce_scatter_tensor
    part = torch.zeros(elements // distributed.get_world_size(), device=device)
    source = torch.zeros(len(part) * distributed.get_world_size(), device=device)
    return lambda: scatter(part, source)


COLLECTIVES: Mapping[str, Callable[[int, Any], Callable[[], object]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
}

if __name__ == "__main__":
    serve(handle)
