"""Ops, graphs, templates and traces as plain JSON values and back, exactly: `x_from_json(x_to_json(x)) == x`.

Every document holds two tables, so that what repeats is written once: `tensors`, rows of [name, shape, dtype, growth,
relation], and `kinds`, rows of [label, attributes that are not the default]. An op is a row [name, kind, inputs,
outputs, weights, phase, layer, gradient, tf32]; its operands are indices into the table of tensors. Defaults at the end
of a row are left out. The growth of a tensor is one [a, b] per dimension: a + b·batch; its relation has the fields of
`Relation` that are not empty. Errors name the place of the bad value.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from epochcast.base.bounds import check_ops
from epochcast.base.garbage import without_collecting
from epochcast.describe.graph.checked_values import (
    built,
    checked_like,
    count_of,
    enum_member,
    is_int,
    is_pair,
    mapping,
    row_of,
    rows_of,
    text_of,
    texts_of,
    value_of,
)
from epochcast.describe.graph.op import Gradient, Graph, Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Kind
from epochcast.describe.graph.op_registry import kind_class
from epochcast.describe.graph.rebatch import Growth, Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.tensor import UNRELATED, DType, Relation, Tensor, bounded
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput

Json = dict[str, Any]
# A training step has at most so many ops for each of its forward pass.
STEP_OPS = 8


def ops_to_json(ops: Iterable[Op]) -> Json:
    """Ops with their tables of tensors and kinds."""
    tables = _Tables()
    rows = [tables.op(op, None) for op in ops]
    return {**tables.json(), "ops": rows}


def ops_from_json(json: object, place: str = "ops document") -> tuple[Op, ...]:
    """The ops back."""
    reader = _DocumentReader(mapping(json, place), place)
    return tuple(op for op, _ in reader.ops())


def graph_to_json(graph: Graph) -> Json:
    """A forward graph at its batch size."""
    tables = _Tables()
    rows = [tables.op(op, None) for op in graph.ops]
    frame = {
        "inputs": tables.tensors(graph.inputs),
        "outputs": tables.tensors(graph.outputs),
        "parameters": tables.parameters(graph.parameters),
    }
    about = {
        "name": graph.name,
        "batch": graph.batch,
        "loss": graph.loss,
        "unit": graph.unit,
        "units_per_sample": graph.units_per_sample,
        "notes": list(graph.notes),
    }
    return {**about, **tables.json(), **frame, "ops": rows}


def graph_from_json(json: object, place: str = "graph") -> Graph:
    """The graph back; it checks again that nothing is read before it is made."""
    document = mapping(json, place)
    reader = _DocumentReader(document, place)
    parts = (
        text_of(document, "name", place),
        count_of(document, "batch", place),
        reader.tensors("inputs"),
        tuple(op for op, _ in reader.ops()),
        reader.parameters(),
        reader.tensors("outputs"),
        text_of(document, "loss", place),
        text_of(document, "unit", place),
        count_of(document, "units_per_sample", place),
        texts_of(document, "notes", place),
    )
    return built(place, lambda: Graph(*parts))


def template_to_json(template: Template) -> Json:
    """The ops of a template; a tensor that grows has its growth in the table."""
    tables = _Tables()
    rows = [tables.op(op, growth) for op, growth in zip(template.base, template.growths, strict=True)]
    document: Json = {**tables.json(), "ops": rows}
    if still := _still(template):
        document["still"] = still
    return document


def template_from_json(json: object, place: str = "template") -> Template:
    """The template back."""
    return _template(_DocumentReader(mapping(json, place), place))


def trace_to_json(trace: Trace) -> Json:
    """A training step: its recipe, its template, its parameters and the inputs of one sample."""
    tables = _Tables()
    rows = [tables.op(op, growth) for op, growth in zip(trace.template.base, trace.template.growths, strict=True)]
    frame = {"inputs": tables.tensors(trace.inputs), "parameters": tables.parameters(trace.parameters)}
    about = {
        "name": trace.name,
        "recipe": recipe_to_json(trace.recipe),
        "unit": trace.unit,
        "units_per_sample": trace.units_per_sample,
        "notes": list(trace.notes),
        **({"contents": trace.contents} if trace.contents else {}),
    }
    document: Json = {**about, **tables.json(), **frame, "ops": rows}
    if still := _still(trace.template):
        document["still"] = still
    return document


def trace_from_json(json: object, place: str = "trace") -> Trace:
    """The trace back."""
    document = mapping(json, place)
    reader = _DocumentReader(document, place)
    return Trace(
        text_of(document, "name", place),
        recipe_from_json(value_of(document, "recipe", place), f"{place}.recipe"),
        _template(reader),
        reader.parameters(),
        reader.tensors("inputs"),
        text_of(document, "unit", place),
        count_of(document, "units_per_sample", place),
        texts_of(document, "notes", place),
        text_of(document, "contents", place) if "contents" in document else "",
    )


def recipe_to_json(recipe: Recipe) -> Json:
    """The batch and every field that is not the default."""
    return {"batch": recipe.batch} | _attributes(recipe)


def recipe_from_json(json: object, place: str = "recipe") -> Recipe:
    """The recipe back."""
    document = mapping(json, place)
    batch = count_of(document, "batch", place)
    attributes = {key: value for key, value in document.items() if key != "batch"}
    way = attributes.pop("checkpointing", False)
    if not isinstance(way, bool | str):
        raise BadInput(f"{place}.checkpointing must be true, false or a way of checkpointing, got {way!r}")
    options = _read_attributes(Recipe, attributes, place)
    return built(place, lambda: Recipe(batch, checkpointing=way, **options))


# ---- writing ------------------------------------------------------------------------------------


class _Tables:
    """Values that repeat, each written once, in the order of first use."""

    def __init__(self) -> None:
        self._tensors: dict[tuple[Tensor, Growth], int] = {}
        self._kinds: dict[Kind, int] = {}

    def tensors(self, tensors: Sequence[Tensor], growths: Sequence[Growth] | None = None) -> list[int]:
        pairs = zip(tensors, growths if growths is not None else [None] * len(tensors), strict=True)
        return [self._tensors.setdefault(pair, len(self._tensors)) for pair in pairs]

    def parameters(self, parameters: Sequence[Parameter]) -> list[list[Any]]:
        return [_trimmed([*self.tensors([p.tensor]), p.layer, p.trainable], ["", True]) for p in parameters]

    def op(self, op: Op, growth: tuple[tuple[Growth, ...], ...] | None) -> list[Any]:
        grown = growth or (None, None, None)
        sides = [self.tensors(side, g) for side, g in zip((op.inputs, op.outputs, op.weights), grown, strict=True)]
        kind = self._kinds.setdefault(op.kind, len(self._kinds))
        row = [op.name, kind, *sides, op.phase.value, op.layer, op.gradient.value, op.tf32]
        return _trimmed(row, [[], Phase.FORWARD.value, "", Gradient.NONE.value, False])

    def json(self) -> Json:
        return {
            "tensors": [
                _trimmed(
                    [t.name, list(t.shape), t.dtype.value, _growth_json(g), _relation_json(t.relation)],
                    [DType.FLOAT32.value, None, {}],
                )
                for t, g in self._tensors
            ],
            "kinds": [_trimmed([kind.label, _attributes(kind)], [{}]) for kind in self._kinds],
        }


def _trimmed(row: list[Any], defaults: list[Any]) -> list[Any]:
    """The row without the defaults at its end; `defaults` are those of its last entries."""
    while defaults and row[-1] == defaults[-1]:
        row, defaults = row[:-1], defaults[:-1]
    return row


def _growth_json(growth: Growth) -> list[list[int]] | None:
    return None if growth is None else [list(pair) for pair in growth]


def _relation_json(relation: Relation) -> Json:
    return {field: value for field, value in relation._asdict().items() if value}


def _attributes(value: Any) -> Json:
    """Fields that have a default and differ from it; tuples become lists."""
    values = {f.name: (getattr(value, f.name), f.default) for f in fields(value) if f.default is not MISSING}
    changed = {name: v for name, (v, default) in values.items() if v != default}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in changed.items()}


def _still(template: Template) -> list[int]:
    """Indices of ops that have growths, all of them None: kept so that a template read back is equal."""
    return [
        i
        for i, growth in enumerate(template.growths)
        if growth is not None and all(g is None for side in growth for g in side)
    ]


# ---- reading ------------------------------------------------------------------------------------

Sides = tuple[tuple[Growth, ...], tuple[Growth, ...], tuple[Growth, ...]]
Sized = tuple[tuple[int, ...], DType, Growth]


class _DocumentReader:
    """Reads the tables of a document, and the rows that refer to them."""

    def __init__(self, document: Mapping[str, Any], place: str) -> None:
        self.document = document
        self.place = place
        shapes: dict[Hashable, Sized] = {}
        self._tensors = [
            _read_tensor(row, f"{place}.tensors[{i}]", shapes)
            for i, row in enumerate(rows_of(document, "tensors", place))
        ]
        self._kinds = [
            _read_kind(row, f"{place}.kinds[{i}]") for i, row in enumerate(rows_of(document, "kinds", place))
        ]

    def tensors(self, key: str) -> tuple[Tensor, ...]:
        pairs = self._pick(rows_of(self.document, key, self.place), f"{self.place}.{key}")
        return tuple(tensor for tensor, _ in pairs)

    def parameters(self) -> tuple[Parameter, ...]:
        parameters = []
        for i, row in enumerate(rows_of(self.document, "parameters", self.place)):
            place = f"{self.place}.parameters[{i}]"
            index, layer, trainable = row_of(row, place, 1, ["", True])
            if not isinstance(layer, str) or not isinstance(trainable, bool):
                raise BadInput(f"{place} must be [tensor, layer, trainable], got {row!r}")
            parameters.append(Parameter(self._pick([index], place)[0][0], trainable, layer))
        return tuple(parameters)

    @without_collecting()
    def ops(self) -> list[tuple[Op, Sides]]:
        rows = rows_of(self.document, "ops", self.place)
        check_ops(len(rows) // STEP_OPS, self.place)
        return [self._op(row, f"{self.place}.ops[{i}]") for i, row in enumerate(rows)]

    def _op(self, row: object, place: str) -> tuple[Op, Sides]:
        name, kind, inputs, outputs, weights, phase, layer, gradient, tf32 = row_of(
            row, place, 4, [[], Phase.FORWARD.value, "", Gradient.NONE.value, False]
        )
        if not isinstance(name, str) or not isinstance(layer, str) or not isinstance(tf32, bool):
            raise BadInput(f"{place}: name and layer must be text and tf32 true or false, got {row!r}")
        if not is_int(kind) or not 0 <= kind < len(self._kinds):
            raise BadInput(f"{place}: no kind {kind!r}; the table has {len(self._kinds)}")
        sides = [
            self._pick(side, f"{place}.{name}")
            for side, name in ((inputs, "inputs"), (outputs, "outputs"), (weights, "weights"))
        ]
        tensors = [tuple([t for t, _ in side]) for side in sides]
        growths = [tuple([g for _, g in side]) for side in sides]
        op = Op(
            name, self._kinds[kind], tensors[0], tensors[1], tensors[2], enum_member(Phase, phase, f"{place}.phase"),
            layer, enum_member(Gradient, gradient, f"{place}.gradient"), tf32,
        )  # fmt: skip
        return op, (growths[0], growths[1], growths[2])

    def _pick(self, indices: object, place: str) -> list[tuple[Tensor, Growth]]:
        if not isinstance(indices, list):
            raise BadInput(f"{place} must be a list of indices into the table of tensors, got {indices!r}")
        table = self._tensors
        for index in indices:
            if type(index) is not int or not 0 <= index < len(table):
                raise BadInput(f"{place}: no tensor {index!r}; the table has {len(table)}")
        return [table[index] for index in indices]


def check_operands(op: Op, place: str) -> None:
    """Refuse an op of a user's file whose work cannot be counted: its kind has other operands."""
    try:
        op.kind.check(op.weights)
        tuple(map(float, op.work))
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from None
    except (IndexError, ValueError, ZeroDivisionError, OverflowError):
        raise BadInput(f"{place}: a {op.kind.label} does not take these operands") from None


