from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.recipe import Recipe


def counted() -> tuple[BuiltModel, list[int]]:
    built: list[int] = []

    def build(batch: int) -> Graph:
        built.append(batch)
        b = Builder("small", batch)
        return b.finish(b.linear(b.input("x", (3,)), 4, name="fc"))

    return BuiltModel("small", build), built


def test_a_sweep_over_batches_builds_twice() -> None:
    model, built = counted()
    assert [model.trace(Recipe(batch)).batch for batch in (1, 8, 64, 512)] == [1, 8, 64, 512]
    assert built == [4, 6]


def test_another_recipe_is_built_anew() -> None:
    model, built = counted()
    model.trace(Recipe(8))
    model.trace(Recipe(8, optimizer="adam"))
    assert len(built) == 4


def test_the_graph_is_at_the_batch_asked_for() -> None:
    model, _ = counted()
    assert model.graph(7).inputs[0].shape == (7, 3)


def test_a_zoo_network_is_a_model() -> None:
    model: Model = zoo_model("resnet18")
    assert model.name == "resnet18"
    assert model.trace(Recipe(2)).name == model.graph(2).name == "resnet18"
