"""Walking a Keras config: Sequential, functional and nested models, shared layers, wrappers."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasLayer, KerasTensor, Shape, plain
from epochcast.describe.capture.keras.keras_rules import RULES, TF_FUNCTIONS
from epochcast.describe.capture.keras.nodes import Ref, arguments_of, declared_shapes, references, tensors_of
from epochcast.describe.capture.read_errors import PlacedError, reading_part
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.ops.opaque_op import kind_named
from epochcast.errors import BadInput


@dataclass(frozen=True)
class _Use:
    """The `number`-th use of a layer: what it reads, and its other arguments."""

    name: str
    number: int
    layer: KerasLayer
    reads: list[Ref]
    arguments: Mapping[str, Any]


class _Outputs:
    """The outputs of the uses so far."""

    def __init__(self, entries: Iterable[tuple[Ref, KerasTensor]]) -> None:
        self._values = dict(entries)
        self._numbers: dict[str, set[int]] = {}
        for ref in self._values:
            self._numbers.setdefault(ref.layer, set()).add(ref.node)

    def has(self, name: str, number: int) -> bool:
        return number in self._numbers.get(name, ())

    def add(self, name: str, number: int, values: list[KerasTensor]) -> None:
        self._values |= {Ref(name, number, i): value for i, value in enumerate(values)}
        self._numbers.setdefault(name, set()).add(number)

    def find(self, ref: Ref) -> KerasTensor | None:
        """The value, or the only one of that layer (nodes are not always counted from the first use)."""
        if ref in self._values:
            return self._values[ref]
        numbers = self._numbers.get(ref.layer, set())
        return self._values.get(Ref(ref.layer, next(iter(numbers)), ref.index)) if len(numbers) == 1 else None


class KerasNetwork:
    """Builds one model; `label` is what messages call the file."""

    def __init__(self, builder: Builder, label: str) -> None:
        self.b = builder
        self.label = label
        self.notes: dict[str, None] = {}
        self.shapes: dict[str, list[Shape]] = {}  # of every layer by path, for tests and tables
        self._path: list[str] = []

    @contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        self._path.append(name)
        try:
            with self.b.scope(name):
                yield
        finally:
            self._path.pop()

    # ---- models ---------------------------------------------------------------------------------

    def run(self, layer: KerasLayer, inputs: list[KerasTensor]) -> list[KerasTensor]:
        """The outputs of a model for given inputs."""
        return self._functional(layer, inputs) if "input_layers" in layer.config else self._sequential(layer, inputs)

    def _sequential(self, layer: KerasLayer, inputs: list[KerasTensor]) -> list[KerasTensor]:
        values = inputs
        for index, row in enumerate(_rows(layer.config)):
            inner = self._layer(row, layer, f"layer{index}")
            if inner.class_name != "InputLayer":
                values = self.apply(inner, values, {})
        return values

    def _functional(self, layer: KerasLayer, inputs: list[KerasTensor]) -> list[KerasTensor]:
        entries = list(references(layer.config.get("input_layers", [])))
        if len(entries) != len(inputs):
            raise PlacedError(self.label, f"{layer.name} has {len(entries)} inputs, got {len(inputs)}")
        outputs_so_far = _Outputs(zip(entries, inputs, strict=True))
        waiting = [use for use in self._uses(layer) if not outputs_so_far.has(use.name, use.number)]
        while waiting:
            later = [use for use in waiting if not self._used(use, outputs_so_far)]
            if len(later) == len(waiting):
                missing = next(ref.layer for ref in later[0].reads if outputs_so_far.find(ref) is None)
                raise PlacedError(
                    self.label, f"layer {later[0].name!r} reads {missing!r}, which is missing or part of a cycle"
                )
            waiting = later
        outputs = []
        for ref in references(layer.config.get("output_layers", [])):
            value = outputs_so_far.find(ref)
            if value is None:
                raise PlacedError(self.label, f"output layer {ref.layer!r} is not in the model")
            outputs.append(value)
        return outputs

    def _uses(self, layer: KerasLayer) -> Iterator[_Use]:
        rows = list(_rows(layer.config))
        declared = declared_shapes(rows)
        for index, row in enumerate(rows):
            inner = self._layer(row, layer, f"layer{index}")
            name = str(row.get("name") or inner.name)
            for number, node in enumerate(row.get("inbound_nodes") or []):
                yield _Use(
                    name, number, replace(inner, declared=declared.get(name, ())), tensors_of(node), arguments_of(node)
                )

    def _used(self, use: _Use, outputs_so_far: _Outputs) -> bool:
        """Apply a use if everything it reads has been computed."""
        values = [outputs_so_far.find(ref) for ref in use.reads]
        ready = [value for value in values if value is not None]
        if len(ready) < len(values):
            return False
        outputs_so_far.add(use.name, use.number, self.apply(use.layer, ready, use.arguments))
        return True

    def _layer(self, row: Mapping[str, Any], parent: KerasLayer, fallback: str) -> KerasLayer:
        config, class_name = row.get("config"), row.get("class_name")
        if not isinstance(class_name, str) or not isinstance(config, Mapping):
            raise PlacedError(self.label, f"a layer in {parent.name} has no class_name or config")
        name = str(config.get("name") or row.get("name") or fallback)
        trainable = parent.trainable and bool(config.get("trainable", True))
        return KerasLayer(class_name.rpartition(">")[2], name, config, trainable, str(row.get("module") or ""))

    # ---- layers ---------------------------------------------------------------------------------

    def apply(self, layer: KerasLayer, values: list[KerasTensor], arguments: Mapping[str, Any]) -> list[KerasTensor]:
        """The outputs of one use of a layer."""
        with reading_part(f"{self.label}: layer {layer.name!r} ({layer.class_name})"):
            results = self._results(layer, values, arguments)
        path = ".".join([*self._path, layer.name])
        self.shapes.setdefault(path, []).extend(value.shape for value in results)
        return results

    def _results(self, layer: KerasLayer, values: list[KerasTensor], arguments: Mapping[str, Any]) -> list[KerasTensor]:
        if isinstance(layer.config.get("layers"), list):
            with self._inside(layer.name):
                return self.run(layer, values)
        call = KerasCall(self.b, layer, values, self.notes, arguments)
        if layer.class_name in WRAPPERS:
            return self._wrapped(call)
        rule = RULES.get(layer.class_name)
        if rule is None and layer.class_name in ("TFOpLambda", "SlicingOpLambda", "TensorFlowOpLayer"):
            function = str(layer.config.get("function") or layer.config.get("node_def", {}).get("op", ""))
            rule = RULES.get(TF_FUNCTIONS.get(function.rpartition(".")[2], function.rpartition(".")[2]))
        if rule is None:
            return self._opaque(call)
        results = rule(call)
        return [results] if isinstance(results, KerasTensor) else list(results)

    def _opaque(self, call: KerasCall) -> list[KerasTensor]:
        """A layer without a rule, costed by its bytes: its output has the shape its consumers recorded, else its
        input's.
        """
        layer = call.layer
        shapes = [self._concrete(shape, call.x.shape) for shape in layer.declared if shape]
        if not shapes:
            shapes = [call.x.shape]
            call.note(
                f"{layer.class_name} has no rule: its output is assumed to be as large as its input, without parameters"
            )
        else:
            call.note(f"{layer.class_name} has no rule: its parameters and flops are not counted")
        target = layer.class_name if layer.class_name != "Lambda" else f"Lambda {layer.name}"
        outputs = call.op(kind_named(target, layer.config), [v.plain for v in call.values], shapes)
        return [plain(tensor) for tensor in outputs]

    def _concrete(self, shape: Shape, input_shape: Shape) -> Shape:
        """Open sizes (0) from the input: the batch, or the dimension in the same place."""
        return tuple(n or (input_shape[i] if i < len(input_shape) else 1) for i, n in enumerate(shape))

    def _wrapped(self, call: KerasCall) -> list[KerasTensor]:
        """A layer around a layer: once per step of time (TimeDistributed), or as it is (normalised weights)."""
        row = call.option("layer")
        if not isinstance(row, Mapping):
            raise BadInput("it has no inner layer")
        inner = self._layer(row, call.layer, "layer")
        if not call.layer.class_name.startswith("TimeDistributed"):
            with self._inside(call.layer.name):
                return self.apply(inner, call.values, call.arguments)
        n, steps = call.x.shape[:2]
        folded = [call.reshaped(v, (n * steps, *v.shape[2:]), "merge_time") for v in call.values]
        with self._inside(call.layer.name):
            results = self.apply(inner, folded, call.arguments)
        return [call.reshaped(v, (n, steps, *v.shape[1:]), "split_time") for v in results]


WRAPPERS = frozenset({"TimeDistributed", "Wrapper", "SpectralNormalization", "WeightNormalization"})


def _rows(config: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (row for row in config.get("layers") or [] if isinstance(row, Mapping))
