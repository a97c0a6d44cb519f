"""One pass over the nodes of an ONNX file at one batch size: every value gets its shape, every operator its rule.

A value is *data* (computed from the inputs), *learnt* (a float initialiser, a parameter once an operator takes it as a
weight) or *constant* (computed from shapes and small numbers; costs nothing). Shapes come from the rules; where a rule
has none, from `onnx.shape_inference` of the single node; where that has none either, from what the file declares.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from epochcast.describe.capture.onnx.batch_binding import Binding
from epochcast.describe.capture.onnx.constant_folding import fold
from epochcast.describe.capture.onnx.onnx_file import Array, File, OnnxNode, dtype_of, small_array
from epochcast.describe.capture.read_errors import reading_part
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Parameter
from epochcast.describe.graph.ops.opaque_op import kind_named
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput


@dataclass(frozen=True)
class OnnxValue:
    """The value of a name of the file at this batch."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    origin: str = "data"  # data, learnt, constant
    array: Array | None = None
    tensor: Tensor | None = None
    is_strided: bool = False  # a transposed view: the next reshape must copy
    transposed_of: str | None = None  # the 2-D initialiser this is the transpose of


Rule = Callable[["OnnxCall"], Sequence[Tensor | OnnxValue]]


class OnnxWalk:
    """The state of the pass: the builder, the values so far, and the shapes at the batch the file was exported at."""

    def __init__(self, file: File, binding: Binding, batch: int, reference: Mapping[str, OnnxValue] | None) -> None:
        self.file = file
        self.batch = batch
        self.exported_batch = binding.exported_batch
        self.reference = reference
        self.sizes = {name: batch if size is None else size for name, size in binding.sizes.items()}
        self.b = Builder(file.name, batch)
        self.values: dict[str, OnnxValue] = {}
        self.notes: dict[str, None] = {}
        self.uses = Counter(name for node in file.nodes for name in node.inputs)
        self.uses.update(file.outputs)
        self.readers = {name: node for node in file.nodes for name in node.inputs}
        self.absorbed: dict[str, str] = {}  # results of nodes merged into an earlier operator (a bias after a product)
        for bound in binding.inputs:
            tensor = Tensor(bound.at(batch), bound.dtype, bound.name)
            self.b.inputs.append(tensor)
            self.values[bound.name] = OnnxValue(bound.name, tensor.shape, tensor.dtype, tensor=tensor)
        for name, initializer in file.initializers.items():
            is_learnt = initializer.dtype.is_float and prod(initializer.shape) > 1
            origin = "learnt" if is_learnt else "constant"
            self.values[name] = OnnxValue(name, initializer.shape, initializer.dtype, origin, initializer.array)

    @property
    def is_rebound(self) -> bool:
        """Whether the file was exported at one batch and is now walked at another."""
        return self.exported_batch is not None and self.exported_batch != self.batch

    def run(self, rules: Mapping[str, Rule]) -> None:
        """Every node in the order of the file."""
        for node in self.file.nodes:
            if node.outputs and node.outputs[0] in self.absorbed:
                self.values[node.outputs[0]] = self.values[self.absorbed[node.outputs[0]]]
                continue
            call = OnnxCall(self, node)
            with reading_part(call.place):
                results = self._constant(call) or self._apply(call, rules)
                for name, value in zip(node.outputs, results, strict=False):
                    if name:
                        self.values[name] = self.value(name, value, call)

    def _constant(self, call: "OnnxCall") -> list[OnnxValue] | None:
        """Shapes, constants and arithmetic on them."""
        node = call.node
        match node.op:
            case "Constant":
                return [_constant_node(node, self.file.label)]
            case "Shape" | "Size":
                shape = call.value(0).shape
                part = shape[node.attributes.get("start", 0) : node.attributes.get("end")]
                return [_constant_value(part if node.op == "Shape" else prod(shape))]
        inputs = [call.value(i) for i in range(len(node.inputs)) if node.inputs[i]]
        if not inputs or any(v.origin != "constant" for v in inputs):
            return None
        if node.op in _SIZED and self.is_rebound and self.exported_batch != 1:
            inputs[-1] = self._grown(inputs[-1])
        if all(v.array is not None for v in inputs):
            options = dict(node.attributes)
            if node.op == "Split" and "split" not in options and len(inputs) == 1:
                size = inputs[0].shape[options.get("axis", 0)]
                options["split"] = [-(-size // len(node.outputs))] * len(node.outputs)
            folded = fold(node.op, [v.array for v in inputs if v.array is not None], options)
            if folded is not None:
                return [_constant_value(array) for array in folded]
        if node.op in _FILLS:
            return [OnnxValue("", shape, dtype, "constant") for shape, dtype in self.inferred(call)]
        return None

    def _grown(self, shape: OnnxValue) -> OnnxValue:
        """A shape that begins with the exported batch, with this batch instead."""
        if shape.array is None or not shape.array.size or shape.array[0] != self.exported_batch:
            return shape
        return replace(shape, array=_constant_value((self.batch, *shape.array[1:].tolist())).array)

    def _apply(self, call: "OnnxCall", rules: Mapping[str, Rule]) -> Sequence[Tensor | OnnxValue]:
        rule = rules.get(call.node.op)
        return self.opaque(call) if rule is None else rule(call)

    def opaque(self, call: "OnnxCall") -> Sequence[Tensor]:
        """An operator of the user, else one without a rule: costed by its bytes."""
        domain = call.node.domain
        target = f"{domain}.{call.node.op}" if domain else call.node.op
        inputs = [call.data(i) for i, name in enumerate(call.node.inputs) if name]
        results = self.inferred(call)
        shapes, dtypes = [shape for shape, _ in results], [dtype for _, dtype in results]
        kind = kind_named(target, call.node.attributes)
        return self.b.op(kind, inputs, shapes, dtypes=dtypes, name=call.layer)

    # ---- values ---------------------------------------------------------------------------------

    def value(self, name: str, result: Tensor | OnnxValue, call: "OnnxCall") -> OnnxValue:
        """A result under its name in the file."""
        if isinstance(result, OnnxValue):
            return result if result.origin == "learnt" else replace(result, name=name)
        return OnnxValue(name, result.shape, result.dtype, tensor=result)

    def tensor(self, value: OnnxValue) -> Tensor:
        """The tensor of our graph: computed, a parameter, or a constant."""
        if value.tensor is not None:
            return value.tensor
        if value.origin == "learnt":
            return self.parameter(value, "")
        tensor = Tensor(value.shape, value.dtype, f"constant:{value.name}")
        if all(t.name != tensor.name for t in self.b.inputs):
            self.b.inputs.append(tensor)
        return tensor

    def parameter(self, value: OnnxValue, layer: str, shape: tuple[int, ...] | None = None) -> Tensor:
        """A learned tensor under its name in the file (`shape`: another shape with as many elements)."""
        if value.tensor is not None:
            return value.tensor
        parameter = self.b.parameters.get(value.name)
        if parameter is None:
            tensor = Tensor(shape or value.shape, DType.FLOAT32, value.name)
            owner = value.name.rpartition(".")[0] or layer
            parameter = self.b.parameters[value.name] = Parameter(tensor, True, owner)
        return replace(parameter.tensor, shape=shape or parameter.tensor.shape)

    def inferred(self, call: "OnnxCall") -> list[tuple[tuple[int, ...], DType]]:
        """Shapes and dtypes of the outputs of a node without a rule."""
        by_name = dict(_node_inference(call, self.file))
        results: list[tuple[tuple[int, ...], DType]] = []
        for name in call.node.outputs:
            if not name:
                results.append(((), DType.FLOAT32))
                continue
            if name not in by_name:
                by_name[name] = self._declared(name, call), DType.FLOAT32
            results.append(by_name[name])
        return results

    def _declared(self, name: str, call: "OnnxCall") -> tuple[int, ...]:
        dims = self.file.declared.get(name)
        sizes = [self.sizes.get(d) if isinstance(d, str) else d for d in dims or ()]
        if dims and self.is_rebound and sizes[0] == self.exported_batch:
            sizes[0] = self.batch
        if dims and all(s is not None for s in sizes):
            return tuple(s for s in sizes if s is not None)
        if call.node.domain in ("", "ai.onnx"):
            raise BadInput("the size of its output depends on values, so its work cannot be known")
        self.notes[
            f"{call.node.op} has no rule and no declared shape: its output is assumed to be as large as its input"
        ] = None
        return call.value(0).shape

    def layer_name(self, node: OnnxNode) -> str:
        """The layer of a node: its name without repetition (/layer1/layer1.0/conv1/Conv → layer1.0.conv1)."""
        pieces: list[str] = []
        for piece in (p for p in node.name.split("/") if p):
            if pieces and piece.startswith(f"{pieces[-1]}."):
                pieces.pop()
            pieces.append(piece)
        if len(pieces) > 1 and pieces[-1].rstrip("_0123456789") == node.op:
            pieces.pop()
        return ".".join(pieces) or node.op


class OnnxCall:
    """One node with its values at hand."""

    def __init__(self, walk: OnnxWalk, node: OnnxNode) -> None:
        self.walk = walk
        self.node = node
        self.b = walk.b
        self.layer = walk.layer_name(node)
        self.place = f"{walk.file.label}: node {node.name!r} ({node.op})"

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute of the node."""
        return self.node.attributes.get(name, default)

    def count(self, name: str) -> int:
        """An attribute that must be there: a whole number of at least 1."""
        value = self.attribute(name)
        if not isinstance(value, int) or value < 1:
            raise BadInput(f"its attribute {name!r} must be a whole number of at least 1, got {value!r}")
        return value

    def sizes(self, name: str, length: int, default: int, least: int | None = None) -> tuple[int, ...]:
        """An attribute of so many whole numbers; `default` of each where the node does not have it."""
        value = self.attribute(name, [default] * length)
        is_sizes = isinstance(value, list | tuple) and all(isinstance(size, int) for size in value)
        if not is_sizes or len(value) != length or (least is not None and any(size < least for size in value)):
            wanted = f"{length} whole numbers" + (f" of at least {least}" if least is not None else "")
            raise BadInput(f"its attribute {name!r} must be {wanted}, got {value!r}")
        return tuple(value)

    def has(self, place: int) -> bool:
        """Whether an optional input is given."""
        return place < len(self.node.inputs) and bool(self.node.inputs[place])

    def value(self, place: int) -> OnnxValue:
        """The value of an input."""
        if not self.has(place):
            raise BadInput(f"it lacks input {place}")
        name = self.node.inputs[place]
        if name not in self.walk.values:
            raise BadInput(f"it reads {name!r}, which no node computes")
        return self.walk.values[name]

    def data(self, place: int) -> Tensor:
        """The tensor of an input."""
        return self.walk.tensor(self.value(place))

    def weight(self, place: int, shape: tuple[int, ...] | None = None) -> Tensor:
        """A learnt input; the layer takes its name from it where that has a dot."""
        value = self.value(place)
        if value.tensor is not None:
            return value.tensor
        if "." in value.name:
            self.layer = value.name.rpartition(".")[0]
        return self.walk.parameter(value, self.layer, shape)

    def array(self, place: int) -> Array | None:
        """The known value of an input."""
        return self.value(place).array if self.has(place) else None

    def integers(self, name: str, place: int) -> tuple[int, ...] | None:
        """Numbers given as an attribute (old opsets) or as an input that is known."""
        if name in self.node.attributes:
            value = self.node.attributes[name]
            return tuple(int(n) for n in value) if isinstance(value, list | tuple) else (int(value),)
        if not self.has(place):
            return None
        array = self.array(place)
        if array is None:
            raise BadInput(f"its {name} depend on values, so its work cannot be known")
        return tuple(int(n) for n in array.reshape(-1))

    def results(self) -> Iterator[str]:
        """Names of the outputs that something reads."""
        return (name for name in self.node.outputs if name and self.walk.uses[name])


_SIZED = frozenset({"Expand", "ConstantOfShape"})
_FILLS = frozenset(
    {"ConstantOfShape", "Range", "Expand", "Tile", "EyeLike", "Trilu", "Where", "Cast", "Less", "Equal", "Reshape"}
)


def _constant_value(array: Any) -> OnnxValue:
    import numpy as np

    values = np.asarray(array, dtype=np.int64 if isinstance(array, tuple | int) else None)
    if values.dtype == np.bool_:
        dtype = DType.BOOL
    else:
        dtype = DType.INT64 if np.issubdtype(values.dtype, np.integer) else DType.FLOAT32
    return OnnxValue("", values.shape, dtype, "constant", values)


def _constant_node(node: OnnxNode, label: str) -> OnnxValue:
    for name, value in node.attributes.items():
        if name == "value":
            dtype = dtype_of(value.data_type, label)
            return OnnxValue(node.outputs[0], tuple(value.dims), dtype, "constant", small_array(value))
        if name in ("value_int", "value_ints", "value_float", "value_floats"):
            return _constant_value(list(value) if isinstance(value, list | tuple) else [value][0])
    raise BadInput("its value is of no supported type")


def _node_inference(call: OnnxCall, file: File) -> Iterator[tuple[str, tuple[tuple[int, ...], DType]]]:
    """onnx's own inference of one node from concrete input types."""
    from onnx import defs, helper, numpy_helper, shape_inference

    node = call.node
    try:
        schema = defs.get_schema(node.op, file.opset, node.domain if node.domain != "ai.onnx" else "")
        codes = {DType.FLOAT32: 1, DType.INT64: 7, DType.INT32: 6, DType.BOOL: 9, DType.UINT8: 2, DType.INT8: 3}
        types, constants = {}, {}
        for place, name in enumerate(node.inputs):
            if name:
                value = call.value(place)
                types[name] = helper.make_tensor_type_proto(codes.get(value.dtype, 1), value.shape)
                if value.array is not None:
                    constants[name] = numpy_helper.from_array(value.array, name)
        inferred = shape_inference.infer_node_outputs(schema, node.proto, types, constants)
    except Exception:  # no schema, or onnx rejects the node: no inference
        return
    for name, type_proto in inferred.items():
        dims = type_proto.tensor_type.shape.dim
        if (
            type_proto.HasField("tensor_type")
            and type_proto.tensor_type.HasField("shape")
            and all(d.HasField("dim_value") for d in dims)
        ):
            yield name, (tuple(d.dim_value for d in dims), dtype_of(type_proto.tensor_type.elem_type, file.label))
