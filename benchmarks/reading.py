"""Logs read against the bare splitting of the same bytes into lines: dense ones, sparse ones, unknown formats."""

import time
from collections.abc import Callable, Iterator

from epochcast.tracking.reading import LogReader

BLOCK_BYTES = 1 << 20
MEGABYTES = 64


def _dated(n: int) -> str:
    return f"2031-05-{1 + n // 86400 % 28:02d} {n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d},000 - INFO - "


def _openmmlab(n: int) -> str:
    return _dated(n) + f"Iter [{n}/9000000]\tlr: 2e-02, eta: 8:03:50, time: 0.579, data_time: 0.134, loss: 0.7\n"


def _llm_c(n: int) -> str:
    return f"step {n}/9000000 | loss 3.123 (+0.1z)| norm 0.123 (+0.1z)| lr 5.1e-04 | 3674.20 ms | 36.7% bf16 MFU |\n"


def _own(n: int) -> str:
    return _dated(n) + f"Epoch: [{n // 1487}/9000] Iter [{n % 1487}/1487] || lr: 0.01 || Loss: 2.3\n"


def _chatty(n: int) -> str:
    return _openmmlab(n) if n % 20 == 0 else "WARNING: a library says the same thing again and again, on and on\n"


LOGS: dict[str, Callable[[int], str]] = {
    "OpenMMLab, a report in every line": _openmmlab,
    "llm.c, a report in every line": _llm_c,
    "words of an own loop, in every line": _own,
    "a report in one line of twenty": _chatty,
}


def speeds() -> Iterator[tuple[str, float, float]]:
    """(log, megabytes per second of processor time, how many times the time of splitting lines)."""
    for name, line in LOGS.items():
        reader, read, split, n, size = LogReader(), 0.0, 0.0, 0, 0
        for _ in range(MEGABYTES):
            count = BLOCK_BYTES // len(line(n))
            block = "".join(line(n + more) for more in range(count)).encode()
            n += count
            size += len(block)
            start = time.process_time()
            reader.feed(block)
            middle = time.process_time()
            block.split(b"\n")
            split += time.process_time() - middle
            read += middle - start
        yield name, size / 1e6 / read, read / split
