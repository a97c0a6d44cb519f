import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.forecasting.strategies.rules import STRATEGIES, Family, Layout, find_strategy


def test_a_product_is_read_degree_by_degree() -> None:
    assert find_strategy("dp8,tp4,pp2", 64).layout == Layout(8, 4, 2)
    assert find_strategy("PP2, tp4", 8).layout == Layout(1, 4, 2)
    assert find_strategy("dp1,tp2,pp4,vp3", 8).layout == Layout(1, 2, 4, 3)
    assert find_strategy("dp2,cp4,ep8,zero1", 8).layout == Layout(2, context=4, expert=8)


def test_a_product_of_data_parallelism_alone_is_ddp() -> None:
    assert find_strategy("dp8", 8) == STRATEGIES["ddp"]
    assert find_strategy("dp8,zero1", 8) == STRATEGIES["zero1"]


def test_an_option_names_the_collective() -> None:
    assert find_strategy("mirrored:hierarchical_copy", 4).algorithm == "hierarchical_copy"
    assert find_strategy("multi_worker_mirrored:ring", 4).algorithm == "ring"
    assert find_strategy("parameter_server:4", 16).servers == 4


def test_one_way_of_splitting_takes_all_gpus() -> None:
    assert find_strategy("tensor", 4).layout == Layout(tensor=4)
    assert find_strategy("pipeline:gpipe", 4).layout == Layout(pipeline=4, schedule="gpipe")
    assert find_strategy("model", 4).family is Family.LAYOUT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dp8,tp2", "'dp8,tp2' is for 16 GPUs, and there are 8"),
        ("dp4,dp2", "says dp twice"),
        ("dp8,tp0", "every degree must be at least 1"),
        ("dp8,vp2", "there is no pp"),
        ("dp4,pp2,ep3", "experts spread over 3 GPUs do not divide the 4 of a stage"),
        ("parameter_server:0", "the number of servers must be at least 1"),
        ("ddp:ring", "ddp takes no option"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        find_strategy(text, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("horovdo", "no strategy called 'horovdo'; near: horovod"),
        ("dp4,xp2", "no part of strategy 'dp4,xp2' called 'xp2'; known: cp2, dp8, ep8, pp2, tp4, vp2, zero1"),
        ("pipeline:zigzag", "no option of strategy pipeline called 'zigzag'; known: 1f1b, gpipe"),
    ],
)
def test_an_unknown_name_comes_with_near_ones(text: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        find_strategy(text, 8)
