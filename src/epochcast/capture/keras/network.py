"""Walking a Keras config: Sequential, functional and nested models, shared layers, both dialects of inbound nodes.

Keras 3 writes a node as {"args": …, "kwargs": …} with tensors as {"class_name": "__keras_tensor__", "config":
{"keras_history": [layer, node, output]}}; Keras 2 writes a list of [layer, node, output, kwargs].
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epochcast.capture.keras.call import Call, Layer, Shape, Value, plain
from epochcast.capture.keras.rules import RULES, TF_FUNCTIONS
from epochcast.errors import BadInput
from epochcast.graph.build import Builder
from epochcast.graph.kinds import Opaque

MOST_DEPTH = 64


@dataclass(frozen=True)
class Ref:
    """Output `index` of the `node`-th use of a layer."""

    layer: str
    node: int
    index: int


class Network:
    """Builds one model; `label` is what messages call the file."""

    def __init__(self, builder: Builder, label: str) -> None:
        self.b = builder
        self.label = label
        self.notes: dict[str, None] = {}
        self.shapes: dict[str, list[Shape]] = {}  # of every layer by path, for tests and tables
        self._depth = 0

    # ---- models ---------------------------------------------------------------------------------

    def run(self, layer: Layer, inputs: list[Value]) -> list[Value]:
        """The outputs of a model for given inputs."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise BadInput(f"{self.label}: models are nested more than {MOST_DEPTH} deep")
        try:
            if "input_layers" in layer.config or "inbound_nodes" in str(list(_rows(layer.config))[:1]):
                return self._functional(layer, inputs)
            return self._sequential(layer, inputs)
        finally:
            self._depth -= 1

    def _sequential(self, layer: Layer, inputs: list[Value]) -> list[Value]:
        values = inputs
        for index, row in enumerate(_rows(layer.config)):
            inner = self._layer(row, layer, f"layer{index}")
            if inner.class_name != "InputLayer":
                values = self.apply(inner, values, {})
        return values

    def _functional(self, layer: Layer, inputs: list[Value]) -> list[Value]:
        rows = list(_rows(layer.config))
        nodes: dict[tuple[str, int], tuple[Layer, Any]] = {}
        declared = _declared_shapes(rows)
        for index, row in enumerate(rows):
            inner = self._layer(row, layer, f"layer{index}")
            seen = tuple(declared.get((inner.name, i), ()) for i in range(_outputs_of(declared, inner.name)))
            inner = replace(inner, declared=seen)
            for number, node in enumerate(row.get("inbound_nodes") or []):
                nodes[(str(row.get("name", inner.name)), number)] = (inner, node)
        made: dict[Ref, Value] = {}
        entries = list(_references(layer.config.get("input_layers", [])))
        if len(entries) != len(inputs):
            raise BadInput(f"{self.label}: {layer.name} has {len(entries)} inputs and is given {len(inputs)}")
        made.update(zip(entries, inputs, strict=True))
        waiting = {key: node for key, node in nodes.items() if Ref(key[0], key[1], 0) not in made}
        while waiting:
            ready = [key for key, (_, node) in waiting.items() if all(_find(made, r) for r in _tensors(node))]
            if not ready:
                name, (_, node) = next(iter(waiting.items()))
                missing = next(r.layer for r in _tensors(node) if not _find(made, r))
                raise BadInput(f"{self.label}: layer {name[0]!r} reads {missing!r}, which is not there or comes in a circle")
            for key in ready:
                inner, node = waiting.pop(key)
                values = [v for r in _tensors(node) if (v := _find(made, r)) is not None]
                results = self.apply(inner, values, _arguments(node))
                made.update({Ref(key[0], key[1], i): value for i, value in enumerate(results)})
        outputs = []
        for ref in _references(layer.config.get("output_layers", [])):
            value = _find(made, ref)
            if value is None:
                raise BadInput(f"{self.label}: output layer {ref.layer!r} is not in the model")
            outputs.append(value)
        return outputs

    def _layer(self, row: Mapping[str, Any], parent: Layer, fallback: str) -> Layer:
        config = row.get("config")
        class_name = row.get("class_name")
        if not isinstance(class_name, str) or not isinstance(config, Mapping):
            raise BadInput(f"{self.label}: a layer of {parent.name} has no class_name or config")
        name = str(config.get("name") or row.get("name") or fallback)
        trainable = parent.trainable and bool(config.get("trainable", True))
        return Layer(class_name.rpartition(">")[2], name, config, trainable, str(row.get("module") or ""))

    # ---- layers ---------------------------------------------------------------------------------

    def apply(self, layer: Layer, values: list[Value], arguments: Mapping[str, Any]) -> list[Value]:
        """The outputs of one use of a layer."""
        place = f"{self.label}: layer {layer.name!r} ({layer.class_name})"
        try:
            results = self._results(layer, values, arguments)
        except BadInput as error:
            raise error if str(error).startswith(self.label) else BadInput(f"{place}: {error}") from None
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, AttributeError) as error:
            raise BadInput(f"{place} has a config that does not fit: {type(error).__name__}: {error}") from None
        path = ".".join([*self.b._scope, layer.name])
        self.shapes.setdefault(path, []).extend(value.shape for value in results)
        return results

    def _results(self, layer: Layer, values: list[Value], arguments: Mapping[str, Any]) -> list[Value]:
        if isinstance(layer.config.get("layers"), list):
            with self.b.scope(layer.name):
                return self.run(layer, values)
        call = Call(self.b, layer, values, self.notes, arguments)
        if layer.class_name in WRAPPERS:
            return self._wrapped(call)
        rule = RULES.get(layer.class_name)
        if rule is None and layer.class_name in ("TFOpLambda", "SlicingOpLambda", "TensorFlowOpLayer"):
            function = str(layer.config.get("function") or layer.config.get("node_def", {}).get("op", ""))
            rule = RULES.get(TF_FUNCTIONS.get(function.rpartition(".")[2], function.rpartition(".")[2]))
        if rule is None:
            return self._opaque(call)
        made = rule(call)
        return [made] if isinstance(made, Value) else list(made)

    def _opaque(self, call: Call) -> list[Value]:
        """A layer without a rule: its bytes, with the shapes its consumers saw, else as large as its input."""
        layer = call.layer
        shapes = [self._concrete(shape, call.x.shape) for shape in layer.declared if shape]
        if not shapes:
            shapes = [call.x.shape]
            call.note(f"{layer.class_name} has no rule: its output is taken to be as large as its input, without parameters")
        else:
            call.note(f"{layer.class_name} has no rule: its parameters and flops are not counted")
        target = layer.class_name if layer.class_name != "Lambda" else f"Lambda {layer.name}"
        made = call.op(Opaque(target), [v.plain for v in call.values], shapes)
        return [plain(tensor) for tensor in made]

    def _concrete(self, shape: Shape, of: Shape) -> Shape:
        """Open sizes (0) from the input: the batch, or the dimension in the same place."""
        return tuple(n or (of[i] if i < len(of) else 1) for i, n in enumerate(shape))

    def _wrapped(self, call: Call) -> list[Value]:
        """A layer around a layer: once per step of time (TimeDistributed), or as it is (normalised weights and the like)."""
        row = call.option("layer")
        if not isinstance(row, Mapping):
            raise BadInput("it wraps no layer")
        inner = self._layer(row, call.layer, "layer")
        if not call.layer.class_name.startswith("TimeDistributed"):
            with self.b.scope(call.layer.name):
                return self.apply(inner, call.values, call.arguments)
        n, steps = call.x.shape[:2]
        folded = [call.reshaped(v, (n * steps, *v.shape[2:]), "merge_time") for v in call.values]
        with self.b.scope(call.layer.name):
            results = self.apply(inner, folded, call.arguments)
        return [call.reshaped(v, (n, steps, *v.shape[1:]), "split_time") for v in results]


