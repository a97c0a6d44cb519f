"""Loops over time that are written in Python are noted, wherever they are written."""

import pytest
import torch
from torch import nn

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.torch.torch_model import scan_notes
from epochcast.describe.capture.workload import Workload
from epochcast.describe.graph.recipe import Recipe


class Scan(nn.Module):
    """A state that decays, time after time."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inputs, state = self.enter(x), torch.zeros_like(x[:, 0])
        for time in range(x.shape[1]):
            state = state * 0.9 + inputs[:, time]
        return state


class Sums(nn.Module):
    """Many layers, their sums written in the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(50))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x)
        return x


@pytest.mark.parametrize(
    ("module", "note_start"),
    [
        (Scan(), "the model runs a loop of 64 equal ops"),
        (nn.Sequential(Scan(), nn.ReLU()), "module '0' runs a loop of 64"),
    ],
    ids=["the model itself", "a module of it"],
)
def test_a_scan_is_noted(module: nn.Module, note_start: str) -> None:
    trace = find_model(Workload(module, inputs=torch.zeros(2, 64, 8))).trace(Recipe(2))
    assert any(note.startswith(note_start) and "is not modelled" in note for note in trace.notes)


def test_sums_behind_many_layers_are_no_scan() -> None:
    ops = find_model(Workload(Sums(), inputs=torch.zeros(2, 8))).trace(Recipe(2)).ops
    assert list(scan_notes(ops)) == []
