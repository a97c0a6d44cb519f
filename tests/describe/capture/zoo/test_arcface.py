"""The head of face recognition: identities split over GPUs, some of them sampled."""

import pytest

from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Matmul
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName


def graph(reference: str, batch: int = 2) -> Graph:
    return find_model(reference).graph(batch)


def test_a_rank_scores_the_faces_of_all_ranks_against_its_share() -> None:
    """618,000 identities over 8 GPUs, a tenth of them: 7,725 of 512, for 8 times the batch."""
    whole = graph("arcface:iresnet50,classes=618000,ranks=8,sampled=0.1")
    head = next(op for op in whole.ops if op.layer == "head.cosines")
    assert isinstance(head.kind, Matmul)
    assert head.output.shape == (16, 7725)
    assert whole.parameter_count == graph("iresnet50").parameter_count + 7725 * 512


def test_every_parameter_but_the_scale_of_the_features_is_trained() -> None:
    trace = find_model("arcface:iresnet18,classes=1000").trace(Recipe(2, "momentum"))
    assert [p.name for p in trace.parameters if not p.trainable] == ["features.weight"]
    assert trace.opaque == ()


def test_an_unknown_network_or_option_names_what_there_is() -> None:
    with pytest.raises(UnknownName, match="iresnet49"):
        find_model("arcface:iresnet49")
    with pytest.raises(BadInput, match="unknown option 'class'; write arcface:NETWORK,classes=COUNT"):
        find_model("arcface:iresnet50,class=10")
    with pytest.raises(BadInput, match="options are numbers"):
        find_model("arcface:iresnet50,classes=many")
    with pytest.raises(BadInput, match="sampled is above 0 and at most 1"):
        find_model("arcface:iresnet50,classes=10,sampled=2")
