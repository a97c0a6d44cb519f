"""From a reference, as users write it, to a model.

    resnet50, ResNet-50            the zoo, however it is spelt
    meta-llama/Llama-3.1-8B        a Hub id that is known (`hub`); nothing is downloaded
    timm:NAME, torchvision:NAME    built there without weights
    mmdetection:NAME, detectron2:NAME, maskrcnn_benchmark:NAME    a detector by its configuration's name, built here
    hf:CONFIG.json, hf:BertConfig(num_hidden_layers=4), hf:meta-llama/Llama-3.1-8B
    decoder:layers=32,hidden=4096,heads=32,vocab=32000    a language model by its sizes (`zoo.sized`)
    arcface:iresnet50,classes=93431    a network for faces and its head (`zoo.arcface`)
    diffusers:flux1-dev, diffusers:FluxTransformer2DModel(num_layers=4), diffusers:CONFIG.json
    ultralytics:yolo11n, yolo11n.pt    YOLO by the user's own ultralytics (`torch.yolo_load`)
    nnunet:nnUNetPlans.json@2d    the network of a plan of nnU-Net (`zoo.nnunet`)
    kernelbench:NAME    a network of that benchmark (`zoo.kernelbench`)
    pkg.module:factory, file.py:factory    the user's own code (only the command line and Python take these)
    file.onnx, file.keras, Keras file.json (it has `class_name`), our spec file.toml or .json

For a file.py without a name, or with a name that it does not have, the error lists the models in the file. A front end
is imported only when it is needed.
"""

import re
from pathlib import Path
from typing import Any

from epochcast.base.documents import parse_json, read_text
from epochcast.describe.capture.diffusers_models import diffusers_name, load_diffusers
from epochcast.describe.capture.hub import is_hub_id, is_known, typed_model
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import (
    CONFIG,
    DETECTORS,
    DIFFUSERS,
    FACES,
    FILE_ENDINGS,
    KERNELBENCH,
    NNUNET,
    SIZES,
    YOLO,
    ModelReference,
    is_yolo_name,
)
from epochcast.describe.capture.sample_contents import PLAIN, SampleContents
from epochcast.describe.capture.torch.factory import is_hugging_face, packages_of
from epochcast.describe.capture.workload import Workload
from epochcast.errors import BadInput, CodeNotAllowed

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
"""What an id of the Hub looks like."""


def find_model(
    reference: object,
    input_shape: tuple[int, ...] | None = None,
    *,
    aux: bool = True,
    allow_code: bool = True,
    contents: SampleContents = PLAIN,
) -> Model:
    """The model of a reference or a live object; `allow_code` false refuses references that run the user's Python.

    `contents` is what a sample holds besides text; models that take none of it refuse it.
    """
    if not isinstance(reference, str | Path):
        contents.check_taken((), type(reference).__name__)
        return _from_object(reference, input_shape)
    return _from_text(str(reference), input_shape, contents, aux=aux, allow_code=allow_code)


def _from_text(
    text: str, input_shape: tuple[int, ...] | None, contents: SampleContents, *, aux: bool, allow_code: bool
) -> Model:
    """By its prefix, then by what it looks like: a Hub id, a file, code, a name."""
    parts = _named_by_a_library(ModelReference.of(text), text)
    if parts.prefix == CONFIG:
        return _from_configuration(parts.name, input_shape, contents)
    if not parts.prefix and not parts.is_code and is_hub_id(text):
        return typed_model(text, input_shape, aux=aux, contents=contents)
    contents.check_taken((), text)
    if parts.prefix:
        return _from_library(parts, input_shape)
    if text.lower().endswith((*FILE_ENDINGS, ".ipynb")):
        return _from_file(Path(text), input_shape)
    if parts.is_code:
        if not allow_code:
            raise CodeNotAllowed(text)
        return _from_code(parts, input_shape)
    from epochcast.describe.capture.zoo import ZOO

    if text not in ZOO and _is_folder(text):
        return _from_checkpoint(Path(text), input_shape)
    if text not in ZOO and _is_file(text):
        raise BadInput(
            f"{text!r} is not a model file that can be read; known: .onnx, .keras, .json, .toml, file.py:factory"
        )
    return typed_model(text, input_shape, aux=aux)


def _named_by_a_library(parts: ModelReference, text: str) -> ModelReference:
    """The reference, with the prefix of ultralytics or diffusers where a name is theirs."""
    if parts.prefix or parts.is_code:
        return parts
    if is_yolo_name(text) and not is_known(text):
        return ModelReference(YOLO, text)
    network = diffusers_name(text)
    return ModelReference(DIFFUSERS, network) if network and not _is_folder(text) else parts


def _from_checkpoint(folder: Path, input_shape: tuple[int, ...] | None) -> Model:
    """The network of a checkpoint's folder, by the configuration that lies in it."""
    if (folder / "config.json").is_file():
        from epochcast.describe.capture.hf import load_hf

        return load_hf(str(folder), input_shape)
    what = "has an adapter alone" if (folder / "adapter_config.json").is_file() else "is a folder without config.json"
    raise BadInput(
        f"{str(folder)!r} {what}: give the model itself, such as its Hub id, hf:config.json or file.py:factory"
    )


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return False


