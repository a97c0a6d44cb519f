import pytest

from epochcast.describe.capture.inspection import matrix_flops
from epochcast.describe.capture.zoo import zoo_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput


# The first convolution of 4 channels over 64×64 and the text's keys of the deepest level, by hand.
def test_layers_by_hand() -> None:
    graph = zoo_model("sd15_unet").graph(2)
    parameters = {p.name: p.tensor.shape for p in graph.parameters}
    assert parameters["conv_in.weight"] == (320, 4, 3, 3)
    assert parameters["down_blocks.2.attentions.0.transformer_blocks.0.attn2.to_k.weight"] == (1280, 768)
    assert parameters["up_blocks.3.resnets.0.conv1.weight"] == (320, 960, 3, 3)
    assert graph.outputs[0].shape == (2, 4, 64, 64)


# A quarter of the positions, a quarter of the products but for attention's, which fall to a sixteenth.
def test_a_smaller_picture_is_less_work() -> None:
    whole, quarter = (matrix_flops(zoo_model("sd15_unet", (4, side, side)).graph(1)) for side in (64, 32))
    assert 4 < whole / quarter < 6


def test_a_step_learns_every_parameter() -> None:
    trace = zoo_model("sdxl_unet").trace(Recipe(1, optimizer="adamw"))
    assert trace.parameter_counts[0] == trace.parameter_counts[1] == 2_567_463_684
    assert not trace.opaque


@pytest.mark.parametrize("shape", [(4, 60, 64), (4, 64)])
def test_latents_that_cannot_be_halved_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match=r"sd15_unet takes"):
        zoo_model("sd15_unet", shape).graph(1)


def test_a_diffusion_network_is_launched_by_a_trainer_with_more_python() -> None:
    assert zoo_model("sdxl_unet").host_class == "diffusion_trainer"
    assert zoo_model("resnet50").host_class is None
