"""Text encoders and autoencoder in front of a diffusion network."""

from typing import Any

import pytest

import epochcast as ec
from epochcast.describe.capture.frozen_encoders import with_encoders
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.capture.zoo.diffusion_encoders import TEXT_ENCODERS, picture_encoder, text_encoder
from epochcast.describe.graph.op import Phase
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName

# The Hub's model cards: openai/clip-vit-large-patch14, laion/CLIP-ViT-H and ViT-bigG (text), google/t5-v1_1-xxl
# (encoder), google/umt5-xxl (encoder).
PUBLISHED = {
    "clip-l": 123_060_480,
    "clip-h": 340_387_840,
    "clip-g": 694_659_840,
    "t5-xxl": 4_762_310_656,
    "umt5-xxl": 5_680_863_232,
}


@pytest.mark.parametrize("name", TEXT_ENCODERS)
def test_a_text_encoder_has_its_published_parameters(name: str) -> None:
    assert text_encoder(2, name, 77).parameter_count == PUBLISHED[name]


def test_the_autoencoder_has_its_published_parameters() -> None:
    # AutoencoderKL of Stable Diffusion: 83,653,863 with the 1x1 convolutions around its latent (72 and 20)
    assert picture_encoder(2, 4, 64, 64).parameter_count == 83_653_863 - 72 - 20


def test_encoders_run_forward_alone_in_half_beside_the_step() -> None:
    network = zoo_model("sd15_unet", (4, 32, 32))
    recipe = Recipe(4, optimizer="adamw", precision="amp_bf16", lora=8)
    plain, encoded = network.trace(recipe), with_encoders(network, "sd15_unet", (4, 32, 32), "all").trace(recipe)
    assert encoded.parameter_counts[1] == plain.parameter_counts[1]  # adapters of the U-Net alone are trained
    added = encoded.op_count - plain.op_count
    assert {op.phase for op in encoded.ops[:added]} == {Phase.FORWARD}
    more = encoded.parameter_counts[0] - plain.parameter_counts[0]
    assert more == PUBLISHED["clip-l"] + 83_653_863 - 72 - 20
    half = sum(p.tensor.bytes for p in encoded.parameters) - sum(p.tensor.bytes for p in plain.parameters)
    assert half == 2 * more
    assert encoded.flops["forward"] > plain.flops["forward"]
    assert encoded.flops["backward"] == plain.flops["backward"]


def test_pictures_and_prompts_cost_time_and_memory() -> None:
    options: dict[str, Any] = {"device": "A100", "batch": 2, "lora": 8}
    cached, text, both = (ec.forecast("sd15_unet", encoders=which, **options) for which in ("cached", "text", "all"))
    assert cached.step_seconds.mid < text.step_seconds.mid < both.step_seconds.mid
    assert cached.peak_bytes is not None
    assert text.peak_bytes is not None
    assert cached.peak_bytes.mid < text.peak_bytes.mid
    assert "VAE and text encoders in the step" in both.contents


def test_what_has_no_encoders_is_refused_in_one_line() -> None:
    with pytest.raises(BadInput, match=r"^--encoders is for diffusion models, not for resnet50$"):
        ec.forecast("resnet50", device="A100", batch=2, encoders="all")
    with pytest.raises(UnknownName, match="known: all, cached, text, vae"):
        ec.forecast("sd15_unet", device="A100", batch=2, encoders="both")
