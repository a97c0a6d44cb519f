"""PyTorch models, captured on `meta`: nothing downloaded, nothing run on data.

torch is imported when a model is asked for, not when this package is.
"""

from typing import TYPE_CHECKING, Any

from epochcast.errors import MissingExtra

if TYPE_CHECKING:
    from epochcast.capture.torch.model import TorchModel


def load_torch(reference: str, input_shape: tuple[int, ...] | None = None, **options: Any) -> "TorchModel":
    """The model of `timm:NAME`, `torchvision:NAME`, `file.py:factory` or `package.module:factory`."""
    _need_torch()
    from epochcast.capture.torch.load import load_torch as load

    return load(reference, input_shape, **options)


def torch_model(module: Any, inputs: Any = None, *, name: str | None = None, **options: Any) -> "TorchModel":
    """The model of an `nn.Module` that exists already; `inputs` are example inputs (a tensor, a tuple or a mapping)."""
    _need_torch()
    from epochcast.capture.torch.model import TorchModel as Model

    return Model.from_module(module, inputs, name=name, **options)


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra("torch") from None
