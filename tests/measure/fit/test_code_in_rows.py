"""A row of a table never runs code unless the user allows it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import recipe_to_json
from epochcast.errors import BadInput
from epochcast.hardware.catalogue import find_device
from epochcast.measure.bench.measurements import MeasuredMachine, Measurement
from epochcast.measure.evaluate.evaluate import evaluate
from epochcast.measure.fit.calibrate import calibrate
from epochcast.measure.fit.local_steps import fit_steps
from epochcast.predict.cost.cost_models import find_cost_model

ANALYTIC = find_cost_model("analytic")


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("open('ran', 'w').close()\ndef factory():\n    raise SystemExit\n")
    return tmp_path / "ran"


def code_rows() -> list[dict[str, Any]]:
    row = {"model": "evil.py:factory", "device": "V100", "batch_per_gpu": 8, "step_seconds": 0.1, "input_shape": "3"}
    # What is tuned is told from the network's size, which asks for the network before any forecast does.
    tuned = {**row, "task": "finetuning", "note": "Model TFLOP / sec / GPU=100; tokens/s/GPU=100"}
    return [row, tuned, {**row, "model": "evil:factory"}, {**row, "gpus": 2}]


@pytest.mark.parametrize("given_single", [False, True])
def test_evaluate_refuses_rows_of_code(evil: Path, given_single: bool) -> None:
    table = pl.DataFrame(code_rows(), infer_schema_length=None)
    found = evaluate(table, cost_model=ANALYTIC, given_single=given_single)
    assert all("would run Python code" in failure.reason for failure in found.failures)
    assert len(found.failures) == (1 if given_single else 4)
    assert not evil.exists()


def test_calibrate_refuses_rows_of_code(evil: Path) -> None:
    with pytest.raises(BadInput, match="would run Python code"):
        calibrate(code_rows(), find_device("V100"), ANALYTIC, date="2026-01-01")
    assert not evil.exists()


def test_fit_refuses_rows_of_code(evil: Path) -> None:
    question = {"device": "cpu", "backend": "torch", "model": "evil.py:factory", "recipe": recipe_to_json(Recipe(2))}
    row = Measurement("model", "step", MeasuredMachine("m"), question, seconds=0.1)
    found = fit_steps([row], None, find_device("V100"), lambda part: None)  # type: ignore[arg-type]  # it is not asked
    assert "would run Python code" in found.unused[0]
    assert not evil.exists()