def _is_file(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):  # too long, or with a zero byte: no file is called that
        return False


def _from_configuration(name: str, input_shape: tuple[int, ...] | None, contents: SampleContents) -> Model:
    """What follows `hf:`: a Hub id that is known, else a configuration."""
    if is_hub_id(name) or (HUB_ID.fullmatch(name) is not None and not _is_file(name)):
        return typed_model(name, input_shape, contents=contents)
    from epochcast.describe.capture.hf import load_hf

    return load_hf(name, input_shape, contents)


def _from_library(reference: ModelReference, input_shape: tuple[int, ...] | None) -> Model:
    prefix, name = reference.prefix, reference.name
    if prefix == DIFFUSERS:
        return load_diffusers(name, input_shape)
    if prefix == KERNELBENCH:
        from epochcast.describe.capture.zoo.kernelbench import kernelbench_model

        return kernelbench_model(name, input_shape)
    if prefix == SIZES:
        from epochcast.describe.capture.zoo.sized import sized_decoder

        return sized_decoder(name, input_shape)
    if prefix == FACES:
        from epochcast.describe.capture.zoo.arcface import named_face_network

        return named_face_network(name, input_shape)
    if prefix == NNUNET:
        from epochcast.describe.capture.zoo.nnunet import nnunet_model

        return nnunet_model(name, input_shape)
    if prefix in DETECTORS:
        from epochcast.describe.capture.zoo.detector_configs import configured_detector

        return configured_detector(prefix, name, input_shape)
    from epochcast.describe.capture.torch import load_torch

    return load_torch(str(reference), input_shape)


def _from_code(reference: ModelReference, input_shape: tuple[int, ...] | None) -> Model:
    """What the user's code makes. A script without a function name is not run; the error says what it holds."""
    text = str(reference)
    if text.endswith(".py"):
        from epochcast.describe.capture.script import script_without_factory

        raise script_without_factory(text)
    if reference.script:
        from epochcast.describe.capture.script import name_not_in_script

        error = name_not_in_script(text)
        if error is not None:
            raise error
        from epochcast.describe.capture.script.hub_downloads import check_downloads

        check_downloads(Path(reference.script), reference.factory, text)
    from epochcast.describe.capture.torch import load_torch

    return load_torch(text, input_shape)


def _from_file(path: Path, input_shape: tuple[int, ...] | None) -> Model:
    if path.suffix.lower() == ".ipynb":
        raise BadInput(
            f"{path.name} is a notebook; export it as a script first (jupyter nbconvert --to script) "
            "and give the function in it that makes the model: file.py:factory"
        )
    if not path.is_file():
        raise BadInput(f"no file {str(path)!r}")
    match path.suffix.lower():
        case ".onnx":
            from epochcast.describe.capture.onnx import load_onnx

            return load_onnx(path, input_shape)
        case ".keras":
            from epochcast.describe.capture.keras import load_keras

            return load_keras(path, input_shape)
        case ".json" if _is_keras(path):
            from epochcast.describe.capture.keras import load_keras

            return load_keras(path, input_shape)
        case ".json" | ".toml":
            from epochcast.describe.capture.spec import load_spec

            return load_spec(path, input_shape)
        case _:
            raise BadInput(
                f"{path.name} may hold pickled code, which is never loaded; "
                "give the code that makes the model instead: file.py:factory"
            )


def _is_keras(path: Path) -> bool:
    try:
        document = parse_json(read_text(path), path.name)
    except BadInput:
        return False  # the spec reader reports what is wrong with it
    return isinstance(document, dict) and "class_name" in document


_KERAS = frozenset({"keras", "tensorflow", "tf_keras"})


def check_live(value: object) -> None:
    """Raise if it is neither a `Model`, a `Workload` nor a model of a framework."""
    if isinstance(value, Workload):
        return  # what it holds turns out when it is looked at
    if not (_is_model(value) or packages_of(value) & {*_KERAS, "torch", "transformers"}):
        raise BadInput(f"a {type(value).__name__} is not a model: give a name, a file, an nn.Module or a Keras model")


def _is_model(value: object) -> bool:
    return callable(getattr(value, "trace", None)) and callable(getattr(value, "graph", None))


def _from_object(value: Any, input_shape: tuple[int, ...] | None) -> Model:
    """By its base classes. A Keras model on torch is a torch module, too; it is read as Keras."""
    check_live(value)
    if _is_model(value) and not isinstance(value, type):
        model: Model = value
        return model
    if packages_of(value) & _KERAS:
        from epochcast.describe.capture.keras import from_keras

        return from_keras(value)
    return _from_torch(value if isinstance(value, Workload) else Workload(value), input_shape)


def _from_torch(workload: Workload, input_shape: tuple[int, ...] | None) -> Model:
    from epochcast.describe.capture.torch import need_torch

    need_torch()
    from epochcast.describe.capture.torch.user_workload import from_workload

    if isinstance(workload.model, str):
        from epochcast.describe.capture.hf import hf_model

        return hf_model(workload.model, input_shape, inputs=workload.inputs)
    if is_hugging_face(workload.model):
        from epochcast.describe.capture.hf import from_hugging_face

        return from_hugging_face(workload, input_shape)
    return from_workload(workload, None, input_shape)
