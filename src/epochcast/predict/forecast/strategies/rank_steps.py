"""One rank's step under a product of strategies: split by `tensor` (and `sequence`), cut by `context`, with experts
spread by `experts`.
"""

from dataclasses import replace

import numpy as np

from epochcast.describe.graph.trace import Trace
from epochcast.predict.forecast.step_parts import UPDATE
from epochcast.predict.forecast.strategies.context_parallel import cut_sequences
from epochcast.predict.forecast.strategies.degrees import Layout
from epochcast.predict.forecast.strategies.expert_parallel import has_experts, spread
from epochcast.predict.forecast.strategies.sequence_parallel import scattered_rank
from epochcast.predict.forecast.strategies.tensor_parallel import Rank, rank_of


def rank_for(trace: Trace, layout: Layout) -> Rank:
    """The step of one rank of a stage, all stages being one; kept on the template."""
    key = "rank", layout.tensor, layout.context, layout.expert, trace.recipe.sequence_parallel
    rank: Rank = trace.template.derived.get(key, lambda: _rank(trace, layout))
    return replace(rank, trace=replace(rank.trace, recipe=trace.recipe))


def repeated_layers(trace: Trace, tensor: int) -> tuple[float, tuple[str, ...]]:
    """Which part of the products of forward and backward tensor parallel ranks each do as a whole; in which layers."""
    if tensor == 1:
        return 0.0, ()
    whole, part = trace.columns, rank_for(trace, Layout(tensor=tensor)).trace.columns
    flops = np.where(whole.is_matrix & ~trace.in_phase(UPDATE), whole.flops, 0.0)
    repeated = np.flatnonzero((flops > 0) & (whole.flops == part.flops))
    total = float(flops.sum())
    layers = dict.fromkeys(trace.layers[place] for place in repeated.tolist())
    return (float(flops[repeated].sum()) / total if total else 0.0), tuple(layers)


def _rank(trace: Trace, layout: Layout) -> Rank:
    is_scattered = trace.recipe.sequence_parallel and layout.tensor > 1
    rank = scattered_rank(trace, layout.tensor) if is_scattered else rank_of(trace, layout.tensor)
    if layout.context > 1:
        cut, shifts = cut_sequences(rank.trace, layout.context, layout.tensor if is_scattered else 1)
        sums, gathers, scatters = (
            tuple((after, before, size_bytes / layout.context) for after, before, size_bytes in messages)
            for messages in (rank.sums, rank.gathers, rank.scatters)
        )
        rank = replace(rank, trace=cut, sums=sums, gathers=gathers, scatters=scatters, shifts=shifts)
    if layout.expert > 1 or (layout.tensor > 1 and has_experts(trace)):
        rank = spread(rank, layout.expert, 1 if is_scattered else layout.tensor)
    return rank
