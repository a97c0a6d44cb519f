"""Small captures for the tests of the PyTorch front end."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace

Capture = Callable[..., Trace]


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing a test captures comes from disk or stays there."""
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")


@pytest.fixture
def capture() -> Capture:
    """`capture(module, inputs, batch=2, **recipe)`: one step of a module that is made on `meta`."""

    def captured(make: Callable[[], nn.Module], inputs: Any, batch: int = 2, **recipe: Any) -> Trace:
        with torch.device("meta"):
            module = make()
        return from_workload(Workload(module, inputs=inputs)).trace(Recipe(batch, **recipe))

    return captured
