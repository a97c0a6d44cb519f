import json
from pathlib import Path

import pytest
from tests.every import every

from epochcast.describe.capture.hub import HUB, ids_of, is_hub_id, typed_model
from epochcast.describe.capture.hub_media import MEDIA
from epochcast.describe.capture.hub_names import plain
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.zoo import ZOO, zoo_model
from epochcast.describe.capture.zoo.entry import ZooEntry
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import AmbiguousName, EpochcastError, UnknownName
from epochcast.predict.forecast.job_settings import filled
from epochcast.surfaces.cli.command_line import run

CAPTURED = {name: known for name, known in HUB.items() if known.reference.startswith("hf:")}
ONE_OF_EACH = (
    "google-bert/bert-base-cased",
    "FacebookAI/roberta-large",
    "distilbert/distilbert-base-uncased",
    "albert/albert-base-v2",
    "google/electra-base-discriminator",
    "microsoft/deberta-v3-base",
    "facebook/bart-base",
    "openai/whisper-tiny",
    "facebook/opt-350m",
    "EleutherAI/gpt-neo-125m",
    "EleutherAI/gpt-j-6b",
    "bigscience/bloom-560m",
    "facebook/convnext-tiny-224",
    "facebook/dinov2-base",
    "answerdotai/ModernBERT-base",
    "microsoft/deberta-v3-small",
    "almanach/camembert-base",
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("ResNet-50", "resnet50"),
        ("resnet 50", "resnet50"),
        ("gpt2-medium", "gpt2_medium"),
        ("GPT-2", "gpt2"),
        ("ViT-B/16", "vit_b_16"),
        ("EfficientNet-B0", "efficientnet_b0"),
        ("Llama 3.1 8B", "llama3_1_8b"),
        ("t5-base", "t5_base"),
        ("opt-1.3b", "opt_1_3b"),
        ("bert-base-uncased", "google-bert/bert-base-uncased"),
        ("Bert_Base_Uncased", "google-bert/bert-base-uncased"),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B"),
        ("qwen2.5-7b", "Qwen/Qwen2.5-7B"),
        ("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1"),
        ("sdxl", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("hf:gpt2", "gpt2"),
        ("hf:bert-base-uncased", "google-bert/bert-base-uncased"),
        ("hf:meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
    ],
)
def test_names_are_taken_as_people_type_them(typed: str, meant: str) -> None:
    assert find_model(typed).name == meant


@every("name", ZOO)
def test_every_name_of_the_zoo_is_its_own_however_it_is_spelt(name: str) -> None:
    assert typed_model(name.upper().replace("_", "-")).name in (name, _twin(name))


def _twin(name: str) -> str:
    """Another name of the same spelling, if the zoo has one."""
    return next((other for other in ZOO if other != name and plain(other) == plain(name)), name)


# 2.5 · 7 is not 2 · 57: digits that punctuation keeps apart stay apart.
def test_digits_do_not_run_together() -> None:
    assert plain("Qwen2.5-7B") != plain("Qwen2-57B") != plain("Qwen25-7B")
    with pytest.raises(UnknownName, match="no model called 'Qwen2-57B'; near: "):
        find_model("Qwen2-57B")


@pytest.mark.parametrize("family", ["llama", "bert", "Qwen", "whisper"])
def test_a_family_lists_its_members(family: str) -> None:
    with pytest.raises(AmbiguousName, match=f"model '{family}' could be: "):
        find_model(family)


# Five is the beginning of fifty as text, not as a number.
def test_a_cut_off_number_is_no_family() -> None:
    with pytest.raises(UnknownName, match=r"no model called 'resnet5'; near: "):
        find_model("resnet5")


def test_one_that_begins_so_is_named() -> None:
    with pytest.raises(AmbiguousName, match=r"'smollm3' could be: HuggingFaceTB/SmolLM3-3B; name it in full$"):
        find_model("smollm3")


def test_a_folder_comes_before_an_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert is_hub_id("gpt2-medium") and not is_hub_id("gpt2") and not is_hub_id("BertConfig")


def test_an_unknown_model_is_answered_with_the_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no model called 'Llama-3.1-9B'; near: Llama-3.1-8B"):
        find_model("Llama-3.1-9B")


@pytest.mark.parametrize(
    ("upload", "meant"),
    [
        ("unsloth/llama-3-8b-bnb-4bit", "llama3_8b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-unsloth-bnb-4bit", "meta-llama/Llama-3.1-8B"),
        ("NousResearch/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B"),
        ("TheBloke/Mistral-7B-Instruct-v0.2-AWQ", "mistralai/Mistral-7B-v0.1"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B"),
        ("unsloth/gemma-2-9b-it-bnb-4bit", "google/gemma-2-9b"),
        ("unsloth/codellama-34b-bnb-4bit", "codellama/CodeLlama-34b-hf"),
    ],
)
def test_an_upload_by_others_is_the_model_it_is_named_after(upload: str, meant: str) -> None:
    assert find_model(upload).name == meant
    assert is_hub_id(upload)


def test_the_name_of_a_quantised_upload_says_its_format() -> None:
    options = filled("unsloth/llama-3-8b-bnb-4bit", {"lora": 16}).options
    assert options["quantize"] == "nf4-dq"
    assert "quantize" not in filled("unsloth/llama-3-8b-bnb-4bit", {"lora": 16, "eight_bit": True}).options
    assert "quantize" not in filled("meta-llama/Llama-3.1-8B", {"lora": 16}).options


@pytest.mark.parametrize("name", ["nobody/Ninja-9B", "hf:nobody/Ninja-9B"])
def test_an_unknown_id_is_answered_with_what_to_type(name: str) -> None:
    with pytest.raises(
        UnknownName, match=r"^no model called 'nobody/Ninja-9B'; .*hf:config.json .*decoder:layers=32"
    ) as error:
        find_model(name)
    assert "\n" not in str(error.value)


def test_a_checkpoint_is_its_configuration(tmp_path: Path) -> None:
    with pytest.raises(EpochcastError, match=r"is a folder without config\.json: give the model itself"):
        find_model(str(tmp_path))
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(EpochcastError, match="has an adapter alone: give the model itself"):
        find_model(str(tmp_path))


def test_three_hundred_ids_are_known_and_none_means_two_things() -> None:
    assert len(HUB) >= 180
    assert sum(len(ids_of(hub_id)) for hub_id in HUB) >= 300
    spelt: dict[str, str] = {}
    for name in HUB:
        for one in ids_of(name):
            assert spelt.setdefault(plain(one), name) == name, one


@every("name", [name for name, known in HUB.items() if known.reference in ZOO])
def test_an_id_of_the_zoo_names_a_model_of_it(name: str) -> None:
    assert HUB[name].parameters > 10**7
    assert typed_model(name).name == name


# Sizes are right where the parameters are the published ones, to the last.
@every("name", [name for name, known in HUB.items() if isinstance(known.model, ZooEntry)])
def test_models_of_their_own_sizes_have_the_published_parameters(name: str) -> None:
    assert typed_model(name, (16,)).graph(1).parameter_count == HUB[name].parameters


@every(
    "name",
    ["sd15_unet", "sd21_unet", "sdxl_unet", "clip_vit_b_32", "clip_vit_b_16", "clip_vit_l_14", "gpt2", "t5_base"],
)
def test_models_of_the_zoo_have_the_published_parameters(name: str) -> None:
    published = {known.parameters for known in HUB.values() if known.reference == name}
    assert published == {zoo_model(name).graph(1).parameter_count}


@every("name", ONE_OF_EACH)
def test_captured_configurations_have_the_published_parameters(name: str) -> None:
    pytest.importorskip("transformers", reason="Hub models of the encoders are captured by it")
    from epochcast.describe.capture.hf import hf_model

    module = hf_model(CAPTURED[name].reference).module
    assert sum(parameter.numel() for parameter in module.parameters()) == CAPTURED[name].parameters


def test_every_captured_configuration_can_be_read() -> None:
    from epochcast.describe.capture.hf import parse_reference

    # those of `MEDIA` are all built in test_hf_media
    captured = (known.reference for hub_id, known in CAPTURED.items() if hub_id not in MEDIA)
    families = {parse_reference(reference).config for reference in captured}
    assert families <= {parse_reference(CAPTURED[name].reference).config for name in ONE_OF_EACH}


def test_an_id_keeps_its_name_and_says_what_should_be_known() -> None:
    trace = typed_model("bert-base-uncased", (64,)).trace(Recipe(2))
    assert trace.name == "google-bert/bert-base-uncased"
    assert "to classify texts, bert_base_classification" in trace.notes[-1]
    graph = typed_model("bert-base-uncased", (64,)).graph(2)
    assert (graph.name, graph.notes[-1]) == (trace.name, trace.notes[-1])


def test_the_list_of_models_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "--json"]) == 0
    hub = {row["id"]: row for row in json.loads(capsys.readouterr().out)["hub"]}
    assert set(hub) == set(HUB)
    assert hub["openai-community/gpt2"]["model"] == "gpt2"
    assert run(["models"]) == 0
    assert "meta-llama/Llama-3.1-8B" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", " ", "-", "/", "__", "a" * 5000, "ü", "meta-llama/"])
def test_odd_names_are_one_clear_line(name: str) -> None:
    with pytest.raises(EpochcastError):
        typed_model(name)
