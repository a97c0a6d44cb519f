import pytest

from epochcast.errors import BadInput, UnknownName
from epochcast.predict.cost.stacks import find_stack, load, stacks

ROUND = """
[[stack]]
name = "round"
layers = "tensorflow2"
run_seconds = 2e-4
op_seconds = 1e-5
step_seconds = 1e-3
start_up_seconds = 2
variable_seconds = { sgd = 0, rmsprop = 3e-5 }
mirrored_seconds = 2e-3
mirrored_bandwidth = "5 GB/s"
source = "made up"
"""


def test_a_step_by_hand() -> None:
    stack = load(ROUND)["round"]
    assert stack.host_seconds(50, 10, "sgd") == pytest.approx(1.5e-3)
    assert stack.host_seconds(50, 10, "rmsprop") == pytest.approx(1.8e-3)


def test_mirrored_adds_one_all_reduce() -> None:
    assert load(ROUND)["round"].mirrored_extra_seconds(10e6) == pytest.approx(4e-3)


def test_every_shipped_stack_has_a_source() -> None:
    assert stacks()
    assert all(stack.source for stack in stacks().values())


def test_an_unknown_stack_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no software stack called 'caffe'; known: tensorflow2_p100_report"):
        find_stack("caffe")


def test_an_unknown_optimizer_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no optimizer of stack round called 'lamb'; known: rmsprop, sgd"):
        load(ROUND)["round"].host_seconds(1, 1, "lamb")


def test_a_negative_figure_names_file_and_row() -> None:
    with pytest.raises(BadInput, match=r"stacks.toml, \[\[stack\]\] row 1 \(round\): run_seconds must be between"):
        load(ROUND.replace("run_seconds = 2e-4", "run_seconds = -1"))
