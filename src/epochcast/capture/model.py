"""What every front end hands on: something that has a forward graph and a training step at any batch size."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe
from epochcast.graph.trace import Trace, trace_from


class Model(Protocol):
    """A model as a forecaster needs it."""

    @property
    def name(self) -> str:
        """What answers call it."""
        ...

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        ...

    def trace(self, recipe: Recipe) -> Trace:
        """One step by a recipe. Asking again at another batch size builds nothing."""
        ...


@dataclass(frozen=True)
class BuiltModel:
    """A model whose forward graph is built by rule; loss, backward and update are derived."""

    name: str
    build: Callable[[int], Graph]
    _traces: dict[Recipe, Trace] = field(default_factory=dict, repr=False, compare=False)

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        return self.build(batch)

    def trace(self, recipe: Recipe) -> Trace:
        """The derived step; the first call for a recipe builds it at two batch sizes, later ones only resize."""
        key = replace(recipe, batch=1, accumulate=1, uneven=0.0)
        if key not in self._traces:
            self._traces[key] = trace_from(self.build, key)
        return replace(self._traces[key], recipe=recipe)
