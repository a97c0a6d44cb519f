"""Answers as tables of polars and pandas."""

import sys
from typing import Any

import pytest

import epochcast as ec
from epochcast.errors import MissingExtra

pl = pytest.importorskip("polars", reason="polars is not installed")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    common: dict[str, Any] = {"samples": 10_000}
    return {
        "forecast": ec.forecast("mnist_cnn", device="V100", batch=8, **common),
        "scaling": ec.scaling("mnist_cnn", device="V100", gpus=[1, 2, 4], batch=8, **common),
        "advise": ec.advise("mnist_cnn", device="V100"),
        "plan": ec.plan("mnist_cnn", batch=8, clouds=["aws"], devices=["V100"], gpus=[1, 4], **common),
    }


def test_a_row_for_each_row_of_the_answer(answers: dict[str, Any]) -> None:
    rows = {name: answer.to_polars().height for name, answer in answers.items()}
    advice, plan = answers["advise"], answers["plan"]
    assert rows == {
        "forecast": 1,
        "scaling": 3,
        "advise": 1 + len(advice.alternatives),
        "plan": len(plan.candidates),
    }


def test_intervals_are_three_columns(answers: dict[str, Any]) -> None:
    frame = answers["scaling"].to_polars()
    steps = [row.forecast.step_seconds for row in answers["scaling"].rows]
    for end in ("low", "mid", "high"):
        assert frame[f"step_seconds_{end}"].to_list() == [getattr(step, end) for step in steps]
    assert "step_seconds" not in frame.columns


def test_what_is_advised_comes_first(answers: dict[str, Any]) -> None:
    first = answers["advise"].to_polars().row(0, named=True)
    assert (first["change"], first["batch"], first["speedup"]) == ("", answers["advise"].choice.batch, 1.0)


def test_a_plan_says_what_is_on_its_frontier(answers: dict[str, Any]) -> None:
    plan = answers["plan"].within(budget_dollars=1e6)
    frame = plan.to_polars()
    assert frame["is_on_frontier"].sum() == len(plan.frontier)
    assert frame["is_chosen"].sum() == 1


def test_an_interval_that_is_unknown_in_one_row_leaves_no_column_of_its_own() -> None:
    from epochcast.base.frames import Framed

    class Rows(Framed):
        def records(self) -> list[dict[str, Any]]:
            return [{"dollars": None}, {"dollars": {"low": 1.0, "mid": 2.0, "high": 3.0}}]

    assert Rows().to_polars().to_dicts()[0] == {"dollars_low": None, "dollars_mid": None, "dollars_high": None}


def test_pandas_has_the_same(answers: dict[str, Any]) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    for answer in answers.values():
        assert list(answer.to_pandas().columns) == answer.to_polars().columns


def test_a_measured_table_does_so_too() -> None:
    from epochcast.measure.evaluate.evaluate import evaluate

    row = {"model": "resnet18", "device": "V100", "batch_per_gpu": 8, "precision": "fp32", "seconds_per_step": 0.02}
    row |= {"gpus": 1, "nodes": 1, "mode": "training", "source": "here", "framework": "pytorch", "optimizer": "sgd"}
    answer = evaluate(pl.DataFrame([row]))
    assert answer.to_polars().height == len(answer.to_pandas()) == 1


@pytest.mark.parametrize(("package", "extra"), [("polars", "fit"), ("pandas", "pandas")])
def test_a_missing_package_is_one_line(
    package: str, extra: str, answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"this needs {package}; .*pip install '\.\[{extra}\]'"):
        getattr(answers["forecast"], f"to_{package}")()
