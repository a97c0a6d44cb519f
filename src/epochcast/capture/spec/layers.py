"""The layers form of a spec file: a list of layers, each read from the one above it unless `from` says otherwise.

A `block` holds layers of its own and may be repeated; inside it `input` is the input of the block, and names are
looked up in the block first. Names of layers become names of parameters (`stem.conv.weight`).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from epochcast.capture.model import BuiltModel
from epochcast.capture.spec.options import Options
from epochcast.capture.spec.rules import RULES
from epochcast.errors import BadInput, EpochcastError, UnknownName
from epochcast.graph.build import Builder
from epochcast.graph.op import Graph
from epochcast.graph.tensor import DType, Tensor
from epochcast.graph.training import LOSSES

DTYPES = {dtype.value: dtype for dtype in (DType.FLOAT32, DType.INT64, DType.INT32, DType.BOOL)}
MOST_LAYERS = 100_000


def layered(
    document: Mapping[str, Any], file: str, default_name: str, input_shape: tuple[int, ...] | None
) -> BuiltModel:
    """The model a list of layers describes; it is built once, so that errors are raised now."""
    build = partial(_build, document, file, default_name, input_shape)
    graph = build(2)
    return BuiltModel(graph.name, build)


def _build(
    document: Mapping[str, Any], file: str, default_name: str, input_shape: tuple[int, ...] | None, batch: int
) -> Graph:
    top = Options(document, file)
    b = Builder(top.text("name", default_name), batch)
    for key in ("format", "version"):
        top.any(key, None)
    loss = top.text("loss", "cross_entropy", choices=LOSSES)
    unit, units = top.text("unit", "samples"), top.count("units_per_sample", 1)
    names: dict[str, Tensor] = {}
    for name, shape, dtype in _inputs(top):
        names[name] = b.input(name, input_shape if input_shape is not None and not names else shape, dtype)
    rows = top.tables("layers")
    if not rows:
        raise BadInput(f"{file}: 'layers' is empty")
    last = _Layers(b, file).read(rows, "layers", next(iter(names.values())), names)
    output_names = top.texts("outputs", ())
    top.done()
    outputs = [_find_layer(names, name, f"{file}: 'outputs'") for name in output_names] or [last]
    return b.finish(outputs, loss=loss, unit=unit, units_per_sample=units)


def _inputs(top: Options) -> list[tuple[str, tuple[int, ...], DType]]:
    """`input = [3, 32, 32]`, or a table of inputs with names, shapes and dtypes."""
    if top.has("input") == top.has("inputs"):
        raise BadInput(f"{top.place} must have 'input', one sample's shape, or a list of 'inputs'")
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
        raise BadInput(f"{top.place}: 'inputs' must be one or more tables with different names")
    return inputs


class _Layers:
    """Builds rows of layers in order."""

    def __init__(self, builder: Builder, file: str) -> None:
        self.b = builder
        self.file = file
        self.built = 0

    def read(self, rows: list[Mapping[str, Any]], path: str, x: Tensor, names: dict[str, Tensor]) -> Tensor:
        for index, row in enumerate(rows):
            self.built += 1
            if self.built > MOST_LAYERS:
                raise BadInput(f"{self.file}: more than {MOST_LAYERS} layers; is a 'repeat' too large?")
            x = self._layer(row, f"{path}[{index}]", x, names)
        return x

    def _layer(self, row: Mapping[str, Any], path: str, x: Tensor, names: dict[str, Tensor]) -> Tensor:
        o = Options(row, f"{self.file}: {path}")
        kind = o.text("type")
        name = o.text("name", _free(kind, names))
        o.place += f" {name!r} ({kind})"
        if name in names:
            raise BadInput(f"{o.place}: the name is taken by another layer or input")
        sources = [_find_layer(names, n, f"{o.place}: 'from'") for n in o.texts("from", ())] or [x]
        trainable = o.flag("trainable", True)
        before = set(self.b.parameters)
        try:
            result = (
                self._block(o, path, sources, names, name) if kind == "block" else self._plain(o, kind, sources, name)
            )
        except EpochcastError as error:
            if str(error).startswith(self.file):
                raise
            raise BadInput(f"{o.place}: {error}") from None
        o.done()
        if not trainable:
            for parameter in self.b.parameters.keys() - before:
                self.b.parameters[parameter] = replace(self.b.parameters[parameter], trainable=False)
        names[name] = result
        return result

    def _plain(self, o: Options, kind: str, sources: list[Tensor], name: str) -> Tensor:
        if kind not in RULES:
            raise UnknownName("layer type", kind, [*RULES, "block"])
        return RULES[kind](self.b, sources, o, name)

    def _block(self, o: Options, path: str, sources: list[Tensor], names: dict[str, Tensor], name: str) -> Tensor:
        if len(sources) != 1:
            raise BadInput(f"{o.place} takes one input, 'from' names {len(sources)}")
        rows, repeat = o.tables("layers"), o.count("repeat", 1)
        x = sources[0]
        for turn in range(repeat):
            with self.b.scope(name if repeat == 1 else f"{name}.{turn}"):
                x = self.read(rows, f"{path}.layers", x, _Inside(names, {"input": x}))
        return x


class _Inside(dict[str, Tensor]):
    """Names of a block: its own, then those around it. A block's own layer may take a name used outside."""

    def __init__(self, outside: dict[str, Tensor], own: dict[str, Tensor]) -> None:
        super().__init__(own)
        self.outside = outside

    def __missing__(self, key: str) -> Tensor:
        return self.outside[key]


def _free(kind: str, names: dict[str, Tensor]) -> str:
    """conv, conv1, conv2, …: the first that is not taken."""
    return next(name for name in (kind, *(f"{kind}{i}" for i in range(1, len(names) + 2))) if name not in names)


def _find_layer(names: dict[str, Tensor], name: str, place: str) -> Tensor:
    try:
        return names[name]
    except KeyError:
        raise BadInput(f"{place}: {UnknownName('layer above', name, names)}") from None
