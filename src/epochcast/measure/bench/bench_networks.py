"""Networks to train in measurements, each with the reference to forecast the same network by.

Zoo names mean torchvision's module of that name where there is one. The report's networks and the language models are
defined here, with the layers that `describe/capture/zoo` builds. Every other reference (`timm:…`, `torchvision:…`,
`hf:…`, `file.py:factory`) is built as its front end builds it, but with weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from epochcast.describe.capture.model_reference import ModelReference
from epochcast.describe.capture.torch.example_arguments import Example, image, mapped
from epochcast.describe.capture.torch.example_inputs import example_for
from epochcast.describe.capture.torch.factory import named_object
from epochcast.describe.capture.torch.torchvision_shim import import_timm, import_torchvision
from epochcast.describe.capture.workload import Workload
from epochcast.describe.capture.zoo import ZOO
from epochcast.errors import BadInput, UnknownModel, UnknownName

Shape = tuple[int, ...]


@dataclass(frozen=True)
class BenchNetwork:
    """A network to train; `reference` and `input_shape` are those to forecast it with.

    `ids_below` is the number of words where the inputs are words. An empty `loss` is chosen by the shape of the output.
    """

    reference: str
    make: Callable[[], tuple[nn.Module, Example]]
    input_shape: Shape | None = None
    ids_below: int = 2
    loss: str = ""


def find_network(name: str, input_shape: Shape | None = None) -> BenchNetwork:
    """The network behind a name of `NETWORKS`, a zoo name torchvision has too, or any reference to a torch module."""
    if name in NETWORKS:
        return NETWORKS[name](input_shape)
    reference = ModelReference.of(name)
    if reference.prefix or reference.module:
        return _referenced(reference, input_shape)
    models = import_torchvision().models
    # A detector in training needs annotations, which random inputs do not have.
    shared = set(ZOO) & set(models.list_models()) - set(models.list_models(module=models.detection))
    if name in shared:
        return _from_zoo(name, input_shape, partial(models.get_model, name, weights=None))
    names = sorted({*NETWORKS, *shared})
    raise UnknownName("network to train", name, names)


def module_and_inputs(network: BenchNetwork, batch: int, device: str) -> tuple[nn.Module, Example]:
    """The module with weights, ready to train, and random inputs for it, both on the device."""
    module, example = network.make()

    def random_values(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, dtype=tensor.dtype, device=device)
        return torch.randint(0, network.ids_below, tensor.shape, dtype=tensor.dtype, device=device)

    inputs = example.at(batch)
    return module.to(device).train(), Example(
        mapped(inputs.args, random_values), mapped(dict(inputs.kwargs), random_values)
    )


# ---- by reference -------------------------------------------------------------------------------


def _from_zoo(
    name: str, input_shape: Shape | None, make: Callable[[], nn.Module], *, ids_below: int = 2, loss: str = ""
) -> BenchNetwork:
    """A module that is the zoo's network, with the inputs of the zoo's graph."""
    zoo_input = ZOO[name].build(name, 2, input_shape).inputs[0]
    dtype = torch.float32 if zoo_input.dtype.is_float else torch.int64
    return BenchNetwork(name, lambda: (make(), image(zoo_input.shape[1:], dtype)), input_shape, ids_below, loss)


def _referenced(parts: ModelReference, input_shape: Shape | None) -> BenchNetwork:
    reference, rest = str(parts), parts.name
    match parts.prefix:
        case "torchvision":
            models = import_torchvision().models
            if rest not in models.list_models():
                raise UnknownModel(rest, models.list_models(), "torchvision model")
            return BenchNetwork(
                reference, partial(_like_captured, reference, input_shape, _torchvision(rest)), input_shape
            )
        case "timm":
            timm = import_timm()
            sized = {} if input_shape is None else {"img_size": input_shape[1:]}
            make = partial(timm.create_model, rest, pretrained=False, **sized)
            return BenchNetwork(reference, partial(_like_captured, reference, input_shape, make), input_shape)
        case "hf":
            return _hugging_face(reference, input_shape)
        case _:
            return BenchNetwork(reference, partial(_factory, reference, input_shape), input_shape)


def _torchvision(name: str) -> Callable[[], nn.Module]:
    return partial(import_torchvision().models.get_model, name, weights=None)


def _like_captured(
    reference: str, input_shape: Shape | None, make: Callable[[], nn.Module]
) -> tuple[nn.Module, Example]:
    from epochcast.describe.capture.torch.torch_load import load_torch
    from epochcast.describe.capture.torch.torch_model import TorchModel

    captured = load_torch(reference, input_shape)
    assert isinstance(captured, TorchModel)
    return make(), captured.example


def _hugging_face(reference: str, input_shape: Shape | None) -> BenchNetwork:
    """The class that the front end chose, built again from its configuration; labels are words, too."""
    from epochcast.describe.capture.hf import hf_model

    captured = hf_model(reference, input_shape)
    config: Any = captured.module.config
    vocabulary = getattr(config, "vocab_size", None)
    build: Any = type(captured.module)
    ids_below = min(n for n in (vocabulary, None if vocabulary else config.num_labels) if n)
    return BenchNetwork(reference, lambda: (build(config), captured.example), input_shape, ids_below)


def _factory(reference: str, input_shape: Shape | None) -> tuple[nn.Module, Example]:
    factory: Any = named_object(reference)
    result = factory() if callable(factory) and not isinstance(factory, nn.Module) else factory
    if isinstance(result, Workload):
        if result.step is not None or result.loss is not None:
            raise BadInput(
                f"{reference} has a loss or a step of its own, which cannot be measured yet: return the module"
            )
        result = result.model, result.inputs
    module, inputs = result if isinstance(result, tuple) and len(result) == 2 else (result, None)
    if not isinstance(module, nn.Module):
        raise BadInput(f"{reference} returns a {type(module).__name__}, not a torch.nn.Module")
    return module, example_for(module, input_shape if input_shape is not None else inputs, reference)


# ---- defined here -------------------------------------------------------------------------------


def _stack(channels_in: int, channels: tuple[int, ...], dense: tuple[int, ...], padding: int = 0) -> nn.Sequential:
    """The report's networks: convolution, relu, 2x2 max pool; then dense layers."""
    layers: list[nn.Module] = []
    for out in channels:
        layers += [nn.Conv2d(channels_in, out, 3, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]
        channels_in = out
    layers.append(nn.Flatten())
    for index, out in enumerate(dense):
        layers.append(nn.Linear(channels_in if index else _flat[channels], out))
        if index < len(dense) - 1:
            layers.append(nn.ReLU())
        channels_in = out
    return nn.Sequential(*layers)


_MNIST, _MNIST_2, _CIFAR = (32, 32, 32), (32, 32), (64, 64, 32)
_CAMELYON = (256, 256, 512, 512, 1024, 1024)
_flat = {_MNIST: 32, _MNIST_2: 32 * 5 * 5, _CIFAR: 32 * 2 * 2, _CAMELYON: 1024, _CAMELYON[:3]: 512 * 12 * 12}


def _patch_camelyon() -> nn.Sequential:
    return nn.Sequential(*_stack(3, _CAMELYON, (1028, 512, 128, 1), padding=1), nn.Sigmoid())


def patch_camelyon_prefix() -> tuple[nn.Module, torch.Tensor]:
    """The first three stages of the Patch Camelyon network, and one dense layer to two classes."""
    return _stack(3, _CAMELYON[:3], (2,), padding=1), torch.empty(2, 3, 96, 96)


class WordModel(nn.Module):
    """The zoo's `lstm_lm`: embedding, two LSTM layers with dropout around each, logits over the vocabulary."""

    def __init__(self, width: int, vocabulary: int, layers: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, width, layers, dropout=dropout, batch_first=True)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(N, words) → (N, words, vocabulary)"""
        scores: torch.Tensor = self.decoder(self.drop(self.rnn(self.drop(self.encoder(ids)))[0]))
        return scores


def _word_model(name: str, width: int, vocabulary: int) -> Callable[[Shape | None], BenchNetwork]:
    return lambda shape: _from_zoo(name, shape, partial(WordModel, width, vocabulary), ids_below=vocabulary)


def _report(
    name: str, into: int, channels: tuple[int, ...], dense: tuple[int, ...]
) -> Callable[[Shape | None], BenchNetwork]:
    return lambda shape: _from_zoo(name, shape, partial(_stack, into, channels, dense))


def _alias(reference: str, default_shape: Shape | None = None) -> Callable[[Shape | None], BenchNetwork]:
    return lambda shape: find_network(reference, shape or default_shape)


BERT_MINI = "hf:BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)"
GPT2_MINI = "hf:GPT2Config(n_embd=256, n_layer=4, n_head=4, n_positions=512, vocab_size=8192)"

NETWORKS: Mapping[str, Callable[[Shape | None], BenchNetwork]] = {
    "mnist_cnn": _report("mnist_cnn", 1, _MNIST, (128, 10)),
    "mnist_cnn_2conv": _report("mnist_cnn_2conv", 1, _MNIST_2, (128, 10)),
    "cifar10_cnn": _report("cifar10_cnn", 3, _CIFAR, (512, 256, 128, 10)),
    "patch_camelyon_cnn": lambda shape: _from_zoo("patch_camelyon_cnn", shape, _patch_camelyon, loss="bce"),
    "patch_camelyon_prefix": _alias("epochcast.measure.bench.bench_networks:patch_camelyon_prefix"),
    "vit_tiny": _alias("timm:vit_tiny_patch16_224"),
    "bert_mini": _alias(BERT_MINI, (128,)),
    "gpt2_mini": _alias(GPT2_MINI, (128,)),
    "lstm": _word_model("lstm", 1500, 10000),
    "lstm_lm": _word_model("lstm_lm", 1500, 10000),
    "lstm_wikitext2": _word_model("lstm_wikitext2", 200, 33278),
    "r3d_small": _alias("torchvision:r3d_18", (3, 4, 56, 56)),
    "r3d_18": lambda shape: _from_zoo("r3d_18", shape, _torchvision("r3d_18")),
}
"""Networks that a campaign can name, besides those of the zoo and of torchvision."""
