"""The size of the images a script trains on, from its transforms and data sets, read and not run.

transforms.RandomResizedCrop(224)        3x224x224
transforms.Resize((64, 48))              3x64x48
datasets.MNIST(root)                     1x28x28
"""

import ast
from collections.abc import Iterator

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.script.script_models import ScriptNames

# Of torchvision's transforms (and Albumentations'), those that give the size itself, the surest first.
_CROPS = ("RandomResizedCrop", "RandomCrop", "CenterCrop", "Resize")
_DATASETS = {
    "MNIST": (1, 28, 28),
    "FashionMNIST": (1, 28, 28),
    "CIFAR10": (3, 32, 32),
    "CIFAR100": (3, 32, 32),
    "SVHN": (3, 32, 32),
    "STL10": (3, 96, 96),
}
_PUBLISHED = {"torchvision:inception_v3": (3, 299, 299)}
_USUAL = (3, 224, 224)


def image_shape(tree: ast.Module, names: ScriptNames) -> tuple[int, ...] | None:
    """Channels, height and width; None where the script does not say."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    by_name = {_last(call): call for call in reversed(calls)}
    dataset_size = next((_DATASETS[name] for name in by_name if name in _DATASETS), None)
    sides = next(_sides(by_name, names), None)
    if sides is None:
        return dataset_size
    channels = 1 if "Grayscale" in by_name else dataset_size[0] if dataset_size else 3
    return (channels, *sides)


def published_shape(reference: str | None) -> tuple[int, ...] | None:
    """Of a network of torchvision its own size; those of timm carry theirs with them."""
    is_theirs = reference is not None and ModelReference.of(reference).prefix == "torchvision"
    return _PUBLISHED.get(reference or "", _USUAL) if is_theirs else None


def _sides(by_name: dict[str, ast.Call], names: ScriptNames) -> Iterator[tuple[int, int]]:
    for crop in _CROPS:
        call = by_name.get(crop)
        size = next(iter(call.args), None) if call is not None else None
        if call is not None and size is None:
            size = next((keyword.value for keyword in call.keywords if keyword.arg == "size"), None)
        if isinstance(size, ast.Tuple | ast.List) and len(size.elts) == 2:
            height, width = (names.value(side) for side in size.elts)
        elif crop != "Resize":  # of one number, Resize keeps the proportions of the image
            height = width = names.value(size)
        else:
            continue
        if isinstance(height, int) and isinstance(width, int) and min(height, width) > 0:
            yield height, width


def _last(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
