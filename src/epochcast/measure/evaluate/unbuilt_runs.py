"""Runs whose network cannot be built: only its step on one GPU and its number of parameters are known.

That is enough for what several GPUs add. Gradients are assumed to be ready evenly over the backward pass, which is two
thirds of a pass (one product forward, two backward), in float32; the update is assumed to take no time.
"""

from math import ceil

from epochcast.errors import BadInput
from epochcast.measure.tables.run_placement import run_placement
from epochcast.measure.tables.run_table import MeasuredRun
from epochcast.predict.comm.stragglers import Batch
from epochcast.predict.forecast.strategies.data_parallel import DataParallel

FORWARD_FRACTION = 1 / 3
GRADIENT_BYTES = 4


def bare_ready(parameters: float, pass_seconds: float, strategy: DataParallel) -> list[tuple[float, float]]:
    """(bytes, seconds at which they are ready) of the gradient buckets of a pass."""
    total_bytes = GRADIENT_BYTES * parameters
    count = ceil(total_bytes / strategy.buckets.size_bytes) if strategy.buckets else 1
    backward_seconds = (1 - FORWARD_FRACTION) * pass_seconds
    before_seconds = pass_seconds - backward_seconds
    return [(total_bytes / count, before_seconds + backward_seconds * (i + 1) / count) for i in range(count)]


def bare_batch(run: MeasuredRun) -> Batch:
    """How much the batches of a run differ, as far as the table says."""
    return Batch(spread_fraction=run.recipe.uneven)


def bare_added_seconds(run: MeasuredRun, pass_seconds: float) -> float:
    """Seconds that several GPUs add to a step of such passes."""
    placement = run_placement(run)
    strategy = placement.strategy
    if run.parameters is None:
        raise BadInput(f"{run.model}: neither layers nor a number of parameters to scale it by")
    if not isinstance(strategy, DataParallel):
        raise BadInput(f"{run.model}: {strategy.name} cannot be forecast without the network's layers")
    return strategy.exchange_ready(
        bare_ready(run.parameters, pass_seconds, strategy),
        pass_seconds,
        placement.group,
        placement.device,
        accumulate=run.recipe.accumulate,
        batch=bare_batch(run),
    ).seconds
