from dataclasses import replace

import numpy as np
import pytest
from tests.every import every

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.history.design import Design, Term, design_of
from epochcast.observe.history.fitted_model import FittedModel
from epochcast.observe.history.job_table import Jobs
from epochcast.observe.history.job_table_reader import read_frame
from epochcast.observe.history.learner import learn
from epochcast.observe.history.learning_set import LearningSet, learning_set
from epochcast.observe.history.models.linear import least_squares, non_negative
from epochcast.observe.history.models.model_table import MODELS, find_kind
from epochcast.observe.history.models.stepwise import p_values, selected
from epochcast.observe.history.models.tree_models import extra_trees


@every("name", MODELS)
def test_every_model_predicts_the_same_after_it_was_written_down(name: str, known: LearningSet) -> None:
    options = {"trees": 5} if name == "random_forest" else {}
    fitted = find_kind(name).fit(known, options, 0)
    again = FittedModel.from_dict(fitted.as_dict())
    predicted = fitted.predict(known.inputs)
    assert np.array_equal(again.predict(known.inputs), predicted)
    assert (predicted > 0).all() and np.isfinite(predicted).all()


@pytest.mark.parametrize("name", ["decision_tree", "random_forest", "svr", "net"])
def test_our_evaluation_is_that_of_scikit_learn(name: str, known: LearningSet) -> None:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.svm import SVR
    from sklearn.tree import DecisionTreeRegressor

    design = design_of(known.inputs, logs=name in ("svr", "net"))
    rows, target = design.matrix(known.inputs), np.log(known.target)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    ours = find_kind(name).fit(known, {"trees": 5} if name == "random_forest" else {}, 0).predict(known.inputs)
    match name:
        case "decision_tree":
            theirs = DecisionTreeRegressor(max_depth=13, random_state=0).fit(rows, target).predict(rows)
        case "random_forest":
            theirs = RandomForestRegressor(5, random_state=0).fit(rows, target).predict(rows)
        case "svr":
            theirs = SVR(C=10.0, epsilon=0.01, gamma=1 / rows.shape[1]).fit(scaled, target).predict(scaled)
        case _:
            spread = target.std()
            net = MLPRegressor(
                hidden_layer_sizes=(250, 200, 200), alpha=1e-4, random_state=0, max_iter=200, early_stopping=True
            ).fit(scaled, (target - target.mean()) / spread)
            theirs = net.predict(scaled) * spread + target.mean()
    assert np.log(ours) == pytest.approx(theirs, abs=1e-6)


def test_least_squares_by_hand() -> None:
    """y = 2 + 3x."""
    line = least_squares(np.array([[0.0], [1.0], [2.0]]), np.array([2.0, 5.0, 8.0]), np.zeros(1, dtype=np.bool_))
    assert [line.intercept, line.weights[0]] == pytest.approx([2, 3])


def test_least_squares_needs_more_rows_than_features() -> None:
    with pytest.raises(BadInput, match="more rows than features"):
        least_squares(np.eye(3), np.arange(3.0), np.zeros(3, dtype=np.bool_))


def test_non_negative_weights_stay_so() -> None:
    rows = np.array([[1.0, 5.0], [2.0, 3.0], [3.0, 1.0], [4.0, 0.5]])
    fitted = non_negative(rows, np.array([1.0, 2.0, 3.0, 4.0]))
    assert (fitted.weights >= 0).all() and fitted.intercept >= 0


def test_p_values_are_those_of_statsmodels() -> None:
    import statsmodels.api as sm

    generator = np.random.default_rng(1)
    rows = generator.normal(size=(40, 3))
    target = 2 * rows[:, 0] + 0.2 * rows[:, 1] + generator.normal(size=40)
    theirs = sm.OLS(target, sm.add_constant(rows)).fit().pvalues[1:]
    assert p_values(rows, target) == pytest.approx(theirs, rel=1e-6)


def test_stepwise_keeps_what_matters_and_leaves_noise_out() -> None:
    generator = np.random.default_rng(2)
    rows = generator.normal(size=(300, 12))
    target = 3 * rows[:, 4] - 2 * rows[:, 7] + 0.1 * generator.normal(size=300)
    kept = selected(rows, target, p_enter=0.001, p_remove=0.002)
    assert kept == [4, 7]


def test_stepwise_takes_a_feature_out_again_that_others_have_made_useless() -> None:
    """x2 = x0 + x1 + noise enters first; with x0 and x1 in, it says nothing."""
    generator = np.random.default_rng(3)
    parts = generator.normal(size=(500, 2))
    together = parts.sum(axis=1) + 0.3 * generator.normal(size=500)
    rows = np.column_stack([parts, together])
    target = parts.sum(axis=1) + 0.01 * generator.normal(size=500)
    assert sorted(selected(rows, target, p_enter=1e-4, p_remove=1e-3)) == [0, 1]


