from dataclasses import replace
from pathlib import Path

import numpy as np

from epochcast.observe.history.history_compare import compare
from epochcast.observe.history.learning_curve import column_effects, learning_curve, sizes
from epochcast.observe.history.learning_set import LearningSet
from epochcast.surfaces.charts import history_report, save_chart


def test_sizes_double_up_to_all() -> None:
    assert sizes(45) == [10, 20, 40, 45] and sizes(7) == [7]


def test_a_report_shows_the_curve_and_what_moves_predictions(known: LearningSet, tmp_path: Path) -> None:
    curve = learning_curve(known, ["grey_box", "forecast", "linear"])
    assert {point.jobs for point in curve} == {10, 20, 40, 45}
    last = {point.model: point.mape for point in curve if point.jobs == 45}
    assert last["grey_box"] < last["forecast"] < last["linear"]
    effects = column_effects(known, "ridge")
    assert min(effects, key=lambda name: effects[name]) == "gpus" and effects["batch_per_gpu"] > 1.5
    answer = compare(known, splits=["holdout"], models=["grey_box", "ridge"], is_tuned=False)
    save_chart(history_report(answer, curve, effects, "ridge"), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "past jobs" in page and "split holdout" in page and "What moves the predictions" in page


def test_columns_that_the_model_does_not_believe_have_no_effect(known: LearningSet) -> None:
    assert known.jobs.physics is not None
    noise = np.exp(np.random.default_rng(3).normal(0, 0.3, len(known)))
    effects = column_effects(replace(known, target=known.jobs.physics.values * noise), "grey_box")
    assert max(effects.values()) < 1.06


def test_bars_of_effects_begin_at_a_factor_of_one(known: LearningSet) -> None:
    from epochcast.observe.history.history_compare import compare
    from epochcast.surfaces.charts import history_report

    compared = compare(known, splits=["holdout"], models=["ridge", "mean"], is_tuned=False)
    drawn = history_report(compared, learning_curve(known, ["ridge"]), {"batch": 1.5, "gpus": 1.0}, "ridge").to_dict()
    bars = drawn["vconcat"][-1]["encoding"]
    assert bars["x"]["scale"]["domain"] == [1.0, 1.5] and bars["x2"]["field"] == "one"
