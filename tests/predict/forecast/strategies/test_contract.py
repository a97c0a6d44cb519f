"""What holds for every strategy in the table: a new one is tested the moment it is registered."""

import pickle
import re
from math import isfinite
from pathlib import Path

import pytest
from tests.every import every

from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput, EpochcastError
from epochcast.hardware.catalogue import find_device
from epochcast.predict.comm.allreduce import ALGORITHMS
from epochcast.predict.comm.protocol import fitted
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.forecast.placement import Placement, place, placed
from epochcast.predict.forecast.step import step_forecast
from epochcast.predict.forecast.strategies.strategy_table import STRATEGIES, find_strategy, strategy_for
from epochcast.predict.forecast.where import PLACE_OPTIONS

GPUS = 4
SHARED = sorted(set(STRATEGIES) - {"single"})
NETWORKS = {
    "gpt2": zoo_model("gpt2", (128,)).trace(Recipe(4, optimizer="adam", accumulate=GPUS)),
    "alexnet": zoo_model("alexnet").trace(Recipe(8, optimizer="adam", accumulate=GPUS)),
    "forward": zoo_model("alexnet").trace(Recipe(8, mode="forward")),
}
SCALING_PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "scaling.md"

every_strategy = every("name", SHARED)
every_network = every("trace", NETWORKS.values(), ids=NETWORKS)


def cannot(name: str, trace: Trace) -> str | None:
    """The one line by which a strategy refuses a network, None where it takes it."""
    try:
        find_strategy(name, GPUS).rank_trace(trace, GPUS)
    except BadInput as error:
        return str(error)
    return None


def placement(name: str) -> Placement:
    return place("A100", gpus=GPUS, strategy=name)


@every_strategy
def test_a_strategy_is_a_value_that_knows_its_name(name: str) -> None:
    strategy = find_strategy(name, GPUS)
    assert strategy.name == name and find_strategy(name.upper(), GPUS) == strategy
    assert pickle.loads(pickle.dumps(strategy)) == strategy and hash(strategy) == hash(find_strategy(name, GPUS))
    assert strategy.algorithm in {*ALGORITHMS, "fastest"}
    assert strategy.runner in fitted()["waiting"]["runner"]


@every_strategy
@every_network
def test_a_step_is_finite_its_parts_sum_to_it_and_its_ends_are_in_order(
    name: str, trace: Trace, per_flop: CostModel
) -> None:
    if refusal := cannot(name, trace):
        with pytest.raises(BadInput, match=re.escape(refusal)):
            step_forecast(trace, placement(name), per_flop)
        return
    step = step_forecast(trace, placement(name), per_flop)
    parts = step.parts.as_dict()
    assert all(isfinite(seconds) and seconds >= 0 for seconds in parts.values())
    assert sum(parts.values()) == pytest.approx(step.seconds.mid, rel=1e-9)
    assert 0 < step.seconds.low <= step.seconds.mid <= step.seconds.high
    assert step.parts.bubble <= step.parts.exposed_comm
    assert 0 < step.forward_seconds <= step.seconds.mid


@every_strategy
@every_network
def test_a_gpu_holds_a_share_of_what_one_alone_would_hold(name: str, trace: Trace) -> None:
    if cannot(name, trace):
        return
    held = find_strategy(name, GPUS).held(trace, GPUS)
    mine, whole = (sum(p.elements for p in t.parameters) for t in (held.trace, trace))
    assert 0 < mine <= whole
    shares = held.shares
    for fraction in (shares.parameter_fraction, shares.gradient_fraction, shares.state_fraction):
        assert 0 < fraction <= 1 + 1e-9
    assert 0 < shares.activation_fraction <= trace.recipe.accumulate  # GPipe has all micro-batches in flight


@every_strategy
def test_replicas_and_stages_divide_the_gpus(name: str) -> None:
    strategy = find_strategy(name, GPUS)
    assert GPUS % (strategy.replicas(GPUS) * strategy.stages) == 0
    assert placement(name).replicas == strategy.replicas(GPUS)


@every_strategy
def test_what_a_strategy_cannot_do_is_refused_in_one_clear_line(name: str) -> None:
    strategy = find_strategy(name, GPUS)
    with pytest.raises(BadInput, match=f"{name}.*GPU"):
        strategy.check(1, 1)
    with pytest.raises(EpochcastError) as refused:
        find_strategy(f"{name}:0nonsense", GPUS)
    refusals = [str(refused.value), *(line for trace in NETWORKS.values() if (line := cannot(name, trace)))]
    assert all(line and "\n" not in line and "--" not in line for line in refusals)


@every_strategy
def test_a_strategy_runs_on_several_boxes_or_says_why_not(name: str) -> None:
    strategy = strategy_for(name, 2 * GPUS, 2)
    try:
        placement = placed(find_device("A100"), 2 * GPUS, 2, strategy)
    except BadInput as error:
        assert name in str(error) and "one box" in str(error)
    else:
        assert placement.strategy == strategy


def test_every_network_is_taken_by_some_strategy_and_every_strategy_takes_some_network() -> None:
    taken = {(name, network) for name in SHARED for network, trace in NETWORKS.items() if not cannot(name, trace)}
    assert {name for name, _ in taken} == set(SHARED)
    assert {network for _, network in taken} == set(NETWORKS)


@every_strategy
def test_the_command_line_and_the_page_on_scaling_list_every_strategy(name: str) -> None:
    table = [line for line in SCALING_PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert any(re.search(rf"`{name}[`\[]", line) for line in table)
    assert re.search(rf"\b{name}\b", next(one.help for one in PLACE_OPTIONS if one.name == "strategy"))
