"""One rank's step under a product of strategies: split by `tensor`, cut by `context`, experts spread by `experts`."""

from dataclasses import replace

from epochcast.forecasting.strategies.context import cut_sequences
from epochcast.forecasting.strategies.degrees import Layout
from epochcast.forecasting.strategies.experts import has_experts, spread
from epochcast.forecasting.strategies.tensor import Rank, rank_of
from epochcast.graph.trace import Trace


def rank_for(trace: Trace, layout: Layout) -> Rank:
    """The step of one rank of a stage, all stages being one; kept on the template."""
    key = "rank", layout.tensor, layout.context, layout.expert
    rank: Rank = trace.template.derived.get(key, lambda: _rank(trace, layout))
    return replace(rank, trace=replace(rank.trace, recipe=trace.recipe))


def _rank(trace: Trace, layout: Layout) -> Rank:
    rank = rank_of(trace, layout.tensor)
    if layout.context > 1:
        cut, shifts = cut_sequences(rank.trace, layout.context)
        sums = tuple((after, before, size_bytes / layout.context) for after, before, size_bytes in rank.sums)
        rank = replace(rank, trace=cut, sums=sums, shifts=shifts)
    if layout.expert > 1 or (layout.tensor > 1 and has_experts(trace)):
        rank = spread(rank, layout.expert, layout.tensor)
    return rank
