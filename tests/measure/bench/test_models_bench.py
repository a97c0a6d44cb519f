from pathlib import Path

import pytest

from epochcast.describe.graph.recipe import Recipe
from epochcast.measure.bench.campaign import measure
from epochcast.measure.bench.models_bench import question_of, reference_of

LOADER = """
import torch
def make_loader():
    return [(torch.randn(4, 1, 28, 28), torch.randint(0, 10, (4,))) for _ in range(2)]
def nothing():
    return []
def model():
    return torch.nn.Sequential(torch.nn.Linear(6, 3)), torch.empty(2, 6)
"""


@pytest.fixture
def user(tmp_path: Path) -> Path:
    path = tmp_path / "user_loader.py"
    path.write_text(LOADER)
    return path


@pytest.mark.parametrize("mode", ["training", "forward_backward", "forward"])
def test_a_step_of_a_small_network_is_measured(mode: str) -> None:
    row = measure(question_of("mnist_cnn", Recipe(4, "adam", mode=mode), limit_seconds=0.5))
    assert row.failed is None and row.seconds is not None
    assert row.details["reference"] == "mnist_cnn"
    assert row.peak_bytes is not None


# by hand: relu keeps 64·30² + 64·13² + 32·4² = 68,928 numbers per sample for backward
def test_peak_memory_grows_by_what_a_sample_keeps() -> None:
    small, large = (measure(question_of("cifar10_cnn", Recipe(n), limit_seconds=0.1)).peak_bytes for n in (8, 16))
    assert small is not None and large is not None
    assert small > 4 * 2 * 288_746  # weights and their gradients
    assert 1 < (large - small) / (8 * 4 * 68_928) < 4


def test_what_torch_cannot_do_is_a_row_with_the_reason() -> None:
    row = measure(question_of("mnist_cnn", Recipe(4, "lamb")))
    assert row.failed is not None and row.failed.startswith("torch has no optimizer 'lamb'")


def test_too_large_a_batch_is_a_row_that_says_out_of_memory() -> None:
    row = measure(question_of("patch_camelyon_cnn", Recipe(10**7), limit_seconds=0.5))
    assert row.failed is not None and row.failed.startswith("out of memory:")


def test_an_unknown_network_is_a_row_with_the_near_names() -> None:
    row = measure(question_of("mnist_cn", Recipe(4)))
    assert row.failed is not None and "near: mnist_cnn" in row.failed


def test_the_users_own_module_is_trained(user: Path) -> None:
    row = measure(question_of(f"{user}:model", Recipe(4), limit_seconds=0.2))
    assert row.failed is None


def test_real_data_come_from_the_users_loader(user: Path) -> None:
    recipe = Recipe(4)
    step = measure(question_of("mnist_cnn", recipe, data=f"{user}:make_loader", limit_seconds=0.3))
    alone = measure(question_of("mnist_cnn", recipe, data=f"{user}:make_loader", only_loader=True, limit_seconds=0.3))
    assert step.failed is None and alone.failed is None
    assert step.low_seconds is not None and alone.low_seconds is not None
    assert alone.low_seconds < step.low_seconds


def test_a_loader_without_batches_is_a_row_that_says_so(user: Path) -> None:
    row = measure(question_of("mnist_cnn", Recipe(4), data=f"{user}:nothing"))
    assert row.failed == "the loader gives no batch"


def test_a_row_says_what_a_forecast_is_asked_for() -> None:
    asked = question_of("bert_mini", Recipe(2))
    reference, shape = reference_of(asked.ask)
    assert reference.startswith("hf:BertConfig(") and shape == (128,)
