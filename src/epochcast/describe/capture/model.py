"""What every front end returns: a model with a forward graph and a training step at any batch size."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from epochcast.base.caching import Cache
from epochcast.describe.capture.read_errors import reading
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.quantised_base import NOT_QUANTISED
from epochcast.describe.graph.recipe import OFFLOADS, Recipe
from epochcast.describe.graph.trace import BatchPair, Trace

COMPILED_NOTE = (
    "the module is compiled (torch.compile), and is forecast as it runs uncompiled: give `compile`, like inductor"
)
"""Of a model that was given compiled; it is captured without its compiler."""


class Model(Protocol):
    """A model as a forecaster needs it."""

    @property
    def name(self) -> str:
        """The name that answers show."""
        ...

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        ...

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe. Another batch size of the same recipe builds nothing."""
        ...


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model whose forward graph is built by a function of the batch; loss, backward and update are derived."""

    name: str
    build: Callable[[int], Graph]
    file: str = ""
    """The file it was read from, which errors name; empty where it was not."""
    host_class: str | None = None
    """The kind of host that launches its kernels where nobody named one; None: any."""
    _graphs: Cache[int, Graph] = field(init=False, repr=False, compare=False, default_factory=partial(Cache, 1))
    _traces: Cache[Recipe, Trace] = field(init=False, repr=False, compare=False, default_factory=partial(Cache, 32))
    _pairs: Cache[Recipe, BatchPair] = field(init=False, repr=False, compare=False, default_factory=partial(Cache, 1))

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size; the last one is cached."""
        with self._named():
            return self._graphs.get(batch, lambda: self.build(batch))

    def trace(self, recipe: Recipe) -> Trace:
        """The derived step; the first call for a recipe builds it at two batch sizes, later ones only resize."""
        key = replace(recipe.eager(), batch=1, accumulate=1, uneven=0.0, sequence_parallel=False, offload=OFFLOADS[0])
        with self._named():
            return self._traces.get(key, lambda: self._pair(key).trace(key)).under(recipe)

    def _named(self) -> AbstractContextManager[None]:
        return reading(self.file) if self.file else nullcontext()

    def _pair(self, recipe: Recipe) -> BatchPair:
        """The last pair is cached: where a step does not fit, other precisions and checkpointing are tried next."""
        key = replace(recipe, precision="fp32", channels_last=False, checkpointing=False, quantize=NOT_QUANTISED)
        return self._pairs.get(key, lambda: BatchPair.at(self.build, key))


class Renamed:
    """A model under the name that was asked for, with what should be known of it."""

    def __init__(self, name: str, model: Model, notes: tuple[str, ...] = ()) -> None:
        self.name = name
        self._model = model
        self._notes = notes
        self._traces: Cache[Recipe, Trace] = Cache(32)

    @property
    def host_class(self) -> str | None:
        """That of the model, whatever it is called."""
        return getattr(self._model, "host_class", None)

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        graph = self._model.graph(batch)
        return replace(graph, name=self.name, notes=(*graph.notes, *self._notes))

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe."""
        return self._traces.get(recipe, lambda: self._renamed(self._model.trace(recipe)))

    def _renamed(self, trace: Trace) -> Trace:
        return replace(trace, name=self.name, notes=(*trace.notes, *self._notes))
