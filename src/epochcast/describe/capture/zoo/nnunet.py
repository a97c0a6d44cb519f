"""nnU-Net's networks from its plans (nnUNetPlans.json, Isensee et al. 2021): `nnunet:plans.json`, or with `@2d`.

A plan says for each configuration (2d, 3d_fullres, 3d_lowres) the patch and the sizes of a U-Net: features, kernels
and strides of every stage, convolutions of each in encoder and decoder (`dynamic_network_architectures`:
PlainConvUNet, and ResidualEncoderUNet with residual blocks). Convolutions are followed by an instance norm and a leaky
ReLU. Every stage of the decoder gives a segmentation, and has a loss of its own (deep supervision).

Plans of before 2.4 name the sizes by other keys. How many classes there are says `dataset.json`, which lies beside the
plans in nnUNet_preprocessed; without it two are taken.

Limit: of the loss only the cross entropy is modelled, not the Dice term, which reads the same scores once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json, read_text
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput, UnknownName

Sizes = tuple[int, ...]
_PREFERRED = ("3d_fullres", "2d", "3d_lowres")


@dataclass(frozen=True, slots=True)
class NnUNetPlan:
    """A network of a plan: kernels and strides of each stage, convolutions (or blocks) of encoder and decoder."""

    patch: Sizes
    features: Sizes
    kernels: tuple[Sizes, ...]
    strides: tuple[Sizes, ...]
    encoder: Sizes
    decoder: Sizes
    channels: int
    classes: int
    is_residual: bool = False


def nnunet_model(reference: str, input_shape: Sizes | None = None) -> BuiltModel:
    """The network of `plans.json` or `plans.json@2d`; `input_shape` replaces the patch: (channels, sides …)."""
    plan = read_plan(reference)
    shape = input_shape or (plan.channels, *plan.patch)
    strides = tuple(prod(stage[axis] for stage in plan.strides) for axis in range(len(plan.patch)))
    if len(shape) != len(plan.patch) + 1 or any(side % stride for side, stride in zip(shape[1:], strides, strict=True)):
        sides = "x".join(map(str, strides))
        example = "x".join(map(str, (plan.channels, *plan.patch)))
        raise BadInput(f"the patch of {reference} has sides that are multiples of {sides}, such as {example}")
    name = f"nnunet:{reference}"
    return BuiltModel(name, partial(nnunet, plan=plan, input_shape=shape, name=name), file=reference.partition("@")[0])


def read_plan(reference: str) -> NnUNetPlan:
    """The configuration of a plan that a reference names, else the first of 3d_fullres, 2d and 3d_lowres."""
    file, _, wanted = reference.partition("@")
    path = Path(file)
    if not path.is_file():
        raise BadInput(f"there is no file {file!r}; plans are in nnUNet_preprocessed/DATASET/nnUNetPlans.json")
    document = parse_json(read_text(path), file)
    configurations = document.get("configurations") if isinstance(document, Mapping) else None
    if not isinstance(configurations, Mapping) or not configurations:
        raise BadInput(f"{file} has no `configurations`, so it is no plan of nnU-Net 2")
    whole = {name: _inherited(configurations, name) for name in configurations}
    usable = [name for name, values in whole.items() if "patch_size" in values]
    if wanted and wanted not in usable:
        raise UnknownName(f"configuration in {path.name}", wanted, usable)
    chosen = wanted or next((name for name in (*_PREFERRED, *usable) if name in usable), "")
    channels = len(document.get("foreground_intensity_properties_per_channel") or ()) or 1
    try:
        return _plan(whole[chosen], channels, _classes(path))
    except (KeyError, TypeError, ValueError) as problem:
        raise BadInput(f"{file}: configuration {chosen!r} cannot be read: {problem}") from None


def _inherited(configurations: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A configuration with what it inherits."""
    values: dict[str, Any] = {}
    seen: set[str] = set()
    while isinstance(configurations.get(name), Mapping) and name not in seen:
        seen.add(name)
        values = {**configurations[name], **values}
        name = str(configurations[name].get("inherits_from", ""))
    return values


def _classes(plans: Path) -> int:
    """Classes by `dataset.json` beside the plans."""
    file = plans.parent / "dataset.json"
    document = parse_json(read_text(file), file.name) if file.is_file() else None
    labels = document.get("labels") if isinstance(document, Mapping) else None
    names = [name for name in labels if name != "ignore"] if isinstance(labels, Mapping) else []
    return max(2, len(names))


