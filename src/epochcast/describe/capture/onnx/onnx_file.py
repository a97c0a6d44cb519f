"""Reading an ONNX file as a graph of nodes: nothing is run; control flow and quantised operators are refused."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epochcast.base.caching import remembered
from epochcast.describe.capture.read_errors import PlacedError
from epochcast.describe.graph.tensor import DType
from epochcast.errors import BadInput, MissingExtra

OLDEST_OPSET = 9
# Values are read only of tensors as small as a shape, a scale or a list of axes.
MOST_VALUES = 4096

Array = NDArray[Any]

_CONTROL = frozenset({"Loop", "If", "Scan", "SequenceMap"})
_QUANTISED = frozenset(
    {
        "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger",
        "ConvInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention", "QGemm",
        "QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearConcat",
        "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearReduceMean", "QOrderedMatMul", "QOrderedAttention",
        "QEmbedLayerNormalization", "MatMulNBits", "MatMulBnb4", "GatherBlockQuantized", "FusedMatMulNBits",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Initializer:
    """A tensor of the file: its shape and dtype, and its values where it is small."""

    shape: tuple[int, ...]
    dtype: DType
    array: Array | None


@dataclass(frozen=True)
class Input:
    """A graph input: each dimension is a size, the name of a size, or None."""

    name: str
    dims: tuple[int | str | None, ...]
    dtype: DType


@dataclass(frozen=True)
class OnnxNode:
    """One operator call of the file."""

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    proto: Any


@dataclass(frozen=True)
class File:
    """The parts of an ONNX file that a forecast needs."""

    label: str
    name: str
    opset: int
    nodes: tuple[OnnxNode, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    initializers: dict[str, Initializer]
    declared: dict[str, tuple[int | str | None, ...]]


def read_file(path: Path) -> File:
    """The file's graph; local functions are inlined, control flow and quantised operators are refused."""
    proto = _load(path)
    label = path.name
    opsets = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
    if not proto.graph.node or not opsets:
        raise BadInput(f"{label} is not an ONNX model: it has no operators")
    opset = int(opsets.get("ai.onnx", 0))
    if 0 < opset < OLDEST_OPSET:
        raise BadInput(f"{label} is of opset {opset}; opset {OLDEST_OPSET} and later are read: export it again")
    nodes = tuple(_node(node, index, label, opset or OLDEST_OPSET) for index, node in enumerate(proto.graph.node))
    initializers = {t.name: _initializer(t, label) for t in proto.graph.initializer}
    initializers |= {
        t.values.name: Initializer(tuple(t.dims), DType.FLOAT32, None) for t in proto.graph.sparse_initializer
    }
    inputs = tuple(_input(value, label) for value in proto.graph.input if value.name not in initializers)
    if not inputs:
        raise BadInput(f"{label} has no inputs, so it computes a constant")
    declared = {value.name: _dims(value.type.tensor_type) for value in (*proto.graph.value_info, *proto.graph.output)}
    outputs = tuple(value.name for value in proto.graph.output)
    name = path.stem
    return File(label, name, opset or OLDEST_OPSET, nodes, inputs, outputs, initializers, declared)


