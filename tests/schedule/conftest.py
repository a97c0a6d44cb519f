"""Small queues that can be followed by hand."""

from collections.abc import Mapping

import pytest
from tests.observe.store.conftest import database, emptied, opened, postgres, store, with_tables

from epochcast.interval import Interval
from epochcast.schedule.workload_jobs import Fleet, GpuChoice, NodeType, QueuedJob

__all__ = ["database", "emptied", "opened", "postgres", "store", "with_tables"]

ONE = NodeType("one", "V100", 1, 3.6)
TWO = NodeType("two", "V100", 2, 7.2)
FOUR = NodeType("four", "V100", 4, 14.4)


def queued(
    name: str, submit: float, deadline: float, seconds: Mapping[int, float], weight: float = 0.01, **more: object
) -> QueuedJob:
    """A job on V100s: seconds by number of GPUs."""
    told = {GpuChoice("V100", gpus): Interval.exact(value) for gpus, value in seconds.items()}
    return QueuedJob(name, submit, deadline, weight, told, **more)  # type: ignore[arg-type]


@pytest.fixture
def fleet() -> Fleet:
    """Two machines at a time, of one, two or four V100s at a tenth of a cent per GPU second."""
    return Fleet(2, (ONE, TWO, FOUR))
