"""From a reference to a model: `timm:NAME`, `torchvision:NAME`, `file.py:factory`, `package.module:factory`.

Nothing is downloaded: every network is built without weights. A factory returns a module, (module, example inputs), or
a `Workload`; a module may also carry `example_inputs` (or Lightning's `example_input_array`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.torch.example_arguments import Example, image, tensors_in
from epochcast.describe.capture.torch.example_inputs import unknown_size
from epochcast.describe.capture.torch.factory import is_hugging_face, is_keras, named_object
from epochcast.describe.capture.torch.meta_modules import constructed, on_meta
from epochcast.describe.capture.torch.small_values import Values
from epochcast.describe.capture.torch.torch_model import TorchModel
from epochcast.describe.capture.torch.torchvision_shim import import_timm, import_torchvision, prepare_torchvision
from epochcast.describe.capture.torch.user_workload import from_workload
from epochcast.describe.capture.torch.without_weights import without_weights
from epochcast.describe.capture.workload import Workload
from epochcast.errors import BadInput, UnknownModel

Shape = tuple[int, ...]


def load_torch(reference: str, input_shape: Shape | None = None, **options: Any) -> Model:
    """The model a reference names; `input_shape` is one sample's, without the batch. Options go to `TorchModel`.

    The result of a factory may also be a Keras model.
    """
    parts = ModelReference.of(reference)
    loader = LOADERS.get(parts.prefix)
    if loader is not None:
        return loader(parts.name, input_shape, options)
    return _from_factory(reference, input_shape, options)


# ---- timm ---------------------------------------------------------------------------------------


# timm's own table of deprecated names (models/resnet.py) takes all of these for resnext101_32x8d.
_TIMM_WIDTHS = {f"ig_resnext101_32x{width}d": {"base_width": width} for width in (16, 32, 48)}


def _timm(name: str, input_shape: Shape | None, options: Mapping[str, Any]) -> TorchModel:
    timm = import_timm()
    # A deprecated name means its successor. The tag after the dot only names weights.
    arguments: dict[str, Any] = dict(_TIMM_WIDTHS.get(name, {}))
    name, _, tag = (timm.models.get_deprecated_models().get(name) or name).partition(".")
    if name not in timm.list_models():
        raise UnknownModel(name, timm.list_models(), "timm model")
    if tag and f"{name}.{tag}" in timm.list_pretrained(f"{name}.*"):
        name = f"{name}.{tag}"  # weights of one architecture may be for different input sizes
    if input_shape is not None:
        check_channels_first(input_shape, _timm_channels(timm, name))
        arguments |= _timm_size(timm, name, input_shape)
    module = on_meta(constructed(lambda: timm.create_model(name, pretrained=False, **arguments), f"timm:{name}"))
    config: Mapping[str, Any] = getattr(module, "pretrained_cfg", None) or getattr(module, "default_cfg", {})
    shape = input_shape or tuple(config.get("input_size", ())) or None
    if shape is None:
        raise unknown_size(f"timm:{name}")
    return TorchModel(f"timm:{name}", module, image(shape), **options)


def _timm_channels(timm: Any, name: str) -> int:
    """Channels of a network's own input."""
    config = timm.models.get_pretrained_cfg(name)
    return int(config.input_size[0]) if config is not None and config.input_size else 3


def _timm_size(timm: Any, name: str, shape: Shape) -> dict[str, Any]:
    """Networks with a fixed input size take another by `img_size`; others have no such argument."""
    from inspect import signature

    parameters = signature(timm.models.model_entrypoint(name.partition(".")[0])).parameters
    config = timm.models.get_pretrained_cfg(name)
    is_fixed = config is not None and getattr(config, "fixed_input_size", False)
    if len(shape) == 3 and (is_fixed or "img_size" in parameters):
        return {"img_size": shape[1:], **({"in_chans": shape[0]} if shape[0] != 3 else {})}
    return {"in_chans": shape[0]} if len(shape) == 3 and shape[0] != 3 else {}


# ---- torchvision --------------------------------------------------------------------------------


