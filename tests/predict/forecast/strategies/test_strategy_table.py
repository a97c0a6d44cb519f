from dataclasses import replace

import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.forecast.strategies.degrees import SERIAL, Layout
from epochcast.predict.forecast.strategies.layout import SplitModel
from epochcast.predict.forecast.strategies.parameter_servers import ParameterServers
from epochcast.predict.forecast.strategies.strategy_table import DDP, SINGLE, ZERO1, find_strategy, strategy_for


def layout(text: str, gpus: int) -> Layout:
    strategy = find_strategy(text, gpus)
    assert isinstance(strategy, SplitModel)
    return strategy.layout


def test_a_product_is_read_degree_by_degree() -> None:
    assert layout("dp8,tp4,pp2", 64) == Layout(8, 4, 2)
    assert layout("PP2, tp4", 8) == Layout(1, 4, 2)
    assert layout("dp1,tp2,pp4,vp3", 8) == Layout(1, 2, 4, 3)
    assert layout("dp2,cp4,ep8,zero1", 8) == Layout(2, context=4, expert=8)


def test_a_product_of_data_parallelism_alone_is_ddp() -> None:
    assert replace(find_strategy("dp8", 8), name="ddp") == DDP
    assert replace(find_strategy("dp8,zero1", 8), name="zero1") == ZERO1


def test_an_option_names_the_collective() -> None:
    assert find_strategy("mirrored:hierarchical_copy", 4).algorithm == "hierarchical_copy"
    assert find_strategy("multi_worker_mirrored:ring", 4).algorithm == "ring"
    servers = find_strategy("parameter_server:4", 16)
    assert isinstance(servers, ParameterServers) and servers.servers == 4


def test_one_way_of_splitting_takes_all_gpus() -> None:
    assert layout("tensor", 4) == Layout(tensor=4)
    assert layout("pipeline:gpipe", 4) == Layout(pipeline=4, schedule="gpipe")
    assert layout("model", 4) == Layout(pipeline=4, schedule=SERIAL)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" Multi-Worker-Mirrored:RING ", "multi_worker_mirrored:ring"),
        ("PP2, tp4", "pp2,tp4"),
        ("dp8,Zero1", "dp8,zero1"),
    ],
)
def test_a_name_is_kept_in_its_plain_form(text: str, name: str) -> None:
    assert find_strategy(text, 8).name == name


def test_one_gpu_shares_with_nobody_whatever_it_is_called() -> None:
    assert find_strategy("single", 1) == SINGLE
    assert replace(find_strategy("fsdp", 1), name="single") == SINGLE


@pytest.mark.parametrize(
    ("text", "gpus", "nodes", "name"),
    [
        (None, 1, 1, "single"),
        (None, 8, 1, "ddp"),
        ("mirrored", 1, 1, "single"),
        ("mirrored", 8, 1, "mirrored"),
        ("mirrored", 16, 2, "multi_worker_mirrored"),
        ("mirrored:nccl", 16, 2, "multi_worker_mirrored:nccl"),
        ("mirrored:hierarchical_copy", 16, 2, "multi_worker_mirrored:auto"),
        ("tp2,pp2", 16, 2, "dp4,tp2,pp2"),
        ("dp2,tp8", 16, 2, "dp2,tp8"),
    ],
)
def test_a_strategy_goes_by_another_name_on_other_gpus_and_boxes(
    text: str | None, gpus: int, nodes: int, name: str
) -> None:
    assert strategy_for(text, gpus, nodes).name == name


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
        ("dp4,xp2", "no part of strategy 'dp4,xp2' called 'xp2'; known: cp2, dp8, ep8, even, overlap, pp2, tp4"),
        ("pipeline:zigzag", "no option of strategy pipeline called 'zigzag'; known: 1f1b, gpipe"),
    ],
)
def test_an_unknown_name_comes_with_near_ones(text: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        find_strategy(text, 8)
