"""Laws of time over random jobs, always the same ones; all pairs of networks and GPUs are a study."""

import pytest

from epochcast.describe.capture.zoo import ZOO
from studies.laws.jobs import LAWS, broken, random_cases

# Of every kind, and built in a moment: plain, residual, grouped and depthwise convolutions, transformers, recurrent
# layers, tables of embeddings.
MODELS = (
    "alexnet",
    "vgg16",
    "resnet50",
    "mobilenet_v2",
    "unet",
    "gpt2",
    "bert_base",
    "vit_b_16",
    "lstm_wikitext2",
    "dlrm",
)


@pytest.fixture(scope="module")
def lines() -> dict[str, list[str]]:
    """By law, what breaks it; about a thousand forecasts."""
    cases = list(random_cases(seed=7, count=100, models=MODELS))
    assert len({case.device.generation for case in cases}) > 10
    return broken(cases)


@pytest.mark.parametrize("law", LAWS)
def test_a_law_holds_for_random_jobs(law: str, lines: dict[str, list[str]]) -> None:
    assert set(MODELS) <= set(ZOO)
    assert lines[law] == []
