"""`epochcast bench collectives`: a sweep of collectives over sizes between the processes of one machine.

The question of a row is {"device", "backend", "collective", "ranks", "size_bytes"}: gloo over the loopback on the
processor, nccl with a GPU per rank on CUDA. `size_bytes` is n of `predict/comm/`: what every rank has before an
all-reduce or a reduce-scatter, and after an all-gather. `link_fit` fits latency and bandwidth to the rows.

A group of processes takes seconds to start. Within `reused_groups()` it is kept for the next question.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from epochcast.errors import BadInput, MissingExtra, UnknownName
from epochcast.measure.bench.bench_children import ONE_THREAD, ChildFailed, Children, loopback_name
from epochcast.measure.bench.campaign import BenchQuestion, CampaignOutcome, key_of, measurement_of
from epochcast.measure.bench.machine_fingerprint import machine
from epochcast.measure.bench.measurements import Measurement
from epochcast.measure.bench.timing import Timing
from epochcast.measure.bench.torch_device import device_type

NAMES = ("all_reduce", "all_gather", "reduce_scatter")
SIZES_BYTES = tuple(4**power for power in range(5, 14))  # 1 KiB … 64 MiB
LIMIT_SECONDS = 2.0
# For starting torch in every process; on a busy machine one after the other.
START_SECONDS = 60.0
PER_RANK_SECONDS = 10.0
ELEMENT_BYTES = 4


def questions(
    ranks: int,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    *,
    device: str = "cpu",
    names: Sequence[str] = NAMES,
    limit_seconds: float = LIMIT_SECONDS,
) -> list[BenchQuestion]:
    """The sweep: all-reduce first; of each collective the smallest and the largest size first, then those between."""
    if ranks < 2:
        raise BadInput(f"a collective needs at least 2 ranks, got {ranks}")
    for name in names:
        if name not in NAMES:
            raise UnknownName("collective", name, NAMES)
    for size_bytes in sizes_bytes:
        if size_bytes < ELEMENT_BYTES * ranks:
            raise BadInput(
                f"{size_bytes} bytes are too few for {ranks} ranks: each needs at least one number of 4 bytes"
            )
    if find_spec("torch") is None:
        raise MissingExtra("torch")
    ordered = ends_first(sorted(set(sizes_bytes)))
    return [question_of(name, ranks, size_bytes, device, limit_seconds) for name in names for size_bytes in ordered]


def question_of(
    name: str, ranks: int, size_bytes: int, device: str = "cpu", limit_seconds: float = LIMIT_SECONDS
) -> BenchQuestion:
    """The question for one collective of one size."""
    backend = "nccl" if device_type(device) == "cuda" else "gloo"
    ask = {"device": device, "backend": backend, "collective": name, "ranks": ranks, "size_bytes": size_bytes}
    words = ("collective", backend, name, f"x{ranks}", str(size_bytes))
    return BenchQuestion("collective", key_of(words, ask), ask, limit_seconds)


def ends_first(sizes: Sequence[int]) -> list[int]:
    """First both ends, then the middle of the widest gap, and so on: every prefix covers the range.

    >>> ends_first([1, 2, 3, 4, 5])
    [1, 5, 3, 2, 4]
    """
    indices = list(range(len(sizes)))
    chosen = indices[:1] + indices[-1:] if len(sizes) > 1 else indices
    while len(chosen) < len(sizes):
        gaps = [(low - high, low) for low, high in zip(sorted(chosen), sorted(chosen)[1:], strict=False)]
        negative_width, low = min(gaps)
        chosen.append(low + -negative_width // 2)
    return [sizes[index] for index in chosen]


# ---- measuring ----------------------------------------------------------------------------------


def measure(question: BenchQuestion) -> Measurement:
    """Run one collective in a group of processes, which is running already or is started for it."""

    def run() -> CampaignOutcome:
        ask = question.ask
        ranks, backend = int(ask["ranks"]), str(ask["backend"])
        request = {"do": "measure", **ask, "limit_seconds": question.limit_seconds}
        timeout_seconds = 3 * question.limit_seconds + START_SECONDS
        with _group(ranks, backend) as group:
            timing, *_ = group.ask(request, timeout_seconds)
        return CampaignOutcome(Timing(**timing), details={"threads_per_rank": 1})

    return measurement_of(question, machine(str(question.ask["device"]), 1), run)


_reused: dict[tuple[int, str], Children] | None = None


@contextmanager
def reused_groups() -> Iterator[None]:
    """Groups that are started within it are reused, and closed at its end."""
    global _reused  # noqa: PLW0603 (processes are kept between questions, which are independent of each other)
    _reused = {}
    try:
        yield
    finally:
        groups, _reused = _reused, None
        for group in groups.values():
            group.close()


@contextmanager
def _group(ranks: int, backend: str) -> Iterator[Children]:
    """A group whose ranks are connected; one in which something failed is not used again."""
    groups = {} if _reused is None else _reused
    group = groups.pop((ranks, backend), None) or _started_group(ranks, backend)
    try:
        yield group
    except BaseException:
        group.close()
        raise
    if _reused is None:
        group.close()
    else:
        _reused[ranks, backend] = group


def _started_group(ranks: int, backend: str) -> Children:
    # NCCL chooses its own path between GPUs; gloo must use the loopback.
    common = ONE_THREAD | ({"GLOO_SOCKET_IFNAME": loopback_name()} if backend == "gloo" else {})
    environments = [common | {"RANK": str(rank)} for rank in range(ranks)]
    group = Children("epochcast.measure.bench.collective_rank", environments)
    try:
        with tempfile.TemporaryDirectory() as folder:
            request = {"do": "join", "backend": backend, "ranks": ranks, "store": str(Path(folder) / "store")}
            group.ask(request, START_SECONDS + PER_RANK_SECONDS * ranks)
    except BaseException as problem:
        group.close()
        if isinstance(problem, ChildFailed):
            raise BadInput(str(problem)) from None
        raise
    return group
