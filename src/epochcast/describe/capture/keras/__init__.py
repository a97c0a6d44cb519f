"""Keras models as forward graphs, from their configs alone: `.keras` archives, JSON of Keras 2 and 3, live models.

Keras and TensorFlow are not imported and nothing of the file is run. Shapes are converted from channels-last to
channels-first. A parameter is what Keras calls a trainable weight or a frozen one; the moving mean and variance of
batch normalisation, which `count_params` includes, are not parameters here.
"""

from functools import partial
from pathlib import Path

from epochcast.describe.capture.keras.archive import Config, live_config, read_config
from epochcast.describe.capture.keras.inputs import KerasInput, entries, tensors
from epochcast.describe.capture.keras.keras_call import KerasLayer, KerasTensor
from epochcast.describe.capture.keras.keras_network import KerasNetwork
from epochcast.describe.capture.keras.nodes import check_layers
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.read_errors import reading
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.errors import BadInput

__all__ = ["from_config", "from_keras", "layer_shapes", "load_keras"]


def load_keras(path: str | Path, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The model of a `.keras` archive or a Keras JSON. `input_shape` is one sample of the first input."""
    file = Path(path)
    with reading(file.name):
        return from_config(read_config(file), file.name, input_shape)


def from_keras(model: object, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The model of a live keras.Model on any backend."""
    config = live_config(model)
    return from_config(config, f"Keras model {getattr(model, 'name', type(model).__name__)}", input_shape)


def from_config(config: Config, label: str, input_shape: tuple[int, ...] | None = None) -> BuiltModel:
    """The model of a config; it is built once, so that errors are raised now."""
    inner = config.get("config")
    if not isinstance(inner, dict) or not isinstance(inner.get("layers"), list) or not inner["layers"]:
        raise BadInput(f"{label} has no layers in its config: a subclassed model has no graph; build it functionally")
    check_layers(inner, label)
    name = str(inner.get("name") or "keras")
    layer = KerasLayer(config["class_name"], name, inner, bool(inner.get("trainable", True)))
    starts = entries(inner, label, input_shape)
    build = partial(_build, layer, starts, label)
    build(2)
    return BuiltModel(name, build, label)


def layer_shapes(model: object, batch: int = 2) -> dict[str, list[tuple[int, ...]]]:
    """The output shapes of every layer by its path, in Keras' order, as a summary of the model shows them."""
    config = live_config(model)
    label = type(model).__name__
    layer = KerasLayer(config["class_name"], str(config["config"].get("name")), config["config"])
    network, _ = _network(layer, entries(config["config"], label, None), label, batch)
    return network.shapes


def _build(layer: KerasLayer, starts: tuple[KerasInput, ...], label: str, batch: int) -> Graph:
    network, values = _network(layer, starts, label, batch)
    outputs = [value.tensor for value in values if value.tensor.dtype.is_float]
    if not outputs:
        raise BadInput(f"{label} has no floating-point output, so there is nothing to train")
    return network.b.finish(outputs, notes=tuple(network.notes))


def _network(
    layer: KerasLayer, starts: tuple[KerasInput, ...], label: str, batch: int
) -> tuple[KerasNetwork, list[KerasTensor]]:
    network = KerasNetwork(Builder(layer.name, batch), label)
    return network, network.run(layer, tensors(network.b, starts))
