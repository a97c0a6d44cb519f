"""nnU-Net's networks from plans (`zoo.nnunet`), and epochs of a fixed number of steps."""

import json
from pathlib import Path
from typing import Any

import pytest

from epochcast import api
from epochcast.describe.capture.resolve import find_model
from epochcast.describe.graph.recipe import Recipe
from epochcast.errors import BadInput, UnknownName

_3D = {
    "n_stages": 6,
    "features_per_stage": [32, 64, 128, 256, 320, 320],
    "kernel_sizes": [[3, 3, 3]] * 6,
    "strides": [[1, 1, 1]] + [[2, 2, 2]] * 5,
    "n_conv_per_stage": [2] * 6,
    "n_conv_per_stage_decoder": [2] * 5,
}


def plans(folder: Path, **configurations: Any) -> str:
    file = folder / "nnUNetPlans.json"
    whole = {"dataset_name": "Dataset004", "plans_name": "nnUNetPlans", "configurations": configurations}
    file.write_text(json.dumps(whole))
    return str(file)


def plan(kind: str = "PlainConvUNet", **sizes: Any) -> dict[str, Any]:
    name = f"dynamic_network_architectures.architectures.unet.{kind}"
    return {"patch_size": [64, 64, 64], "architecture": {"network_class_name": name, "arch_kwargs": {**_3D, **sizes}}}


# Parameters that dynamic_network_architectures 0.4 itself builds for one channel and two classes.
def test_a_plan_has_the_parameters_of_the_real_network(tmp_path: Path) -> None:
    graph = find_model(f"nnunet:{plans(tmp_path, **{'3d_fullres': plan()})}").graph(2)
    assert graph.parameter_count == 31_195_594
    assert [t.shape[2:] for t in graph.outputs] == [(64 >> n,) * 3 for n in range(5)]


def test_residual_encoders_have_the_parameters_of_the_real_network(tmp_path: Path) -> None:
    sizes = {"n_blocks_per_stage": [1, 3, 4, 6, 6, 6], "n_conv_per_stage": None, "n_conv_per_stage_decoder": [1] * 5}
    graph = find_model(f"nnunet:{plans(tmp_path, **{'3d_fullres': plan('ResidualEncoderUNet', **sizes)})}").graph(2)
    assert graph.parameter_count == 102_349_770


def test_plans_of_before_are_read_and_classes_come_from_the_data_set(tmp_path: Path) -> None:
    old = {
        "UNet_class_name": "PlainConvUNet", "UNet_base_num_features": 32, "unet_max_num_features": 320,
        "n_conv_per_stage_encoder": [2] * 6, "n_conv_per_stage_decoder": [2] * 5, "patch_size": [64, 64, 64],
        "conv_kernel_sizes": [[3, 3, 3]] * 6, "pool_op_kernel_sizes": [[1, 1, 1]] + [[2, 2, 2]] * 5,
    }  # fmt: skip
    reference = f"nnunet:{plans(tmp_path, **{'3d_fullres': old})}"
    assert find_model(reference).graph(2).parameter_count == 31_195_594
    (tmp_path / "dataset.json").write_text(json.dumps({"labels": {"background": 0, "a": 1, "b": 2, "ignore": 3}}))
    assert find_model(reference).graph(2).outputs[0].shape[1] == 3


def test_a_configuration_may_be_named_and_inherit(tmp_path: Path) -> None:
    reference = f"nnunet:{plans(tmp_path, **{'3d_fullres': plan(), 'c': {'inherits_from': '3d_fullres'}})}"
    assert find_model(f"{reference}@c").trace(Recipe(2)).flops == find_model(reference).trace(Recipe(2)).flops
    with pytest.raises(UnknownName, match=r"no configuration in nnUNetPlans\.json called '4d'"):
        find_model(f"{reference}@4d")


def test_bad_plans_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no file 'nowhere\.json'; plans are in nnUNet_preprocessed"):
        find_model("nnunet:nowhere.json")
    with pytest.raises(BadInput, match=r"\[1, 2\] should have 6 entries"):
        find_model(f"nnunet:{plans(tmp_path, **{'3d_fullres': plan(n_conv_per_stage=[1, 2])})}")
    with pytest.raises(BadInput, match="sides that are multiples of 32x32x32, such as 1x64x64x64"):
        find_model(f"nnunet:{plans(tmp_path, **{'3d_fullres': plan()})}", (1, 50, 64, 64))


def test_an_epoch_may_have_a_fixed_number_of_steps() -> None:
    answer = api.forecast("resnet18", device="V100", batch=8, steps_per_epoch=250, epochs=2, gpus=2)
    assert answer.steps_per_epoch == 250
    assert answer.samples == 250 * 8 * 2
    with pytest.raises(BadInput, match="leave `samples` and `tokens` out"):
        api.forecast("resnet18", device="V100", batch=8, steps_per_epoch=250, samples=1000)
