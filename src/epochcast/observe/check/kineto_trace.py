"""A trace of torch.profiler (Kineto's Chrome format): steps, kernels, and what the host waited for.

Steps are the annotations `ProfilerStep#N`, which `profiler.step()` makes where the profiler has a schedule. Within
them:

    busy        a kernel or copy was running on the GPU: the union of their spans
    exchange    of these, kernels of NCCL
    single      of matrix products, kernels that multiply plain float32
    sync        the host was in cudaStreamSynchronize, cudaDeviceSynchronize or a blocking copy
    data        the host was in the data loader
    idle        neither an operator, a call of CUDA nor a kernel ran, for a millisecond or longer: Python, which may be
                loading data by itself

Kernels and calls are separated by the names that cuBLAS, cuDNN, NCCL and CUDA give them (the patterns below). A trace
of a CPU has no kernels: its signs are those of data and of being idle. The profiler itself slows the host, mostly steps
with many small kernels, so that steps may be shorter without it.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.observe.check.observation import STEP, TRACE, Observation, RunSigns
from epochcast.observe.logs.log_reader import GZIP_MARK

Span = tuple[float, float]

MOST_BYTES = 2 << 30
"""A trace is read into memory; a larger one is of too many steps."""
SECONDS_PER_TICK = 1e-6
_HEAD_BYTES = 1 << 16
# Between two operators Python takes tens of microseconds; what is longer is other work.
_LONG_TICKS = 1e3
# Of fewer steps nobody can say whether the first is longer.
_LEAST_STEPS = 3
_MARK = re.compile(rb'"traceEvents"|"deviceProperties"|"ph"\s*:')
_STEP = re.compile(r"ProfilerStep#\d+")
_DATA = re.compile(r"enumerate\(DataLoader\)#.*__next__|\[pl\].*(?:train_dataloader_next|fetch)")
_ON_GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
_OF_THE_HOST = frozenset({"cpu_op", "cuda_runtime", "cuda_driver", "gpu_memcpy", "gpu_memset", "kernel"})
_ANNOTATIONS = frozenset({"user_annotation", "cpu_op"})
_SYNC = re.compile(r"(?:cuda|hip)(?:Stream|Device|Event)Synchronize|(?:cuda|hip)Memcpy(?!Async)")
_EXCHANGE = re.compile(r"nccl|rccl", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|cutlass|xmma|winograd|_conv|implicit_convolve|sm\d0_", re.IGNORECASE)
# cuBLAS and cuDNN name tensor-core kernels after their format: s16816, tf32, hmma, bf16, h884.
_SINGLE = re.compile(r"sgemm(?!.*tf32)|_sgemm_|scudnn|simt_s", re.IGNORECASE)


def is_trace(path: Path) -> bool:
    """Whether a file begins like a trace."""
    try:
        with path.open("rb") as plain:
            head = plain.read(_HEAD_BYTES)
        if head.startswith(GZIP_MARK):
            with gzip.open(path, "rb") as packed:
                head = packed.read(_HEAD_BYTES)
    except (OSError, EOFError):
        return False
    return head.lstrip()[:1] in (b"{", b"[") and _MARK.search(head) is not None


def observed_trace(path: Path) -> Observation:
    """The median of the steps, and where their time went."""
    document = _read(path)
    events = document.get("traceEvents", []) if isinstance(document, dict) else document
    spans = [event for event in events if isinstance(event, dict) and event.get("ph") == "X" and _is_timed(event)]
    steps = _merged_steps(event for event in spans if _STEP.fullmatch(str(event.get("name"))))
    if not steps:
        raise BadInput(
            f"{path} has no ProfilerStep: give the profiler a schedule, and call profiler.step() after every step"
        )
    if not _covered([_span(event) for event in spans if event.get("cat") in _OF_THE_HOST], steps):
        raise BadInput(
            f"{path} has no operators in its steps: a later cycle of the schedule replaced it; set repeat=1 in the "
            "schedule"
        )
    each = [(end - begin) * SECONDS_PER_TICK for begin, end in steps]
    middle = median(each)
    seconds = Interval(min(each), middle, max(each)) if len(each) > 1 else _alone(middle)
    return Observation(str(path), seconds, STEP, TRACE, signs=_signs(document, spans, steps))


def _read(path: Path) -> Any:
    if path.stat().st_size > MOST_BYTES:
        raise BadInput(f"{path} is larger than 2 GiB: trace fewer steps")
    data = path.read_bytes()
    try:
        return json.loads(gzip.decompress(data) if data.startswith(GZIP_MARK) else data)
    except (ValueError, OSError, EOFError, RecursionError) as error:
        raise BadInput(f"{path} is no whole trace: {error}") from None


def _is_timed(event: Mapping[str, Any]) -> bool:
    begin, length = event.get("ts"), event.get("dur")
    return isinstance(begin, int | float) and isinstance(length, int | float) and length >= 0


def _alone(seconds: float) -> Interval:
    """Of one step nobody knows how far others are from it."""
    return Interval(seconds / 1.1, seconds, seconds * 1.1)


def _merged_steps(events: Iterable[Mapping[str, Any]]) -> list[Span]:
    """Each step once: the host's annotation and the GPU's have the same name."""
    by_name: dict[str, Span] = {}
    for event in events:
        begin, end = _span(event)
        if event.get("cat") in ("gpu_user_annotation", "overlap"):
            continue
        before = by_name.get(event["name"])
        by_name[event["name"]] = (begin, end) if before is None else (min(before[0], begin), max(before[1], end))
    return sorted(span for span in by_name.values() if span[1] > span[0])


def _span(event: Mapping[str, Any]) -> Span:
    return float(event["ts"]), float(event["ts"] + event["dur"])


def _signs(document: Any, spans: Sequence[Mapping[str, Any]], steps: Sequence[Span]) -> RunSigns:
    kernels = [event for event in spans if event.get("cat") in _ON_GPU]
    named = [(str(event.get("name")), _span(event)) for event in kernels]
    products = [(name, span) for name, span in named if _PRODUCT.search(name)]
    single = [span for name, span in products if _SINGLE.search(name)]
    calls = [_span(event) for event in spans if _SYNC.match(str(event.get("name")))]
    waits = [_span(e) for e in spans if e.get("cat") in _ANNOTATIONS and _DATA.search(str(e.get("name")))]
    of_products = sum(end - begin for _, (begin, end) in products)
    return RunSigns(
        steps=float(len(steps)),
        data_fraction=_covered(waits, steps) if waits else None,
        idle_fraction=_idle(spans, steps),
        first_factor=_first_factor(steps),
        sync_fraction=_covered(calls, steps) if kernels else None,
        busy_fraction=_covered([span for _, span in named], steps) if kernels else None,
        exchange_fraction=_covered([span for name, span in named if _EXCHANGE.search(name)], steps)
        if kernels
        else None,
        single_fraction=sum(end - begin for begin, end in single) / of_products if of_products else None,
        device=_device(document),
    )


def _covered(spans: Iterable[Span], steps: Sequence[Span]) -> float:
    """The share of the steps' time that spans cover, each moment once."""
    covered, reached = 0.0, float("-inf")
    ordered = sorted(spans)
    for begin, end in ordered:
        begin = max(begin, reached)
        if end > begin:
            covered += sum(max(0.0, min(end, last) - max(begin, first)) for first, last in steps)
            reached = end
    return min(1.0, covered / sum(last - first for first, last in steps))


def _idle(spans: Sequence[Mapping[str, Any]], steps: Sequence[Span]) -> float:
    """The share of the steps' time in long gaps between whatever runs."""
    ran = sorted(_span(event) for event in spans if event.get("cat") in _OF_THE_HOST)
    gaps, reached = [], steps[0][0]
    for begin, end in (*ran, (steps[-1][1], steps[-1][1])):
        if begin - reached > _LONG_TICKS:
            gaps.append((reached, begin))
        reached = max(reached, end)
    return _covered(gaps, steps)


def _first_factor(steps: Sequence[Span]) -> float | None:
    """The first step over the median of the others."""
    if len(steps) < _LEAST_STEPS:
        return None
    first, *others = (end - begin for begin, end in steps)
    return max(1.0, first / median(others))


def _device(document: Any) -> str | None:
    """The GPU that the trace names."""
    properties = document.get("deviceProperties") if isinstance(document, dict) else None
    names = [each.get("name") for each in properties or () if isinstance(each, dict)]
    return str(names[0]) if names and names[0] else None
