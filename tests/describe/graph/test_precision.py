import pytest

from epochcast.describe.graph.precision import PRECISIONS, Precision, find_precision, mixed_precision
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import UnknownName


def where(holds: str) -> set[str]:
    return {name for name, precision in PRECISIONS.items() if getattr(precision, holds)}


def test_names_are_forgiving() -> None:
    found = [find_precision(name).name for name in ("AMP", "amp-bf16", "half", "float32")]
    assert found == ["amp_fp16", "amp_bf16", "fp16", "fp32"]


def test_an_unknown_precision_offers_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="no precision called 'fp17'; near: fp16"):
        find_precision("fp17")


@pytest.mark.parametrize(
    ("holds", "names"),
    [
        ("is_single", {"fp32", "fp32_strict", "tf32"}),
        ("is_wide", {"fp32", "fp32_strict", "tf32", "fp64"}),
        ("is_autocast", {"amp_fp16", "amp_bf16", "amp_fp16_half", "amp_bf16_half"}),
        ("is_stored", {"fp16", "bf16", "fp64"}),
        ("scales_loss", {"amp_fp16", "amp_fp16_half"}),
        ("on_tensor_cores", {"tf32"}),
        ("convolutions_on_tensor_cores", {"fp32"}),
    ],
)
def test_the_rules_of_every_precision(holds: str, names: set[str]) -> None:
    assert where(holds) == names


def test_products_run_in_the_math_of_their_format() -> None:
    maths = {name: precision.math for name, precision in PRECISIONS.items()}
    assert maths["tf32"] == "tf32" and maths["amp_bf16"] == maths["bf16"] == "bf16" and maths["nvfp4"] == "fp4"
    assert maths["fp32"] == maths["fp32_strict"] == "fp32"
    convolutions = [PRECISIONS[name].convolution_math for name in ("fp32", "fp32_strict", "tf32", "amp_fp16")]
    assert convolutions == ["tf32", "fp32", "tf32", "fp16"]


def test_a_device_without_bfloat16_mixes_in_float16() -> None:
    assert mixed_precision({"fp32", "bf16"}).name == "amp_bf16"
    assert mixed_precision({"fp32", "fp16"}).name == "amp_fp16"


def test_a_recipe_has_the_canonical_name_and_its_rules() -> None:
    recipe = Recipe(1, precision="AMP")
    assert (recipe.precision, recipe.precision_rules) == ("amp_fp16", PRECISIONS["amp_fp16"])
    assert isinstance(recipe.precision_rules, Precision)


def test_names_of_torch_are_taken_as_they_are_written() -> None:
    assert find_precision("torch.float16") == find_precision("float16")
    assert find_precision("torch.bfloat16").name == "bf16"
