import json
from pathlib import Path

import pytest

from epochcast.describe.capture.diffusers_models import diffusion_models
from epochcast.describe.capture.resolve import find_model
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
}


def test_published_networks_have_their_number_of_parameters() -> None:
    found = {name: find_model(f"diffusers:{name}").graph(1).parameter_count / 1e9 for name in PARAMETERS}
    assert found == pytest.approx(PARAMETERS, rel=0.01)


@pytest.mark.parametrize("name", ["wan2.1-1.3b", "cogvideox-2b", "ltx-video"])
def test_networks_of_videos_train(name: str) -> None:
    network = diffusion_models()[name]
    trace = find_model(f"diffusers:{network.class_name}(num_layers=1)", (network.latent[0], 2, 8, 8)).trace(Recipe(1))
    assert any(op.phase is Phase.BACKWARD for op in trace.ops)


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
