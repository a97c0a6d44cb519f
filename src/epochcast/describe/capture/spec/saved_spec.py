"""The ops form of a spec file: a captured model, op by op, as a function of the batch.

`graph` is the forward pass as a template whose last op, the frame, holds the inputs, outputs and parameters. `traces`
are the steps that a framework ran (forward, backward, update), one per saved recipe. The step of any other recipe is
derived from the forward pass by rule, and a note says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from epochcast.base.caching import Cache
from epochcast.describe.capture.model import BuiltModel, Model
from epochcast.describe.capture.read_errors import reading
from epochcast.describe.graph.checked_values import (
    built,
    count_of,
    mapping,
    row_of,
    rows_of,
    text_of,
    texts_of,
    value_of,
)
from epochcast.describe.graph.op import Graph, Op, Parameter
from epochcast.describe.graph.op_kinds import View
from epochcast.describe.graph.rebatch import Template
from epochcast.describe.graph.recipe import Recipe
from epochcast.describe.graph.serialization import (
    check_operands,
    template_from_json,
    template_to_json,
    trace_from_json,
    trace_to_json,
)
from epochcast.describe.graph.trace import LARGE_BATCH, SMALL_BATCH, Trace, trace_from
from epochcast.errors import BadInput

_FRAME = View("frame")


@dataclass(frozen=True)
class GraphTemplate:
    """A forward graph at any batch size."""

    first: Graph
    template: Template

    @classmethod
    def of(cls, model: Model) -> "GraphTemplate":
        """From the graphs of a model at two batch sizes."""
        small, large = model.graph(SMALL_BATCH), model.graph(LARGE_BATCH)
        return cls(small, Template.learn(_framed(small), SMALL_BATCH, _framed(large), LARGE_BATCH))

    def at(self, batch: int) -> Graph:
        """The graph at a batch size."""
        if batch < 1:
            raise BadInput(f"batch must be at least 1, got {batch}")
        *ops, frame = self.template.ops(batch)
        return replace(self.first, batch=batch, ops=tuple(ops), inputs=frame.inputs, outputs=frame.outputs)


def _framed(graph: Graph) -> tuple[Op, ...]:
    learnt = tuple(p.tensor for p in graph.parameters)
    return (*graph.ops, Op("frame", _FRAME, graph.inputs, graph.outputs, learnt))


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model out of a file: its forward pass, and the steps that were captured with it by recipe (at batch 1)."""

    forward: GraphTemplate
    captured: Mapping[Recipe, Trace]
    file: str = ""
    _by_rule: Cache[Recipe, Trace] = field(init=False, repr=False, compare=False, default_factory=partial(Cache, 32))

    @property
    def name(self) -> str:
        """The name that answers show."""
        return self.forward.first.name

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        return self.forward.at(batch)

    def trace(self, recipe: Recipe) -> Trace:
        """The captured step of that recipe, or one derived by rule."""
        key = recipe.at(1).eager()
        if key in self.captured:
            return self.captured[key].under(recipe)
        with reading(self.file):
            return self._by_rule.get(key, lambda: self._derived(key)).under(recipe)

    def _derived(self, recipe: Recipe) -> Trace:
        trace = trace_from(self.graph, recipe)
        return replace(trace, notes=(*trace.notes, _derived_note(self.captured))) if self.captured else trace


def _derived_note(captured: Mapping[Recipe, Trace]) -> str:
    steps = "; ".join(f"{r.mode}, {r.optimizer}, {r.precision}" for r in captured)
    return f"backward and update are derived by rule: the file holds the captured step of {steps} only"


def saved_to_json(model: Model, recipe: Recipe | None) -> dict[str, Any]:
    """The document of a model. Steps are saved for captured models only; those of built models follow by rule."""
    forward = model.forward if isinstance(model, SavedModel) else GraphTemplate.of(model)
    captured = dict(model.captured) if isinstance(model, SavedModel) else {}
    if not isinstance(model, BuiltModel) and (not isinstance(model, SavedModel) or (captured and recipe is not None)):
        trace = model.trace(recipe or Recipe(1))
        captured[trace.recipe.at(1)] = trace.rebatch(1)
    graph = forward.first
    return {
        "format": "epochcast-spec",
        "version": 1,
        "name": graph.name,
        "graph": {
            "batch": graph.batch,
            "loss": graph.loss,
            "unit": graph.unit,
            "units_per_sample": graph.units_per_sample,
            "notes": list(graph.notes),
            "parameters": [[p.layer, p.trainable] for p in graph.parameters],
            "template": template_to_json(forward.template),
        },
        "traces": [trace_to_json(trace) for trace in captured.values()],
    }


def saved_from_json(document: Mapping[str, Any], file: str, input_shape: tuple[int, ...] | None) -> SavedModel:
    """The model back; errors name the place in the file."""
    if document.get("version") != 1:
        raise BadInput(f"{file} is a spec of version {document.get('version')!r}; this epochcast reads version 1")
    model = SavedModel(_graph_from(document, file), _traces_from(document, file), file)
    if input_shape is not None:
        for tensor in model.forward.first.inputs[:1]:
            if tensor.shape[1:] != input_shape:
                saved, wanted = ("x".join(map(str, s)) for s in (tensor.shape[1:], input_shape))
                raise BadInput(f"{file} was saved at input {saved}; for {wanted} save the model again at that input")
    return model


def _graph_from(document: Mapping[str, Any], file: str) -> GraphTemplate:
    place = f"{file}: graph"
    about = mapping(value_of(document, "graph", file), place)
    template = template_from_json(value_of(about, "template", place), f"{place}.template")
    for op in template.base[:-1]:
        check_operands(op, f"{place}: {op.name!r}")
    if not template.base or template.base[-1].kind != _FRAME:
        raise BadInput(f"{place}.template: the last op must be the frame (inputs, outputs, parameters)")
    frame = template.base[-1]
    rows = rows_of(about, "parameters", place)
    if len(rows) != len(frame.weights):
        raise BadInput(f"{place}.parameters has {len(rows)} rows for the frame's {len(frame.weights)} weights")
    parameters = []
    for i, (row, tensor) in enumerate(zip(rows, frame.weights, strict=True)):
        layer, trainable = row_of(row, f"{place}.parameters[{i}]", 2, [])
        if not isinstance(layer, str) or not isinstance(trainable, bool):
            raise BadInput(f"{place}.parameters[{i}] must be [layer, trainable], got {row!r}")
        parameters.append(Parameter(tensor, trainable, layer))
    parts = (
        text_of(document, "name", file),
        count_of(about, "batch", place),
        frame.inputs,
        template.base[:-1],
        tuple(parameters),
        frame.outputs,
        text_of(about, "loss", place),
        text_of(about, "unit", place),
        count_of(about, "units_per_sample", place),
        texts_of(about, "notes", place),
    )
    return GraphTemplate(built(place, lambda: Graph(*parts)), template)


def _traces_from(document: Mapping[str, Any], file: str) -> dict[Recipe, Trace]:
    rows = rows_of(document, "traces", file)
    traces = [trace_from_json(row, f"{file}: traces[{i}]") for i, row in enumerate(rows)]
    for trace in traces:
        for op in trace.template.base:
            check_operands(op, f"{file}: {op.name!r}")
    return {trace.recipe.at(1): trace.rebatch(1) for trace in traces}