def _torchvision(name: str, input_shape: Shape | None, options: Mapping[str, Any]) -> TorchModel:
    """Detection networks choose boxes by value, so only their backbone is captured, and the answer says so."""
    models = import_torchvision().models
    if name not in models.list_models():
        raise UnknownModel(name, models.list_models(), "torchvision model")
    label = f"torchvision:{name}"
    is_detector = name in models.list_models(module=models.detection)
    arguments: dict[str, Any] = {"weights": None}
    if is_detector or name in models.list_models(module=models.segmentation):
        arguments["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        arguments["init_weights"] = False
    module = constructed(lambda: models.get_model(name, **arguments), label)
    if input_shape is not None:
        check_channels_first(input_shape, 3)
    shape = input_shape or _torchvision_shape(models, name, module)
    notes: tuple[str, ...] = ()
    if is_detector:
        module, notes = module.backbone, ("only the backbone: proposals, boxes and their losses depend on the data",)
        options = {"loss": _means, **options}
    example = image(shape)
    if name in models.list_models(module=models.optical_flow):
        example = Example((example.args[0], example.args[0].clone()))
        options = {"loss": _means, **options}
    return TorchModel(label, on_meta(module), example, notes=notes, **options)


def _means(result: Any) -> torch.Tensor:
    parts = [t.mean() for _, t in tensors_in(result) if t.requires_grad]
    return torch.stack(parts).sum()


def _torchvision_shape(models: Any, name: str, module: torch.nn.Module) -> Shape:
    """The input size of the published weights; the constructor's default if it has one."""
    if name in models.list_models(module=models.optical_flow):
        return (3, 360, 480)
    image_size = getattr(module, "image_size", None)
    if isinstance(image_size, int):
        return (3, image_size, image_size)
    weights = list(models.get_model_weights(name))
    transform = weights[0].transforms if weights else None
    keywords: Mapping[str, Any] = getattr(transform, "keywords", None) or {}
    size = keywords.get("crop_size", keywords.get("resize_size", 800))
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    frames = (16,) if name in models.list_models(module=models.video) else ()
    return (3, *frames, height, width)


# ---- the user's own -----------------------------------------------------------------------------


def _with_torchvision(make: Callable[[], Any]) -> Any:
    """What `make` returns; code that imports torchvision gets it as `torchvision:NAME` does."""
    prepare_torchvision()
    try:
        return make()
    except BadInput as error:
        problem: BaseException | None = error
        while problem is not None and "torchvision::" not in str(problem):
            problem = problem.__cause__ or problem.__context__
        if problem is None:
            raise
    import_torchvision()
    return make()


def _from_factory(reference: str, input_shape: Shape | None, options: Mapping[str, Any]) -> Model:
    with without_weights(reference):
        result, values = _factory_result(reference)
    return _of_result(result, values, reference, input_shape, options)


def _factory_result(reference: str) -> tuple[Any, Values]:
    """What a factory makes, and the values of small tensors that it made on the way."""
    factory = _with_torchvision(lambda: named_object(reference))
    is_model = isinstance(factory, torch.nn.Module) or is_keras(factory) or is_hugging_face(factory)

    def make() -> Any:
        return factory() if callable(factory) and not is_model else factory

    values = Values()
    return _with_torchvision(lambda: constructed(make, reference, values)), values


def _of_result(
    result: Any, values: Values, reference: str, input_shape: Shape | None, options: Mapping[str, Any]
) -> Model:
    if is_keras(result):
        from epochcast.describe.capture.keras import from_keras

        return from_keras(result)
    if isinstance(result, Workload):
        workload = result
    elif isinstance(result, tuple) and len(result) == 2 and not isinstance(result[1], torch.nn.Module):
        workload = Workload(*result)
    else:
        workload = Workload(result)
    if is_hugging_face(workload.model):
        from epochcast.describe.capture.hf import from_hugging_face

        workload = replace(workload, name=reference)
        return from_hugging_face(workload, input_shape, values=values, in_place=True, **options)
    return from_workload(workload, reference, input_shape, values, in_place=True, **options)


def _yolo(name: str, input_shape: Shape | None, options: Mapping[str, Any]) -> Model:
    from epochcast.describe.capture.torch.yolo_load import load_yolo

    return load_yolo(name, input_shape, options)


LOADERS: Mapping[str, Callable[[str, Shape | None, Mapping[str, Any]], Model]] = {
    "timm": _timm,
    "torchvision": _torchvision,
    "ultralytics": _yolo,
}
"""Loaders by prefix."""