def _template(reader: _DocumentReader) -> Template:
    pairs = reader.ops()
    places = rows_of(reader.document, "still", reader.place) if "still" in reader.document else []
    if not all(is_int(place) for place in places):
        raise BadInput(f"{reader.place}.still must be a list of whole numbers, got {places!r}")
    still = frozenset(places)
    growths = tuple(
        sides if i in still or any(g is not None for side in sides for g in side) else None
        for i, (_, sides) in enumerate(pairs)
    )
    return Template(tuple(op for op, _ in pairs), growths)


def _read_tensor(row: object, place: str, shapes: dict[Hashable, Sized]) -> tuple[Tensor, Growth]:
    name, shape, dtype, growth, relation = row_of(row, place, 2, [DType.FLOAT32.value, None, {}])
    if not isinstance(name, str) or not isinstance(shape, list):
        raise BadInput(f"{place} must begin with a name and a shape, got {row!r}")
    related = _read_relation(relation, f"{place}.relation") if relation != {} else UNRELATED
    key = _key_of(shape, dtype, growth)  # few shapes repeat in thousands of tensors
    sized = shapes.get(key)
    if sized is None:
        sized = _read_shape(row, place)
        if key is not None:
            shapes[key] = sized
    return Tensor(sized[0], sized[1], name, related), sized[2]