def _load(path: Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("onnx") from None
    try:
        proto = onnx.load_model(str(path), format="protobuf", load_external_data=False)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from None
    except Exception:  # protobuf's DecodeError, whose package has no types, and what onnx makes of it
        raise BadInput(f"{path.name} is not an ONNX file, or it is truncated") from None
    if proto.functions:
        from onnx import inliner

        try:
            proto = inliner.inline_local_functions(proto)
        except Exception as error:  # the inliner raises bare RuntimeErrors from C++
            raise BadInput(
                f"{path.name}: its local functions cannot be inlined: {str(error).splitlines()[0]}"
            ) from None
    return proto


def _printable(text: str | bytes) -> str:
    """A name, so that messages of a damaged file stay printable. Of one that is no UTF-8 protobuf gives the bytes."""
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    return "".join(c if c.isprintable() else "?" for c in words)


def _node(node: Any, index: int, label: str, opset: int) -> OnnxNode:
    op = _printable(node.op_type)
    name = _printable(node.name) or f"{op}_{index}"
    if op in _CONTROL:
        raise BadInput(
            f"{label}: node {name!r} is {op}, control flow whose work depends on values; "
            "export the model with fixed shapes and without branches"
        )
    if op in _QUANTISED:
        raise BadInput(f"{label}: node {name!r} is {op}: a quantised model is for inference; give the float model")
    attributes = _attributes(node, f"{label}: node {name!r} ({op})", opset)
    return OnnxNode(op, node.domain, name, tuple(node.input), tuple(node.output), attributes, node)


@dataclass(frozen=True)
class Definition:
    """What ONNX asks of an operator: kinds of its attributes, those it must have, the fewest inputs and outputs."""

    kinds: dict[str, str]
    required: frozenset[str]
    inputs: int
    outputs: int


def _attributes(node: Any, place: str, opset: int) -> dict[str, Any]:
    """The attributes by name; a node that is not as ONNX defines its operator is refused."""
    from onnx import AttributeProto, helper

    defined = _defined(node.op_type, opset, node.domain)
    for side, names, least in (("inputs", node.input, defined.inputs), ("outputs", node.output, defined.outputs)):
        if len(names) < least:
            raise BadInput(f"{place} has {len(names)} {side}, expected at least {least}")
    attributes = {}
    for attribute in node.attribute:
        kind = AttributeProto.AttributeType.Name(attribute.type)
        wanted = defined.kinds.get(attribute.name, kind)
        if kind != wanted or kind == "UNDEFINED":
            raise BadInput(
                f"{place}: its attribute {_printable(attribute.name)!r} is of kind {kind}, expected {wanted}"
            )
        value = helper.get_attribute_value(attribute)
        attributes[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    missing = sorted(defined.required - attributes.keys())
    if missing:
        raise BadInput(f"{place} lacks its attribute {missing[0]!r}")
    return attributes


@remembered(4096)
def _defined(op: str, opset: int, domain: str) -> Definition:
    """What ONNX asks of an operator: nothing of one that the onnx package does not know."""
    from onnx import defs

    try:
        schema = defs.get_schema(op, opset, "" if domain == "ai.onnx" else domain)
    except Exception:  # SchemaError, of C++: a contributed operator, or one that this opset lacks
        return Definition({}, frozenset(), 0, 0)
    return Definition(
        {name: str(attribute.type).rpartition(".")[2] for name, attribute in schema.attributes.items()},
        frozenset(name for name, attribute in schema.attributes.items() if attribute.required),
        schema.min_input,
        schema.min_output,
    )


def _initializer(tensor: Any, label: str) -> Initializer:
    return Initializer(tuple(tensor.dims), dtype_of(tensor.data_type, label), small_array(tensor))


def small_array(tensor: Any) -> Array | None:
    """The values of a small tensor that is stored in the file itself."""
    from onnx import TensorProto, numpy_helper

    size = 1
    for dim in tensor.dims:
        size *= dim
    if size > MOST_VALUES or tensor.data_location == TensorProto.EXTERNAL or tensor.data_type == TensorProto.STRING:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError):
        return None


def dtype_of(code: int, label: str) -> DType:
    """Our dtype. Floats of any width are float32 here: the recipe decides the precision of training."""
    from onnx import TensorProto

    names: dict[int, DType] = {
        TensorProto.FLOAT: DType.FLOAT32,
        TensorProto.FLOAT16: DType.FLOAT32,
        TensorProto.BFLOAT16: DType.FLOAT32,
        TensorProto.DOUBLE: DType.FLOAT32,
        TensorProto.COMPLEX64: DType.COMPLEX64,
        TensorProto.INT64: DType.INT64,
        TensorProto.UINT64: DType.INT64,
        TensorProto.INT32: DType.INT32,
        TensorProto.UINT32: DType.INT32,
        TensorProto.INT16: DType.INT16,
        TensorProto.UINT16: DType.INT16,
        TensorProto.INT8: DType.INT8,
        TensorProto.UINT8: DType.UINT8,
        TensorProto.BOOL: DType.BOOL,
    }
    if code not in names:
        onnx_names = TensorProto.DataType.keys()
        name = TensorProto.DataType.Name(code) if code in TensorProto.DataType.values() else str(code)
        raise PlacedError(label, f"tensors of type {name if name in onnx_names else code} are not supported")
    return names[code]


def _input(value: Any, label: str) -> Input:
    if not value.type.HasField("tensor_type"):
        raise BadInput(f"{label}: input {value.name!r} is not a tensor; sequences and maps are not supported")
    return Input(value.name, _dims(value.type.tensor_type), dtype_of(value.type.tensor_type.elem_type, label))


def _dims(tensor_type: Any) -> tuple[int | str | None, ...]:
    return tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else (d.dim_param or None)
        for d in tensor_type.shape.dim
    )
