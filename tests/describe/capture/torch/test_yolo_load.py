"""YOLO by the user's own ultralytics, which is not installed here."""

import importlib.util
import sys
from types import ModuleType

import pytest
import torch

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput


@pytest.mark.parametrize("name", ["yolo11n", "yolov8s-seg.pt", "ultralytics:rtdetr-l"])
@pytest.mark.skipif(importlib.util.find_spec("ultralytics") is not None, reason="ultralytics is installed")
def test_without_ultralytics_one_line_says_what_to_install(name: str) -> None:
    with pytest.raises(BadInput, match=r"built by your own ultralytics, which is not installed here .*pip install"):
        find_model(name).graph(1)


def test_a_network_of_the_zoo_keeps_its_name() -> None:
    assert find_model("yolov3").graph(1).name == "yolov3"


def test_a_network_is_built_by_the_class_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    class SegmentationModel(torch.nn.Module):
        def __init__(self, yaml: str, ch: int, verbose: bool) -> None:
            super().__init__()
            built.append((yaml, ch))
            self.layer = torch.nn.Conv2d(ch, 4, 3)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"boxes": self.layer(x)}

    tasks = ModuleType("ultralytics.nn.tasks")
    tasks.SegmentationModel = SegmentationModel  # type: ignore[attr-defined]
    nn = ModuleType("ultralytics.nn")
    nn.tasks = tasks  # type: ignore[attr-defined]
    for name, module in (("ultralytics", ModuleType("ultralytics")), ("ultralytics.nn", nn), (tasks.__name__, tasks)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("EPOCHCAST_CACHE", "off")
    trace = find_model("yolo11n-seg.pt").trace(Recipe(2))
    assert built == [("yolo11n-seg.yaml", 3)]
    assert trace.inputs[0].shape == (1, 3, 640, 640)
    assert any("assigns boxes" in note for note in trace.notes)
