"""PyTorch models, captured on `meta`: nothing downloaded, nothing run on data.

torch is imported when a model is captured, not with this package: cached captures do not need it.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from epochcast.describe.capture.capture_cache import CachedModel, about
from epochcast.describe.capture.model import Model
from epochcast.describe.capture.model_reference import ModelReference
from epochcast.errors import MissingExtra

if TYPE_CHECKING:
    from epochcast.describe.capture.torch.torch_model import TorchModel

__all__ = ["TorchModel", "load_torch"]


def load_torch(reference: str, input_shape: tuple[int, ...] | None = None, **options: Any) -> Model:
    """The model of `timm:NAME`, `torchvision:NAME`, `file.py:factory` or `package.module:factory`.

    `input_shape` is one sample's, without the batch. Options are those of `TorchModel`. A factory runs in a process of
    its own; with options it runs in this one.
    """

    def load() -> Model:
        if options or ModelReference.of(reference).prefix:
            return make_model(reference, input_shape, **options)
        from epochcast.describe.capture.subprocess_capture import IsolatedModel

        return IsolatedModel(reference, input_shape)

    return CachedModel(reference, about(reference, input_shape, options), load)


def make_model(reference: str, input_shape: tuple[int, ...] | None = None, **options: Any) -> Model:
    """The same, made in this process and not cached."""
    if find_spec("torch") is None and not ModelReference.of(reference).prefix:
        return _keras_or_missing(reference)
    need_torch()
    from epochcast.describe.capture.torch.torch_load import load_torch as capture

    return capture(reference, input_shape, **options)


def _keras_or_missing(reference: str) -> Model:
    """The Keras model of a factory; without torch no other model can be captured."""
    from epochcast.describe.capture.torch.factory import is_keras, missing_framework, named_object

    factory = named_object(reference)
    try:
        model = factory() if callable(factory) and not is_keras(factory) else factory
    except ModuleNotFoundError as problem:
        raise missing_framework(problem) or problem from None
    if not is_keras(model):
        raise MissingExtra("torch")
    from epochcast.describe.capture.keras import from_keras

    return from_keras(model)


def need_torch() -> None:
    """Raises `MissingExtra` where torch is not installed."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None


def __getattr__(name: str) -> Any:
    if name == "TorchModel":
        need_torch()
        from epochcast.describe.capture.torch.torch_model import TorchModel as Class

        return Class
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