def test_a_law_of_inverses_and_products_is_found_by_stepwise() -> None:
    """Gianniti's augmentation: y = 5·batch/gpus + 2/gpus."""
    table = [
        {"batch": b, "gpus": g, "note": f"{b % 3}", "step_seconds": 5 * b / g + 2 / g}
        for b in (1, 2, 3, 5, 8, 13)
        for g in (1, 2, 4, 8)
    ]
    known = learning_set(read_frame(table), "step_seconds")
    fitted = find_kind("stepwise").fit(known, {}, 0)
    assert fitted.predict(known.inputs) == pytest.approx(known.target, rel=1e-6)


def test_terms_are_read_as_formulas() -> None:
    jobs = Jobs({"batch": np.array([2.0, 4.0]), "gpus": np.array([1.0, 2.0])}, {"device": np.array(["a", "b"])})
    names = design_of(jobs, inverses=True, degree=2).names
    assert {"batch", "1 / gpus", "batch / gpus", "batch^2", "device = a"} <= set(names)
    assert "batch / batch" not in names and len(names) == len(set(names))


def test_an_empty_cell_is_the_median_and_says_so() -> None:
    jobs = Jobs({"batch": np.array([1.0, 3.0, np.nan])}, {})
    design = design_of(jobs)
    assert design.matrix(jobs).tolist() == [[1, 0], [3, 0], [2, 1]]
    assert design.names == ["batch", "batch is empty"]


def test_an_unseen_category_sets_no_term() -> None:
    design = Design((Term((("device", 1),), level="a"),))
    assert design.matrix(Jobs({}, {"device": np.array(["b", "a"])})).tolist() == [[0], [1]]


def test_the_grey_box_learns_by_which_factor_physics_errs(known: LearningSet) -> None:
    fitted = find_kind("grey_box").fit(known, {}, 0)
    assert np.abs(fitted.predict(known.inputs) / known.target - 1).mean() < 0.03


def test_the_grey_box_follows_physics_where_a_black_box_cannot(known: LearningSet) -> None:
    """Learned up to batch 32, asked for 64 and 128."""
    batch = known.jobs.numbers["batch_per_gpu"]
    below, above = known.take(np.flatnonzero(batch <= 32)), known.take(np.flatnonzero(batch > 32))

    def error(name: str) -> float:
        predicted = find_kind(name).fit(below, {}, 0).predict(above.inputs)
        return float(np.abs(predicted / above.target - 1).mean())

    assert error("grey_box") < 0.08
    assert error("grey_box") < error("boosting") / 2


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no model of history called 'forest'"):
        find_kind("forest")


def test_trees_that_split_at_random_are_those_of_scikit_learn() -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    generator = np.random.default_rng(0)
    rows, target = generator.random((40, 3)), generator.random(40)
    theirs = ExtraTreesRegressor(60, random_state=0).fit(rows, target)
    asked = generator.random((20, 3))
    assert extra_trees(rows, target, seed=0).values(asked) == pytest.approx(theirs.predict(asked))


def test_the_grey_box_is_the_middle_of_its_corrections(known: LearningSet) -> None:
    """Row by row; of four the mean of the second and the third."""
    fitted = find_kind("grey_box").fit(known, {}, 0)
    jobs = known.inputs
    assert jobs.physics is not None
    alone = np.stack([replace(fitted, sums=(stages,)).predict(jobs) for stages in fitted.sums])
    second, third = np.sort(alone, axis=0)[1:3]
    assert len(alone) == 4 and fitted.predict(jobs) == pytest.approx(np.sqrt(second * third))


def test_beyond_what_was_learned_from_the_grey_box_follows_physics(known: LearningSet) -> None:
    fitted = find_kind("grey_box").fit(known, {}, 0)
    jobs = known.inputs
    assert jobs.physics is not None
    far = replace(jobs, physics=replace(jobs.physics, values=1e3 * jobs.physics.values))
    ratio = fitted.predict(far) / fitted.predict(jobs)
    assert (ratio > 500).all() and (ratio < 2e3).all()


def test_corrections_count_as_much_as_past_jobs_bear_out(known: LearningSet) -> None:
    """Columns that have nothing to do with how far forecasts are off are not believed."""
    assert known.jobs.physics is not None
    noise = np.exp(np.random.default_rng(3).normal(0, 0.3, len(known)))
    by_chance = learn("grey_box", replace(known, target=known.jobs.physics.values * noise), new_columns=())
    taught = learn("grey_box", known, new_columns=())
    assert taught.fitted.shares is not None and by_chance.fitted.shares is not None
    assert sum(taught.fitted.shares.values) > 0.9 and sum(by_chance.fitted.shares.values) < 0.3