WRAPPERS = frozenset({"TimeDistributed", "Wrapper", "SpectralNormalization", "WeightNormalization"})


def _rows(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (row for row in config.get("layers") or [] if isinstance(row, Mapping))


def _find(made: Mapping[Ref, Value], ref: Ref) -> Value | None:
    """The value, or the only one that layer has made (indices of nodes are not always counted from its first use)."""
    if ref in made:
        return made[ref]
    uses = {r.node for r in made if r.layer == ref.layer}
    return made.get(Ref(ref.layer, uses.pop(), ref.index)) if len(uses) == 1 else None


def _references(structure: object) -> Iterator[Ref]:
    """Every [layer, node, output] of a nested structure, in order."""
    match structure:
        case [str(name), int(node), int(index), *_]:
            yield Ref(name, node, index)
        case list() | tuple():
            for item in structure:
                yield from _references(item)
        case Mapping():
            for item in structure.values():
                yield from _references(item)


def _tensors(node: object) -> list[Ref]:
    """The tensors a node reads, positional ones first."""
    if isinstance(node, Mapping):  # Keras 3
        return [ref for ref, _ in _keras_tensors([node.get("args"), node.get("kwargs")])]
    return list(_references(node))


def _keras_tensors(structure: object) -> Iterator[tuple[Ref, Any]]:
    if isinstance(structure, Mapping):
        config = structure.get("config")
        if structure.get("class_name") == "__keras_tensor__" and isinstance(config, Mapping):
            for ref in _references(config.get("keras_history")):
                yield ref, config.get("shape")
            return
        for item in structure.values():
            yield from _keras_tensors(item)
    elif isinstance(structure, list | tuple):
        for item in structure:
            yield from _keras_tensors(item)


def _arguments(node: object) -> dict[str, Any]:
    """What is not a tensor: keyword arguments by name, positional ones by their place ("0", "1")."""
    if isinstance(node, Mapping):
        named = {k: v for k, v in (node.get("kwargs") or {}).items() if not list(_keras_tensors([v]))}
        placed = {str(i): v for i, v in enumerate(node.get("args") or []) if not list(_keras_tensors([v]))}
        return {**placed, **named}
    found: dict[str, Any] = {}
    for item in node if isinstance(node, list) else []:
        if isinstance(item, list) and len(item) > 3 and isinstance(item[3], Mapping):
            found |= {k: v for k, v in item[3].items() if not list(_references([v]))}
    return found


def _declared_shapes(rows: list[Mapping[str, Any]]) -> dict[tuple[str, int], Shape]:
    """The shape of each output as its consumers recorded it (Keras 3 only); open sizes are 0."""
    found = {}
    for row in rows:
        for node in row.get("inbound_nodes") or []:
            if isinstance(node, Mapping):
                for ref, shape in _keras_tensors([node.get("args"), node.get("kwargs")]):
                    if isinstance(shape, list):
                        found[(ref.layer, ref.index)] = tuple(n or 0 for n in shape)
    return found


def _outputs_of(declared: Mapping[tuple[str, int], Shape], name: str) -> int:
    return max((index + 1 for layer, index in declared if layer == name), default=0)


def input_names(config: Mapping[str, Any]) -> list[str]:
    """The layers a functional model's inputs come from."""
    return [ref.layer for ref in _references(config.get("input_layers", []))]