def _plan(values: Mapping[str, Any], channels: int, classes: int) -> NnUNetPlan:
    patch = tuple(int(side) for side in values["patch_size"])
    architecture = values.get("architecture")
    if isinstance(architecture, Mapping):
        sizes, kind = architecture["arch_kwargs"], str(architecture["network_class_name"])
        features = tuple(sizes["features_per_stage"])
        encoder = sizes.get("n_conv_per_stage") or sizes["n_blocks_per_stage"]
        decoder, kernels, strides = sizes["n_conv_per_stage_decoder"], sizes["kernel_sizes"], sizes["strides"]
    else:  # plans of before 2.4
        kind, kernels, strides = (
            str(values["UNet_class_name"]),
            values["conv_kernel_sizes"],
            values["pool_op_kernel_sizes"],
        )
        base, most = int(values["UNet_base_num_features"]), int(values["unet_max_num_features"])
        features = tuple(min(base * 2**stage, most) for stage in range(len(strides)))
        encoder, decoder = values["n_conv_per_stage_encoder"], values["n_conv_per_stage_decoder"]
    stages = len(features)
    return NnUNetPlan(
        patch,
        features,
        tuple(_each(kernel, len(patch)) for kernel in kernels),
        tuple(_each(stride, len(patch)) for stride in strides),
        _each(encoder, stages),
        _each(decoder, stages - 1),
        channels,
        classes,
        "Residual" in kind,
    )


def _each(value: int | Sequence[int], count: int) -> Sizes:
    sizes = (value,) * count if isinstance(value, int) else tuple(int(each) for each in value)
    if len(sizes) != count:
        raise ValueError(f"{list(sizes)} should have {count} entries")
    return sizes


def nnunet(batch: int, *, plan: NnUNetPlan, input_shape: Sizes, name: str) -> Graph:
    """The U-Net of a plan, with its segmentations from fine to coarse."""
    b = Builder(name, batch)
    x = b.input("image", input_shape)
    skips = []
    for stage, channels in enumerate(plan.features):
        block = _residual if plan.is_residual else _conv
        with b.scope(f"encoder.stages.{stage}"):
            if plan.is_residual and stage == 0:
                with b.scope("stem"):
                    x = _conv(b, x, channels, plan.kernels[0], (1,) * len(plan.patch))
            for number in range(plan.encoder[stage]):
                stride = plan.strides[stage] if number == 0 else (1,) * len(plan.patch)
                with b.scope(f"blocks.{number}"):
                    x = block(b, x, channels, plan.kernels[stage], stride)
        skips.append(x)
    results = []
    for stage in range(1, len(plan.features)):
        skip, stride = skips[-(stage + 1)], plan.strides[-stage]
        x = b.conv_transposed(x, skip.shape[1], stride, stride=stride, name=f"decoder.transpconvs.{stage - 1}")
        x = b.concatenate([x, skip])
        for number in range(plan.decoder[stage - 1]):
            with b.scope(f"decoder.stages.{stage - 1}.{number}"):
                x = _conv(b, x, skip.shape[1], plan.kernels[-(stage + 1)], (1,) * len(plan.patch))
        results.append(b.conv(x, plan.classes, 1, name=f"decoder.seg_layers.{stage - 1}"))
    return b.finish(results[::-1])


def _conv(b: Builder, x: Tensor, channels: int, kernel: Sizes, stride: Sizes) -> Tensor:
    """Convolution, instance norm, leaky ReLU."""
    x = b.conv(x, channels, kernel, stride=stride, padding=tuple(side // 2 for side in kernel), name="conv")
    return b.elementwise("leaky_relu", b.norm(x, "instance", channels, name="norm"), name="nonlin")


def _residual(b: Builder, x: Tensor, channels: int, kernel: Sizes, stride: Sizes) -> Tensor:
    """BasicBlockD: two convolutions; beside them a pool and a product of one position, where sizes change."""
    skip = x
    with b.scope("conv1"):
        y = _conv(b, x, channels, kernel, stride)
    with b.scope("conv2"):
        y = b.conv(y, channels, kernel, padding=tuple(side // 2 for side in kernel), name="conv")
        y = b.norm(y, "instance", channels, name="norm")
    if any(step > 1 for step in stride):
        skip = b.average_pool(skip, stride, stride, name="skip.pool")
    if skip.shape[1] != channels:
        with b.scope("skip"):
            skip = b.norm(b.conv(skip, channels, 1, bias=False, name="conv"), "instance", channels, name="norm")
    return b.elementwise("leaky_relu", b.add(y, skip, name="sum"), name="nonlin2")
