from typing import Any

import pytest

import epochcast as ec
from epochcast.api import find_model
from epochcast.decide.afford.afford_request import AffordRequest
from epochcast.errors import BadInput, UnknownName

HERE: dict[str, Any] = {"clouds": ["aws"], "devices": ["T4"], "gpus": (1, 4)}
IMAGES: dict[str, Any] = {**HERE, "dataset": "cifar10"}


def test_a_row_has_the_most_epochs_that_the_limits_pay_for() -> None:
    answer = ec.afford(find_model("resnet18"), budget_dollars=5.0, **IMAGES)
    (row,) = answer.rows
    assert row.candidate is not None and row.epochs and row.method == "full"
    assert row.budget_probability is not None and row.budget_probability >= 0.9 - 1e-9
    plan = ec.plan(find_model("resnet18"), most_epochs=True, budget_dollars=5.0, sure=0.9, **IMAGES)
    assert plan.most_epochs == row.epochs
    assert answer.sentence.startswith(f"$5.00 trains {row.model} for {row.epochs:,.0f} epochs on ")


def test_more_money_and_a_smaller_model_train_for_longer() -> None:
    few, more = (ec.afford(["resnet18", "resnet50"], budget_dollars=budget, **IMAGES).rows for budget in (2.0, 8.0))
    assert (few[0].epochs or 0) > (few[1].epochs or 0)
    assert all((after.epochs or 0) > (before.epochs or 0) for before, after in zip(few, more, strict=True))


def test_a_language_model_is_counted_in_tokens_in_full_and_by_adapters() -> None:
    small: dict[str, Any] = {"clouds": ["aws"], "devices": ["A10G"], "gpus": (1,), "input_shape": (128,)}
    answer = ec.afford("gpt2", budget_dollars=10.0, **small)
    full, adapted = answer.rows
    assert (full.method, adapted.method, full.epochs) == ("full", "lora", None)
    assert full.tokens is not None and adapted.tokens is not None and adapted.tokens > full.tokens > 10**6
    assert full.tokens == full.samples * 128
    only = ec.afford("gpt2", budget_dollars=10.0, methods=("lora",), **small)
    assert [row.method for row in only.rows] == ["lora"]


def test_nothing_names_the_nearest_miss_by_time_and_by_money() -> None:
    answer = ec.afford("resnet50", budget_dollars=0.01, deadline_seconds=60.0, **IMAGES)
    assert not answer.is_any and answer.rows[0].epochs == 0
    assert answer.sentence.startswith("Nothing fits within $0.01 in 1 min 0 s. The first epoch takes at least ")


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadInput, match="give a budget like"):
        AffordRequest()
    with pytest.raises(BadInput, match="how much data is an epoch"):
        ec.afford("resnet18", budget_dollars=5.0, **HERE)
    with pytest.raises(UnknownName, match="no method called 'qlora'"):
        ec.afford("resnet18", budget_dollars=5.0, methods=("qlora",), **IMAGES)
    with pytest.raises(BadInput, match="Give one or more models"):
        ec.afford([], budget_dollars=5.0)
