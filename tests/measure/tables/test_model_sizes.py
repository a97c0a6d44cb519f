"""Language models that a table names and that are built from sizes in `model_names.toml`: as many parameters as
published.
"""

import pytest

from epochcast.describe.capture.model_reference import SIZES, ModelReference
from epochcast.describe.capture.resolve import find_model
from epochcast.measure.tables.run_network import model_names

# Of the Hub's weights (Qwen, Yi, MPT-7B), llm-foundry's own table at 2,048 positions (MPT), the model card (Granite),
# the papers (GPT-3, Nemotron-4 340B); else worked out from the sizes of NeMo's GPTConfig5B, GPTConfig20B,
# Nemotron3Config8B and Nemotron3Config22B: 12·L·h² of products, V·h once (GPT, with positions) or twice (Nemotron).
PUBLISHED = {
    "Qwen-1_8B-Chat": 1_836_828_672,
    "Qwen-7B-Chat": 7_721_324_544,
    "Qwen-14B-Chat": 14_167_290_880,
    "Qwen1.5-7B": 7_721_324_544,
    "Yi-34B-Chat": 34_388_917_248,
    "ibm-granite/granite-3.0-3b-a800m-instruct": 3.3e9,
    "gpt3-5b": 12 * 24 * 4096**2 + (51_200 + 2048) * 4096,
    "gpt3-20b": 12 * 44 * 6144**2 + (51_200 + 2048) * 6144,
    "gpt3-175b": 175e9,
    "nemotron-8b": 12 * 32 * 4096**2 + 2 * 256_000 * 4096,
    "nemotron-22b": 12 * 40 * 6144**2 + 2 * 256_000 * 6144,
    "nemotron-340b": 9.4e9 + 331.6e9,
    "mpt-125m": 125_311_488,
    "mpt-350m": 355_985_408,
    "mpt-760m": 760_470_528,
    "mpt-1b": 1_315_950_592,
    "mpt-3b": 2_651_837_440,
    "mpt-7b": 6_649_286_656,
    "mpt-13b": 12_853_954_560,
    "mpt-30b": 29_975_214_080,
    "mpt-70b": 64_862_437_376,
}
POSITIONS = (2048,)


def sized_names() -> dict[str, str]:
    entries = {
        name: entry if isinstance(entry, str) else entry["model"] for name, entry in model_names()["any"].items()
    }
    return {name: reference for name, reference in entries.items() if ModelReference.of(reference).prefix == SIZES}


def test_every_model_built_from_sizes_has_a_published_number_of_parameters() -> None:
    assert set(sized_names()) == set(PUBLISHED)


def test_models_built_from_sizes_have_as_many_parameters_as_published() -> None:
    wrong = {}
    for name, reference in sized_names().items():
        parameters = find_model(reference, POSITIONS, allow_code=False).graph(1).parameter_count
        if parameters != pytest.approx(PUBLISHED[name], rel=0.01):
            wrong[name] = parameters / PUBLISHED[name]
    assert not wrong
