"""examples/quickstart.ipynb runs from top to bottom, and its answers are HTML tables and charts."""

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
RUNS = ROOT / "src" / "epochcast" / "measure" / "neighbours" / "public_runs.csv"


@pytest.fixture(scope="module")
def shown() -> list[tuple[str, list[dict[str, Any]]]]:
    """(source, outputs) of every code cell."""
    if not RUNS.exists():
        pytest.skip("the table of public runs is not there: python -m training.neighbours")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(NOTEBOOK, 4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "kept without outputs"
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    return [(cell.source, list(cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


def _html(outputs: list[dict[str, Any]]) -> str:
    (only,) = outputs
    return str(only["data"]["text/html"])


def test_answers_are_tables_shown_once_and_plans_are_charts(shown: list[tuple[str, list[dict[str, Any]]]]) -> None:
    by_end = {source.splitlines()[-1]: outputs for source, outputs in shown}
    forecast = _html(by_end["answer"])
    assert "<table>" in forecast and "resnet50 on A100" in forecast and "90 % interval" in forecast
    assert "rent: " in _html(by_end["plan"]) and "<table>" in _html(by_end["plan"])
    assert "vega" in _html(by_end["charts.plan(plan)"])
    (neighbours,) = (outputs for source, outputs in shown if "with_neighbours" in source)
    assert "source" in str(neighbours)
    tracked = shown[-1][1][0]["text"]
    assert tracked.startswith("50% done, ") and tracked.endswith(" s left\n")
