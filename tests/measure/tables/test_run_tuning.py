import pytest

from epochcast.measure.tables.run_network import NamedNetwork
from epochcast.measure.tables.run_tuning import run_tuning

TINY = NamedNetwork("tinyllama_1_1b", None)

# TinyLlama has 1.1 billion parameters: 1000 tokens a second are 6.6 teraflop/s where all of it is trained.
LORA = {"lora": 16, "lora_targets": ("q_proj", "k_proj", "v_proj")}


def row(flops: float, task: str = "finetuning") -> dict[str, str]:
    return {"task": task, "note": f"TP=1; Model TFLOP / sec / GPU={flops}; tokens/s/GPU=1000; VP=2"}


@pytest.mark.parametrize(("flops", "trained"), [(6.7, {}), (4.4, LORA)])
def test_four_flops_for_a_parameter_and_a_token_are_lora(flops: float, trained: dict[str, object]) -> None:
    assert run_tuning(row(flops), TINY) == trained


def test_only_fine_tuning_is_looked_at() -> None:
    assert run_tuning(row(4.4, "pretraining"), TINY) == {}


def test_a_row_that_does_not_tell_trains_everything() -> None:
    assert run_tuning({"task": "finetuning", "note": "TP=2"}, TINY) == {}
