import json
from pathlib import Path

import pytest

from epochcast.describe.capture.capture_cache import CachedModel
from epochcast.describe.capture.diffusers_models import diffusion_models
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.capture.torch.torch_model import TorchModel
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName

pytest.importorskip("diffusers")

# Parameters in billions, as the model cards round them; the classes of DiT hold a table of labels in every block.
PARAMETERS = {
    "sd3-medium": 2.03,
    "flux1-dev": 11.9,
    "wan2.1-1.3b": 1.42,
    "ltx-video": 1.92,
    "sana-1.6b": 1.60,
    "pixart-sigma": 0.61,
    "auraflow": 6.83,
    "dit-xl-2": 0.75,
    "flux2-klein-4b": 3.88,
    "longcat-image": 6.27,
    "chroma1-hd": 8.9,
    "qwen-image": 20.4,
    "hunyuan-video": 12.8,
}


# Published with their weights, to the last.
UNETS = {"sd15": 859_520_964, "sd21": 865_910_724, "sdxl": 2_567_463_684}


def parameter_count(name: str) -> int:
    model = find_model(f"diffusers:{name}")
    assert isinstance(model, CachedModel) and isinstance(model.model, TorchModel)
    return sum(parameter.tensor.elements for parameter in model.model.parameters())


def test_published_networks_have_their_number_of_parameters() -> None:
    counted = {name: parameter_count(name) / 1e9 for name in PARAMETERS}
    assert counted == pytest.approx(PARAMETERS, rel=0.01)
    assert {name: parameter_count(name) for name in UNETS} == UNETS


def test_a_captured_u_net_is_that_of_the_zoo() -> None:
    captured, drawn = find_model("diffusers:sd15"), find_model("sd15_unet")
    steps = [model.trace(Recipe(2, precision="amp_bf16", optimizer="adamw")) for model in (captured, drawn)]
    assert steps[0].inputs[0].shape == steps[1].inputs[0].shape
    assert steps[0].flops["matrix"] == pytest.approx(steps[1].flops["matrix"], rel=0.01)
    assert [getattr(model, "host_class", None) for model in (captured, drawn)] == ["diffusion_trainer"] * 2


@pytest.mark.parametrize(
    ("hub_id", "name"),
    [("black-forest-labs/FLUX.1-dev", "flux1-dev"), ("THUDM/CogVideoX-2b", "cogvideox-2b")],
)
def test_an_id_of_the_hub_is_its_network(hub_id: str, name: str) -> None:
    for reference in (hub_id, f"diffusers:{hub_id}"):
        assert find_model(reference).name == f"diffusers:{name}"


def test_no_id_means_two_networks() -> None:
    ids = [hub_id for model in diffusion_models().values() for hub_id in model.ids]
    assert len(ids) == len(set(ids)) >= 20
    assert all(hub_id == hub_id.casefold() for hub_id in ids)


@pytest.mark.parametrize("name", ["wan2.1-1.3b", "cogvideox-2b", "ltx-video"])
def test_networks_of_videos_train(name: str) -> None:
    network = diffusion_models()[name]
    trace = find_model(f"diffusers:{network.class_name}(num_layers=1)", (network.latent[0], 2, 8, 8)).trace(Recipe(1))
    assert any(op.phase is Phase.BACKWARD for op in trace.ops)


@pytest.mark.parametrize(
    ("network", "latent"),
    [
        ("Flux2Transformer2DModel(num_layers=1,num_single_layers=1)", (128, 8, 8)),
        ("LongCatImageTransformer2DModel(num_layers=1,num_single_layers=1)", (16, 8, 8)),
        ("QwenImageTransformer2DModel(num_layers=1)", (16, 8, 8)),
        ("HunyuanVideoTransformer3DModel(num_layers=1,num_single_layers=1)", (16, 2, 8, 8)),
    ],
)
def test_networks_of_packed_latents_train_at_any_batch(network: str, latent: tuple[int, ...]) -> None:
    one, three = (find_model(f"diffusers:{network}", latent).trace(Recipe(batch)) for batch in (1, 3))
    assert three.flops["matrix"] == pytest.approx(3 * one.flops["matrix"], rel=0.01)


def test_a_picture_in_pixels_is_its_latent() -> None:
    pixels, latent = (find_model("diffusers:sd3-medium", shape).graph(1) for shape in ((3, 256, 256), (16, 32, 32)))
    assert pixels.ops == latent.ops
    frames = find_model("diffusers:wan2.1-1.3b", (3, 9, 64, 64)).graph(1)
    assert frames.ops == find_model("diffusers:wan2.1-1.3b", (16, 3, 8, 8)).graph(1).ops


def test_a_configuration_file_is_read(tmp_path: Path) -> None:
    config = {"_class_name": "PixArtTransformer2DModel", "num_layers": 2, "caption_channels": 64, "sample_size": 32}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    graph = find_model(f"diffusers:{tmp_path}", (4, 8, 8)).graph(1)
    typed = find_model(
        "diffusers:PixArtTransformer2DModel(num_layers=2, caption_channels=64, sample_size=32)", (4, 8, 8)
    )
    assert graph.parameter_count == typed.graph(1).parameter_count


def test_adapters_train_beside_a_diffusion_transformer() -> None:
    model = find_model("diffusers:pixart-sigma", (4, 8, 8))
    trace = model.trace(Recipe(1, lora=16, lora_targets=("to_q", "to_v")))
    trained = sum(p.tensor.elements for p in trace.parameters if p.trainable)
    # 28 blocks with two attentions, two products in each: (1152 + 1152) · 16 values
    assert trained == 28 * 2 * 2 * (1152 + 1152) * 16


@pytest.mark.parametrize(
    ("reference", "shape", "error"),
    [
        ("diffusers:flux-dev", None, UnknownName),
        ("diffusers:BertModel()", None, UnknownName),
        ("diffusers:no/such/config.json", None, BadInput),
        ("diffusers:flux1-dev", (128,), BadInput),
        ("diffusers:flux1-dev", (3, 100, 100), BadInput),
        ("diffusers:PixArtTransformer2DModel(num_heads=2)", None, UnknownName),
    ],
)
def test_what_cannot_be_built_is_one_line(
    reference: str, shape: tuple[int, ...] | None, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        find_model(reference, shape).graph(1)
    assert "\n" not in str(caught.value)
