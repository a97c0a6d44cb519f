from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.rank_steps import rank_for

GPT = zoo_model("gpt2")


def test_one_template_has_one_rank_of_a_layout_at_every_batch() -> None:
    layout = Layout(tensor=2)
    few, many = (rank_for(GPT.trace(Recipe(batch)), layout).trace for batch in (2, 16))
    assert few.template is many.template
    assert (few.batch, many.batch) == (2, 16)


def test_ranks_of_other_layouts_have_other_steps() -> None:
    trace = GPT.trace(Recipe(2))
    tensor, context = (rank_for(trace, layout) for layout in (Layout(tensor=2), Layout(context=2)))
    assert tensor.trace.template != context.trace.template
    assert tensor.sums
    assert not context.sums
