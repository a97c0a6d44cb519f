"""The table of a model's layers: shapes, parameters, activations, flops, receptive field."""

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from epochcast.base.display import Displayed
from epochcast.base.record import Record
from epochcast.describe.capture.model import Model
from epochcast.describe.graph.op import Graph, Op
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.op_registry import opaque_names
from epochcast.describe.graph.receptive_field import receptive_fields
from epochcast.describe.graph.recipe import Recipe
from epochcast.units import show_count


@dataclass(frozen=True, slots=True)
class InspectedLayer(Record):
    """One row: the numbers of one layer for one sample."""

    name: str
    kind: str
    output_shape: tuple[int, ...]
    parameters: int
    activations: int
    forward_flops: int
    elementwise_flops: int
    bytes: int
    receptive_field: tuple[int, ...] | None


@dataclass(frozen=True, repr=False)
class Inspection(Displayed, Record):
    """All rows and the totals, per sample."""

    view: ClassVar[str] = "inspection"

    model: str
    input_shape: tuple[int, ...]
    parameters: int
    trainable_parameters: int
    forward_flops_per_sample: int
    elementwise_flops_per_sample: int
    training_flops_per_sample: int
    activations_per_sample: int
    layers: tuple[InspectedLayer, ...]
    opaque_ops: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        work = show_count(self.forward_flops_per_sample, "FLOP")
        return f"Inspection({self.model}: {len(self.layers)} layers, {self.parameters:,} parameters, {work} forward)"

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The output shape of the last layer."""
        return self.layers[-1].output_shape if self.layers else self.input_shape

    def brief(self) -> "Inspection":
        """Without layers that have neither weights nor matrix work and keep the size: relu, dropout, add.

        Activations are those of the remaining layers, as if the others worked in place.
        """
        sizes = [0, *(layer.activations for layer in self.layers)]
        layers = tuple(
            layer
            for layer, before in zip(self.layers, sizes, strict=False)
            if layer.parameters or layer.forward_flops or layer.activations != before
        )
        return replace(self, layers=layers, activations_per_sample=sum(layer.activations for layer in layers))


def matrix_flops(graph: Graph) -> int:
    """Flops of all convolutions, products and attentions of a forward pass."""
    return sum(op.work.flops for op in graph.ops if op.op_class.is_matrix)


def inspect_graph(model: Model, *, count_bias: bool = True) -> Inspection:
    """The forward ops by layer; `count_bias` false leaves out one-dimensional parameters beside a larger weight."""
    graph = model.graph(1)
    fields = receptive_fields(graph)
    biases = {w.name for op in graph.ops for w in op.weights[1:] if len(w.shape) == 1 and len(op.weights[0].shape) > 1}
    counted = {p.name: p.elements for p in graph.parameters if count_bias or p.name not in biases}
    rows: dict[str, list[Op]] = {}
    for op in graph.ops:
        if not isinstance(op.kind, View):
            rows.setdefault(op.layer, []).append(op)
    counted_weights: set[str] = set()
    layers = []
    for name, ops in rows.items():
        main = max(ops, key=lambda op: (op.work.flops, bool(op.weights)))
        numbers = [(op.op_class, op.work) for op in ops]
        new_weights = {w.name for op in ops for w in op.weights} - counted_weights
        counted_weights |= new_weights
        last = ops[-1]
        layers.append(
            InspectedLayer(
                name,
                main.kind.label,
                last.output.shape[1:],
                sum(counted.get(n, 0) for n in new_weights),
                prod(last.output.shape[1:]),
                sum(w.flops for c, w in numbers if c.is_matrix),
                sum(w.flops for c, w in numbers if not c.is_matrix),
                sum(w.read_bytes + w.written_bytes for _, w in numbers),
                fields[last.name],
            )
        )
    training = model.trace(Recipe(1)).flops
    trainable = {p.name for p in graph.parameters if p.trainable}
    return Inspection(
        model=model.name,
        input_shape=graph.inputs[0].shape[1:],
        layers=tuple(layers),
        parameters=sum(counted.values()),
        trainable_parameters=sum(n for name, n in counted.items() if name in trainable),
        forward_flops_per_sample=sum(layer.forward_flops for layer in layers),
        elementwise_flops_per_sample=sum(layer.elementwise_flops for layer in layers),
        training_flops_per_sample=round(training["matrix"]),
        activations_per_sample=sum(layer.activations for layer in layers),
        opaque_ops=opaque_names(graph.ops),
        notes=graph.notes,
    )