def _key_of(shape: list[Any], dtype: object, growth: object) -> Hashable:
    """A shape as a key; None where something in it is no number, and an error."""
    try:
        grown = None if growth is None else tuple([tuple(pair) for pair in growth])  # type: ignore[attr-defined]
        key = tuple(shape), dtype, grown
        hash(key)
    except TypeError:
        return None
    return key


def _read_shape(row: object, place: str) -> Sized:
    name, shape, dtype, growth, _ = row_of(row, place, 2, [DType.FLOAT32.value, None, {}])
    if not all(is_int(n) and n >= 0 for n in shape):
        raise BadInput(f"{place} must begin with a name and a shape, got {row!r}")
    tensor = bounded(Tensor(tuple(shape), enum_member(DType, dtype, f"{place}.dtype"), name))
    if growth is None:
        return tensor.shape, tensor.dtype, None
    if not isinstance(growth, list) or len(growth) != len(shape) or not all(is_pair(pair) for pair in growth):
        raise BadInput(f"{place}: the growth must be one [a, b] for each of {len(shape)} dimensions, got {growth!r}")
    if any(b < 0 or a + b < 0 for a, b in growth):
        raise BadInput(f"{place}: a dimension of {growth!r} is negative at batch 1 or shrinks with the batch")
    bounded(tensor.sized(tuple(max(0, a) + b for a, b in growth)))
    return tensor.shape, tensor.dtype, tuple((a, b) for a, b in growth)


