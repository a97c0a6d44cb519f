"""How a post-training job shares its GPUs."""

from typing import Any

import pytest

import epochcast as ec
from epochcast import api
from epochcast.decide.advise.placement_advice import PlacementAdvice
from epochcast.errors import BadInput

ASKED: dict[str, Any] = {
    "device": "H100",
    "gpus": 4,
    "algorithm": "grpo",
    "prompts_per_step": 32,
    "generations": 4,
    "prompt": 128,
    "response": "lognormal:mean=200,max=512",
    "lora": 8,
}


@pytest.fixture(scope="module")
def advice() -> PlacementAdvice:
    return api.advise_placement("llama3_2_1b", **ASKED)


def test_every_way_to_split_is_forecast_and_the_fastest_that_fits_is_first(advice: PlacementAdvice) -> None:
    ways = {(split.generation_gpus, split.staleness) for split in advice.splits}
    assert ways == {(None, 0), *((gpus, staleness) for gpus in (1, 2, 3) for staleness in (0, 1))}
    fitting = [split.step_seconds.mid for split in advice.splits if split.fits]
    assert fitting == sorted(fitting)
    assert advice.fits


def test_a_split_that_runs_ahead_is_never_slower_than_in_turn(advice: PlacementAdvice) -> None:
    seconds = {(split.generation_gpus, split.staleness): split.step_seconds.mid for split in advice.splits}
    assert all(seconds[gpus, 1] <= seconds[gpus, 0] for gpus in (1, 2, 3))


def test_it_says_whether_colocation_pays(advice: PlacementAdvice) -> None:
    (note,) = advice.warnings
    best = advice.splits[0]
    assert note.startswith("Colocation pays" if best.generation_gpus is None else "A split pays")


def test_each_way_is_what_forecast_says(advice: PlacementAdvice) -> None:
    split = next(each for each in advice.splits if each.generation_gpus == 2 and each.staleness == 1)
    answer = ec.post_train("llama3_2_1b", **ASKED, generation_gpus=2, staleness=1)
    assert answer.step_seconds.mid == pytest.approx(split.step_seconds.mid)


def test_what_generates_nothing_and_a_plan_are_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"^dpo generates nothing"):
        api.advise_placement("gpt2", device="H100", algorithm="dpo", prompts_per_step=4, prompt=64, response="64")
    with pytest.raises(BadInput, match=r"answered by `epochcast forecast` and `epochcast advise`$"):
        api.plan("gpt2", algorithm="grpo", prompts_per_step=4, prompt=64, response="64", samples=100)
