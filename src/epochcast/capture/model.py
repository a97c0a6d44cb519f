"""What every front end hands on: something that has a forward graph and a training step at any batch size."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from epochcast.graph.op import Graph
from epochcast.graph.recipe import Recipe
from epochcast.graph.repeats import Repeats
from epochcast.graph.trace import Trace, drawn_out, trace_from


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


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model whose forward graph is built by rule; loss, backward and update are derived.

    `shallow` builds the same with fewer of its blocks, where these repeat, and says how to draw them out.
    """

    name: str
    build: Callable[[int], Graph]
    shallow: tuple[Callable[[int], Graph], Repeats] | None = None
    _traces: dict[Recipe, Trace] = field(default_factory=dict, repr=False, compare=False)

    def graph(self, batch: int) -> Graph:
        """The forward pass at a batch size."""
        return self.build(batch)

    def trace(self, recipe: Recipe) -> Trace:
        """The derived step; the first call for a recipe builds it at two batch sizes, later ones only resize."""
        key = replace(recipe, batch=1, accumulate=1, uneven=0.0)
        if key not in self._traces:
            self._traces[key] = self._drawn(key) or trace_from(self.build, key)
        return replace(self._traces[key], recipe=recipe)

    def _drawn(self, recipe: Recipe) -> Trace | None:
        """The step of few blocks, drawn out; None where that cannot be: who freezes by name may mean single blocks."""
        if self.shallow is None or recipe.freeze:
            return None
        build, repeats = self.shallow
        return drawn_out(trace_from(build, recipe), repeats)