def _read_relation(json: object, place: str) -> Relation:
    row = mapping(json, place)
    for field, value in row.items():
        if field not in Relation._fields:
            raise BadInput(f"{place} has no field {field!r}; known: {', '.join(Relation._fields)}")
        checked_like(getattr(UNRELATED, field), value, f"{place}.{field}")
    return Relation(**row)


def _read_kind(row: object, place: str) -> Kind:
    label, attributes = row_of(row, place, 1, [{}])
    if not isinstance(label, str):
        raise BadInput(f"{place}: the label of an operator must be text, got {label!r}")
    kind = built(place, lambda: kind_class(label))
    options = _read_attributes(kind, mapping(attributes, place), f"{place} ({label})")
    return built(place, lambda: kind(**options))


def _read_attributes(kind: type[Any], row: Mapping[str, Any], place: str) -> Json:
    fields_by_name: dict[str, Field[Any]] = {f.name: f for f in fields(kind) if f.default is not MISSING}
    attributes = {}
    for name, value in row.items():
        if name not in fields_by_name:
            raise BadInput(f"{place} has no attribute {name!r}; known: {', '.join(sorted(fields_by_name)) or 'none'}")
        attributes[name] = checked_like(fields_by_name[name].default, value, f"{place}.{name}")
    return attributes
