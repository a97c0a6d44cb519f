"""The inbound nodes of a functional Keras model, in both dialects.

Keras 3 writes a node as {"args": …, "kwargs": …} with tensors as {"class_name": "__keras_tensor__", "config":
{"keras_history": [layer, node, output]}}; Keras 2 writes a list of [layer, node, output, kwargs].
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from epochcast.describe.capture.keras.keras_call import Shape
from epochcast.describe.capture.read_errors import PlacedError

MOST_DEPTH = 32
# No layer has more outputs: those of a damaged file would fill memory.
MOST_OUTPUTS = 10_000


@dataclass(frozen=True)
class Ref:
    """Output `index` of the `node`-th use of a layer."""

    layer: str
    node: int
    index: int


def references(structure: object) -> Iterator[Ref]:
    """Every [layer, node, output] of a nested structure, in order."""
    match structure:
        case [str(name), int(node), int(index), *_]:
            yield Ref(name, node, index)
        case list() | tuple():
            for item in structure:
                yield from references(item)
        case Mapping():
            for item in structure.values():
                yield from references(item)


def tensors_of(node: object) -> list[Ref]:
    """The tensors a node reads, positional ones first."""
    if isinstance(node, Mapping):  # Keras 3
        return [ref for ref, _ in keras_tensors([node.get("args"), node.get("kwargs")])]
    return list(references(node))


def keras_tensors(structure: object) -> Iterator[tuple[Ref, Any]]:
    """Every tensor of a nested structure of Keras 3, with the shape it was recorded at."""
    if isinstance(structure, Mapping):
        config = structure.get("config")
        if structure.get("class_name") == "__keras_tensor__" and isinstance(config, Mapping):
            for ref in references(config.get("keras_history")):
                yield ref, config.get("shape")
            return
        for item in structure.values():
            yield from keras_tensors(item)
    elif isinstance(structure, list | tuple):
        for item in structure:
            yield from keras_tensors(item)


def arguments_of(node: object) -> dict[str, Any]:
    """What is not a tensor: keyword arguments by name, positional ones by their place ("0", "1")."""
    if isinstance(node, Mapping):
        keyword_arguments = {k: v for k, v in (node.get("kwargs") or {}).items() if not list(keras_tensors([v]))}
        placed = {str(i): v for i, v in enumerate(node.get("args") or []) if not list(keras_tensors([v]))}
        return {**placed, **keyword_arguments}
    arguments: dict[str, Any] = {}
    for item in node if isinstance(node, list) else []:
        if isinstance(item, list) and len(item) > 3 and isinstance(item[3], Mapping):
            arguments |= {k: v for k, v in item[3].items() if not list(references([v]))}
    return arguments


def check_layers(config: Mapping[str, Any], label: str, depth: int = 0) -> None:
    """Refuses a config whose layers do not have the form Keras writes; nested models are looked into."""
    if depth > MOST_DEPTH:
        raise PlacedError(label, f"models are nested more than {MOST_DEPTH} deep")
    for index, row in enumerate(config["layers"]):
        inner = row.get("config") if isinstance(row, Mapping) else None
        if not isinstance(inner, Mapping) or not isinstance(row.get("class_name"), str):
            raise PlacedError(label, f"layer {index} of {config.get('name')} has no class_name or config")
        nodes = row.get("inbound_nodes") or []
        if not isinstance(nodes, list) or not all(_is_node(node) for node in nodes):
            raise PlacedError(label, f"layer {index} of {config.get('name')} has inbound nodes of no known form")
        if isinstance(inner.get("layers"), list):
            check_layers(inner, label, depth + 1)


def _is_node(node: object) -> bool:
    if isinstance(node, Mapping):
        return isinstance(node.get("args") or [], list) and isinstance(node.get("kwargs") or {}, Mapping)
    return isinstance(node, list)


def _is_shape(shape: object) -> TypeGuard[list[int | None]]:
    return isinstance(shape, list) and all(n is None or (isinstance(n, int) and n >= 0) for n in shape)


def declared_shapes(rows: list[Mapping[str, Any]]) -> dict[str, tuple[Shape, ...]]:
    """The shapes of each layer's outputs as their consumers recorded them (Keras 3 only); open sizes are 0."""
    shapes_of: dict[str, dict[int, Shape]] = {}
    for row in rows:
        for node in row.get("inbound_nodes") or []:
            if isinstance(node, Mapping):
                for ref, shape in keras_tensors([node.get("args"), node.get("kwargs")]):
                    if 0 <= ref.index < MOST_OUTPUTS and _is_shape(shape):
                        shapes_of.setdefault(ref.layer, {})[ref.index] = tuple(n or 0 for n in shape)
    return {name: tuple(shapes.get(i, ()) for i in range(max(shapes) + 1)) for name, shapes in shapes_of.items()}


def input_names(config: Mapping[str, Any]) -> list[str]:
    """The layers a functional model's inputs come from."""
    return [ref.layer for ref in references(config.get("input_layers", []))]
