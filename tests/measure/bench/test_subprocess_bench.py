"""The user's code is measured in a process of its own: nothing mixes, and a crash is a row."""

import sys
from pathlib import Path

import pytest

from epochcast.describe.graph.recipe import Recipe
from epochcast.measure.bench.campaign import measure
from epochcast.measure.bench.memory_probe import probe_memory
from epochcast.measure.bench.models_bench import question_of
from epochcast.measure.bench.subprocess_bench import is_user_code, loader_measured_apart

torch = pytest.importorskip("torch")

CODE = """
import torch
from helper import WIDTH

def make():
    return torch.nn.Linear(WIDTH, 10), torch.zeros(2, WIDTH)

def crash():
    import os
    os._exit(7)

def make_loader():
    return torch.utils.data.DataLoader(torch.zeros(32, WIDTH), batch_size=4)
"""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    """Two files with equally named neighbours."""
    for name, width in (("a", 60), ("b", 3072)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.py").write_text(CODE, encoding="utf-8")
        (tmp_path / name / "helper.py").write_text(f"WIDTH = {width}\n", encoding="utf-8")
    return str(tmp_path / "a" / "net.py"), str(tmp_path / "b" / "net.py")


def test_equally_named_neighbours_of_measured_models_do_not_mix(folders: tuple[str, str]) -> None:
    modules, path = set(sys.modules), list(sys.path)
    rows = [measure(question_of(f"{file}:make", Recipe(4), limit_seconds=0.1)) for file in folders]
    assert [row.failed for row in rows] == [None, None]
    small, large = (row.peak_bytes for row in rows)
    assert small is not None and large is not None
    assert large > 4 * 3072 * 10 > 10 * small / 2
    assert not {"helper", "epochcast_user_net"} & (set(sys.modules) - modules)
    assert sys.path == path
    here = measure(question_of("mnist_cnn", Recipe(4), limit_seconds=0.1))
    assert rows[0].machine == here.machine


def test_code_that_ends_its_process_is_a_row(folders: tuple[str, str]) -> None:
    crashed = measure(question_of(f"{folders[0]}:crash", Recipe(4), limit_seconds=0.1))
    assert crashed.failed is not None
    assert "ended with exit code 7, without an answer" in crashed.failed


def test_loaders_and_probes_run_apart_too(folders: tuple[str, str]) -> None:
    before = sys.modules.get("helper")
    measured = loader_measured_apart(f"{folders[1]}:make_loader")
    assert (measured.batch, measured.sample_bytes) == (4, 4 * 3072)
    assert measured.service().seconds(4) > 0
    assert probe_memory(f"{folders[1]}:make", batches=(64, 128)).coefficients.input_bytes == 4 * 3072
    assert sys.modules.get("helper") is before


def test_libraries_and_our_own_networks_are_no_code_of_the_user() -> None:
    libraries = [
        "resnet50",
        "timm:vit_tiny_patch16_224",
        "hf:BertConfig()",
        "epochcast.measure.bench.bench_networks:x",
        None,
        3,
    ]
    assert not any(is_user_code(name) for name in libraries)
    assert is_user_code("net.py:make") and is_user_code("package.module:make")
