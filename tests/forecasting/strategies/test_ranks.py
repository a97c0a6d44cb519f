"""One rank's step of a network that was drawn out is that of the network built in full."""

import numpy as np
import pytest
from tests.graph.deep import KINDS, RECIPES, shallower

from epochcast.forecasting.exchange import gradients
from epochcast.forecasting.parts import Kernels
from epochcast.forecasting.strategies.cuts import Segments, segments
from epochcast.forecasting.strategies.degrees import Layout
from epochcast.forecasting.strategies.layout import SplitModel, stage_plan
from epochcast.forecasting.strategies.ranks import rank_for
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace
from epochcast.hardware.cluster import Group, Link
from epochcast.memory.lifetimes import lifetimes

WIRE = Link(1e-6, 1e10)
TENSOR, CONTEXT, EXPERT = Layout(tensor=2), Layout(context=2), Layout(data=2, expert=2)
DENSE = [name for name in KINDS if name not in ("qwen3_30b_a3b", "gpt_oss_20b")]
SPARSE = ["qwen3_30b_a3b", "gpt_oss_20b"]


def assert_same_segments(one: Segments, other: Segments) -> None:
    assert np.array_equal(one.of_entry, other.of_entry)
    assert (one.crossing_bytes, one.parameter_bytes) == (other.crossing_bytes, other.parameter_bytes)


def assert_same_rank(drawn: Trace, built: Trace, layout: Layout) -> None:
    one, other = rank_for(drawn, layout), rank_for(built, layout)
    assert one.trace.template.repeats is not None
    assert one.trace.ops == other.trace.ops
    assert one.trace.parameters == other.trace.parameters
    assert (one.sums, one.shifts) == (other.sums, other.shifts)
    assert (one.dispatches, one.experts) == (other.dispatches, other.experts)
    assert_same_segments(segments(one.trace), segments(other.trace))
    assert gradients(one.trace) == gradients(other.trace)
    for numbers in ("born", "last", "fixed_bytes", "sample_bytes", "roles"):
        assert np.array_equal(getattr(lifetimes(one.trace), numbers), getattr(lifetimes(other.trace), numbers)), numbers
    seconds = np.linspace(1, 2, len(one.trace.columns))
    pipeline, group = SplitModel("pipeline", "ring", layout=Layout(pipeline=4)), Group(1, 4, WIRE, WIRE)
    plans = [stage_plan(pipeline, group, rank, 1e9, Kernels(rank.trace, seconds, 0 * seconds)) for rank in (one, other)]
    assert plans[0].expert_bytes == plans[1].expert_bytes
    assert plans[0].part_of_segment == plans[1].part_of_segment


FUSED = [recipe for recipe in RECIPES[:3] if recipe.attention == "flash"]
CASES = [
    *[(name, TENSOR, recipe) for name in [*DENSE, *SPARSE] for recipe in RECIPES[:3]],
    *[(name, CONTEXT, recipe) for name in ("llama2_7b", "gpt2", "qwen3_30b_a3b") for recipe in FUSED],
    *[(name, EXPERT, recipe) for name in SPARSE for recipe in RECIPES[:3]],
    *[("gpt_oss_20b", Layout(tensor=2, context=2, expert=4), recipe) for recipe in FUSED],
]


@pytest.mark.parametrize(("name", "layout", "recipe"), CASES)
def test_a_rank_of_a_drawn_step(name: str, layout: Layout, recipe: Recipe) -> None:
    drawn, built = (model.trace(recipe) for model in shallower(name))
    assert_same_rank(drawn, built, layout)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: f"{recipe.precision}-{recipe.mode}")
def test_segments_and_gradients_of_a_drawn_step(name: str, recipe: Recipe) -> None:
    drawn, built = (model.trace(recipe) for model in shallower(name))
    assert_same_segments(segments(drawn), segments(built))
    assert gradients(drawn) == gradients(built)
