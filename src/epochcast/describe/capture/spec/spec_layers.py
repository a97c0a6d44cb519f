"""The layers form of a spec file: a list of layers, each read from the one above it unless `from` says otherwise.

A `block` holds layers of its own and may be repeated; inside it `input` is the input of the block, and names are
looked up in the block first. Names of layers become names of parameters (`stem.conv.weight`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from epochcast.base.bounds import check_ops
from epochcast.describe.capture.channel_order import check_channels_first
from epochcast.describe.capture.model import BuiltModel
from epochcast.describe.capture.read_errors import PlacedError, reading_part
from epochcast.describe.capture.spec.spec_options import Options
from epochcast.describe.capture.spec.spec_rules import RULES
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.checked_values import is_int
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.describe.graph.training import LOSSES
from epochcast.errors import BadInput, UnknownName

DTYPES = {dtype.value: dtype for dtype in (DType.FLOAT32, DType.INT64, DType.INT32, DType.BOOL)}


def layered(
    document: Mapping[str, Any], file: str, default_name: str, input_shape: tuple[int, ...] | None
) -> BuiltModel:
    """The model a list of layers describes; it is built once, so that errors are raised now."""
    build = partial(_build, document, file, default_name, input_shape)
    graph = build(2)
    return BuiltModel(graph.name, build, file)


def _build(
    document: Mapping[str, Any], file: str, default_name: str, input_shape: tuple[int, ...] | None, batch: int
) -> Graph:
    top = Options(document, file)
    b = Builder(top.text("name", default_name), batch)
    for key in ("format", "version"):
        top.any(key, None)
    loss = top.text("loss", "cross_entropy", choices=LOSSES)
    unit, units = top.text("unit", "samples"), top.count("units_per_sample", 1)
    names = _Names()
    for name, shape, dtype in _inputs(top):
        if input_shape is not None and not names:
            if len(shape) == len(input_shape):
                check_channels_first(input_shape, shape[0])
            shape = input_shape
        names[name] = b.input(name, shape, dtype)
    rows = top.tables("layers")
    if not rows:
        raise PlacedError(file, "'layers' is empty")
    check_ops(_layer_count(rows), file)
    last = _Layers(b, file).read(rows, "layers", next(iter(names.values())), names)
    output_names = top.texts("outputs", ())
    top.done()
    outputs = [_find_layer(names, name, f"{file}: 'outputs'") for name in output_names] or [last]
    return b.finish(outputs, loss=loss, unit=unit, units_per_sample=units)


def _inputs(top: Options) -> list[tuple[str, tuple[int, ...], DType]]:
    """`input = [3, 32, 32]`, or a table of inputs with names, shapes and dtypes."""
    if top.has("input") == top.has("inputs"):
        raise PlacedError(top.place, "it must have 'input', one sample's shape, or a list of 'inputs'")
    if top.has("input"):
        dtype = top.text("dtype", "float32", choices=tuple(DTYPES))
        return [("input", top.shape("input"), DTYPES[dtype])]
    inputs = []
    for index, row in enumerate(top.tables("inputs")):
        o = Options(row, f"{top.place}: inputs[{index}]")
        dtype = o.text("dtype", "float32", choices=tuple(DTYPES))
        inputs.append((o.text("name"), o.shape("shape"), DTYPES[dtype]))
        o.done()
    if not inputs or len({name for name, _, _ in inputs}) != len(inputs):
        raise PlacedError(top.place, "'inputs' must be one or more tables with different names")
    return inputs


class _Names(dict[str, Tensor]):
    """Layers and inputs by name. Those of a block are its own, then those around it: a block's own layer may take a
    name used outside.
    """

    def __init__(self, outside: "_Names | None" = None) -> None:
        super().__init__()
        self.outside = outside
        self._numbers: dict[str, int] = {}

    def __missing__(self, key: str) -> Tensor:
        if self.outside is None:
            raise KeyError(key)
        return self.outside[key]

    def free(self, kind: str) -> str:
        """conv, conv1, conv2, …: the first that is not taken."""
        number = next(n for n in count(self._numbers.get(kind, 0)) if f"{kind}{n or ''}" not in self)
        self._numbers[kind] = number
        return f"{kind}{number or ''}"


class _Layers:
    """Builds rows of layers in order."""

    def __init__(self, builder: Builder, file: str) -> None:
        self.b = builder
        self.file = file

    def read(self, rows: list[Mapping[str, Any]], path: str, x: Tensor, names: _Names) -> Tensor:
        for index, row in enumerate(rows):
            x = self._layer(row, f"{path}[{index}]", x, names)
        return x

    def _layer(self, row: Mapping[str, Any], path: str, x: Tensor, names: _Names) -> Tensor:
        o = Options(row, f"{self.file}: {path}")
        kind = o.text("type")
        name = o.text("name", names.free(kind))
        o.place += f" {name!r} ({kind if kind.isprintable() else repr(kind)})"
        if name in names:
            raise PlacedError(o.place, "the name is taken by another layer or input")
        sources = [_find_layer(names, n, f"{o.place}: 'from'") for n in o.texts("from", ())] or [x]
        trainable = o.flag("trainable", True)
        before = len(self.b.parameters)
        with reading_part(o.place):
            result = (
                self._block(o, path, sources, names, name) if kind == "block" else self._plain(o, kind, sources, name)
            )
        o.done()
        if not trainable:
            for parameter in list(self.b.parameters)[before:]:
                self.b.parameters[parameter] = replace(self.b.parameters[parameter], trainable=False)
        names[name] = result
        return result

    def _plain(self, o: Options, kind: str, sources: list[Tensor], name: str) -> Tensor:
        if kind not in RULES:
            raise UnknownName("layer type", kind, [*RULES, "block"])
        return RULES[kind](self.b, sources, o, name)

    def _block(self, o: Options, path: str, sources: list[Tensor], names: _Names, name: str) -> Tensor:
        if len(sources) != 1:
            raise BadInput(f"it takes one input, 'from' names {len(sources)}")
        rows, repeat = o.tables("layers"), o.count("repeat", 1)
        if not rows:
            o.refuse("layers", "one or more tables", [])
        x = sources[0]
        for turn in range(repeat):
            with self.b.scope(name if repeat == 1 else f"{name}.{turn}"):
                inside = _Names(names)
                inside["input"] = x
                x = self.read(rows, f"{path}.layers", x, inside)
        return x


def _layer_count(rows: object) -> int:
    """How many layers rows come to with their repeats, before any is built; rows that make no sense are one."""
    if not isinstance(rows, list):
        return 1
    total = 0
    for row in rows:
        repeat = row.get("repeat", 1) if isinstance(row, Mapping) else 1
        inner = _layer_count(row["layers"]) if isinstance(row, Mapping) and "layers" in row else 1
        total += inner * (repeat if is_int(repeat) and repeat > 0 else 1)
    return total


def _find_layer(names: _Names, name: str, place: str) -> Tensor:
    try:
        return names[name]
    except KeyError:
        raise PlacedError(place, str(UnknownName("layer above", name, names))) from None
