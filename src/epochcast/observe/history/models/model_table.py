"""All models that learn from past jobs, in one table: how each is fitted, and which hyper-parameters are tried.

`fit(rows, options, seed)` gives a `FittedModel`. Models of the source documents predict the target itself, as these
describe them; where that was better in cross-validation, trees, support vectors and nets may predict its logarithm
(`log`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epochcast.errors import BadInput, UnknownName
from epochcast.observe.history.design import Design, Term, design_of
from epochcast.observe.history.fitted_model import FittedModel, Stage
from epochcast.observe.history.job_table import Array, Jobs
from epochcast.observe.history.learning_set import LearningSet
from epochcast.observe.history.models import linear
from epochcast.observe.history.models import svr_and_mlp as curves
from epochcast.observe.history.models import tree_models as trees
from epochcast.observe.history.models.grey_box import fit_forecast_alone, fit_grey_box
from epochcast.observe.history.models.selection import SELECTIONS
from epochcast.observe.history.predictors import Linear, Predictor
from epochcast.observe.history.roles import column_of

Options = Mapping[str, Any]
# What a target is at least, as a share of the smallest that was seen.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class ModelKind:
    """One model: its `title` in words, `fit`, and the hyper-parameters to choose from."""

    title: str
    fit: Callable[[LearningSet, Options, int], FittedModel]
    grid: tuple[Options, ...] = ({},)
    needs_physics: bool = False


def find_kind(name: str) -> ModelKind:
    """The model called `name`."""
    if name not in MODELS:
        raise UnknownName("model of history", name, MODELS)
    return MODELS[name]


def _fitted(
    name: str, past: LearningSet, design: Design, make: Callable[[Array, Array], Predictor], is_log: bool = False
) -> FittedModel:
    """One stage of features and a function of them."""
    target = np.log(past.target) if is_log else past.target
    predictor = make(design.matrix(past.inputs), target)
    return FittedModel(name, ((Stage(design, predictor),),), is_log, False, LEAST_SHARE * float(past.target.min()))


def _linear(past: LearningSet, _: Options, __: int) -> FittedModel:
    design = design_of(past.inputs)
    growing = linear.growing_of(design)
    return _fitted("linear", past, design, lambda x, y: linear.least_squares(x, y, growing))


def _ridge(past: LearningSet, options: Options, _: int) -> FittedModel:
    design = design_of(past.inputs, inverses=bool(options.get("inverses", False)), logs=bool(options.get("log")))
    growing, penalty = linear.growing_of(design), float(options.get("penalty", 1e-3))
    is_log = bool(options.get("log", False))
    return _fitted("ridge", past, design, lambda x, y: linear.ridge(x, y, penalty, growing), is_log)


def _nnls(past: LearningSet, options: Options, _: int) -> FittedModel:
    design = design_of(past.inputs, inverses=bool(options.get("inverses", True)))
    return _fitted("nnls", past, design, linear.non_negative)


def _stepwise(past: LearningSet, options: Options, _: int) -> FittedModel:
    """Draper–Smith on numbers, their inverses and products, and the categories."""
    return _selected("stepwise", past, {"selection": "stepwise", **options})


def _augmented(past: LearningSet, options: Options, _: int) -> FittedModel:
    """The same with logarithms, and with another selection."""
    return _selected("augmented", past, {"logs": True, **options})


def _selected(name: str, past: LearningSet, options: Options) -> FittedModel:
    """Least squares on the features that a selection keeps."""
    degree, logs = int(options.get("degree", 2)), bool(options.get("logs", False))
    all_terms = design_of(past.inputs, inverses=True, degree=degree, logs=logs)
    is_log = bool(options.get("log", False))
    target = np.log(past.target) if is_log else past.target
    selected = SELECTIONS[str(options.get("selection", "forward"))](all_terms.matrix(past.inputs), target)
    design = all_terms.only(sorted(selected))
    growing = linear.growing_of(design)
    return _fitted(name, past, design, lambda x, y: linear.ridge(x, y, 0.0, growing), is_log)


def _ernest(past: LearningSet, _: Options, __: int) -> FittedModel:
    """θ0 + θ1·scale/machines + θ2·log(machines) + θ3·machines, θ ≥ 0 (Venkataraman et al. 2016), and the networks."""
    jobs = past.inputs
    machines, scale = _column("gpus", jobs), column_of("samples", jobs.numbers) or _column("batch", jobs)
    is_split = scale in ("samples", "global_batch") and machines != scale
    terms = [
        Term(((scale, 1), (machines, -1)) if is_split else ((scale, 1),)),
        Term(((machines, 1),), is_log=True),
        Term(((machines, 1),)),
    ]
    return _fitted("ernest", past, _with_levels(jobs, terms), linear.non_negative)


def _optimus(past: LearningSet, _: Options, __: int) -> FittedModel:
    """β0 + Σ β_i·I_i + β5·W + β6·B/(T+1) + β7·B/(W·F): networks, workers, batch, threads, flops of the GPU."""
    jobs = past.inputs
    workers, batch = _column("gpus", jobs), _column("batch", jobs)
    threads, power = column_of("threads", jobs.numbers), column_of("power", jobs.numbers)
    below = ((workers, -1),) if power is None else ((workers, -1), (power, -1))
    terms = [
        Term(((workers, 1),)),
        Term(((batch, 1),) if threads is None else ((batch, 1), (threads, -1))),
        Term(((batch, 1), *below)),
    ]
    design = _with_levels(jobs, terms)
    return _fitted("optimus", past, design, lambda x, y: linear.ridge(x, y, 0.0, linear.growing_of(design)))


def _column(role: str, jobs: Jobs) -> str:
    """A column that a formula cannot be without."""
    name = column_of(role, jobs.numbers)
    if name is None:
        raise BadInput(f"this formula needs a column of {role}")
    return name


def _with_levels(jobs: Jobs, terms: list[Term]) -> Design:
    """The terms of a formula, and the categories of the table."""
    all_terms = design_of(jobs)
    levels = [term for term in all_terms.terms if term.level is not None]
    return Design((*terms, *levels), all_terms.fills)


def _svr(past: LearningSet, options: Options, _: int) -> FittedModel:
    design = design_of(past.inputs, logs=True)
    return _fitted("svr", past, design, lambda x, y: curves.support_vectors(x, y, **_but_log(options)), True)


def _tree(name: str, grow: Callable[..., Predictor]) -> Callable[[LearningSet, Options, int], FittedModel]:
    def fit(past: LearningSet, options: Options, seed: int) -> FittedModel:
        design = design_of(past.inputs)
        growing = linear.growing_of(design)
        is_log = bool(options.get("log", True))
        return _fitted(name, past, design, lambda x, y: grow(x, y, growing, seed=seed, **_but_log(options)), is_log)

    return fit


def _net(past: LearningSet, options: Options, seed: int) -> FittedModel:
    design = design_of(past.inputs, logs=True)
    is_log = bool(options.get("log", True))
    return _fitted("net", past, design, lambda x, y: curves.net(x, y, seed=seed, **_but_log(options)), is_log)


def _but_log(options: Options) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "log"}


def _mean(past: LearningSet, _: Options, __: int) -> FittedModel:
    """The geometric mean of all rows."""
    design = Design(())
    constant = Linear(np.zeros(0), float(np.log(past.target).mean()))
    return FittedModel("mean", ((Stage(design, constant),),), True, False, LEAST_SHARE * float(past.target.min()))


MODELS: Mapping[str, ModelKind] = {
    "grey_box": ModelKind("the forecast, corrected by history", fit_grey_box, needs_physics=True),
    "forecast": ModelKind("the forecast times one factor", fit_forecast_alone, needs_physics=True),
    "linear": ModelKind("least squares", _linear),
    "ridge": ModelKind(
        "least squares with small weights",
        _ridge,
        tuple({"penalty": p, "log": is_log} for p in (1e-4, 1e-2, 1.0) for is_log in (False, True)),
    ),
    "nnls": ModelKind("least squares with weights of 0 or more", _nnls),
    "stepwise": ModelKind("Draper–Smith selection among inverses and products", _stepwise),
    "augmented": ModelKind(
        "inverses, products and logarithms, selected forward or by importance",
        _augmented,
        tuple(
            {"selection": selection, "log": is_log}
            for selection in ("forward", "importance")
            for is_log in (False, True)
        ),
    ),
    "ernest": ModelKind("Ernest: scale/machines, log(machines), machines", _ernest),
    "optimus": ModelKind("Optimus: networks, workers, batch/threads, batch/(workers·flops)", _optimus),
    "svr": ModelKind("support vectors", _svr, tuple({"penalty": p} for p in (1.0, 10.0, 100.0))),
    "decision_tree": ModelKind(
        "one tree",
        _tree("decision_tree", trees.decision_tree),
        tuple({"max_depth": depth, "log": is_log} for depth in (5, 13, None) for is_log in (False, True)),
    ),
    "random_forest": ModelKind(
        "the mean of many trees",
        _tree("random_forest", trees.random_forest),
        tuple({"trees": 200, "log": is_log} for is_log in (False, True)),
    ),
    "boosting": ModelKind(
        "trees that correct each other (LightGBM)",
        _tree("boosting", trees.boosting),
        tuple({"rounds": rounds, "log": is_log} for rounds in (150, 600) for is_log in (False, True)),
    ),
    "net": ModelKind("three hidden layers", _net, tuple({"log": is_log} for is_log in (False, True))),
    "mean": ModelKind("the geometric mean of all", _mean),
}
