"""A small table of past jobs that follows a law with a little noise, and the same with physics given."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from epochcast.observe.history.job_table import Physics
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.learning_set import LearningSet, learning_set

WORK = {"small": 1.0, "large": 4.0}
SPEED = {"slow": 1.0, "fast": 3.0, "faster": 5.0}


def rows(seed: int = 0) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    return [
        {
            "network": network,
            "gpu": gpu,
            "batch": batch,
            "num_gpus": gpus,
            "step_ms": 1e3 * physics(network, gpu, batch) * (1.2 if network == "large" else 0.9) * noise,
        }
        for network in WORK
        for gpu in SPEED
        for batch in (8, 16, 32, 64, 128)
        for gpus in (1, 2)
        for noise in [float(np.exp(generator.normal(0, 0.02)))]
    ]


def physics(network: str, gpu: str, batch: int) -> float:
    return WORK[network] / SPEED[gpu] * (batch / 100 + 0.02)


@pytest.fixture
def past() -> list[dict[str, Any]]:
    return rows()


@pytest.fixture
def known(past: list[dict[str, Any]]) -> LearningSet:
    """With the law itself as physics, wrong by a factor that the network decides."""
    found = learning_set(read_frame(past), "step_seconds")
    values = np.array([physics(row["network"], row["gpu"], row["batch"]) for row in past])
    return replace(found, jobs=replace(found.jobs, physics=Physics(values, np.full(len(past), "forecast"))))
