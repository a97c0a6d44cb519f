"""A step of a plain network as Keras on TensorFlow 2 runs it, from single layers: see `layered_step`.

    step     = kernels of the layers + pools + host(ops, variables, optimizer)
    mirrored = step of one replica + α + gradient bytes / bandwidth

Answers for networks of convolutions, dense layers and pools in fp32 on devices whose layers were timed; for everything
else there is no answer, and the caller forecasts as ever. The interval is that of its parts: host and exchange are as
wide as the source report's steps need, network left out of the fit (`studies/correction_factor`), 90 %; kernels
as forecasts of layers larger than those they were fitted on.
"""

import numpy as np

from epochcast.describe.graph.precision import SINGLE, SINGLE_STRICT
from epochcast.describe.graph.trace import Trace
from epochcast.errors import BadInput
from epochcast.interval import Interval
from epochcast.predict.comm.stragglers import TENSORFLOW
from epochcast.predict.cost.cost_model import Costs
from epochcast.predict.cost.layers_model import layers_model
from epochcast.predict.cost.roofline import Analytic
from epochcast.predict.cost.software_setting import TODAY
from epochcast.predict.cost.stacks import find_stack
from epochcast.predict.forecast.exchange import gradients
from epochcast.predict.forecast.layered_step import layered_step
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import StepForecast
from epochcast.predict.forecast.step_parts import BACKWARD, FORWARD, UPDATE, StepParts

NAME = "single layers"
STACK = "tensorflow2_p100_report"
# 5 % and 95 % quantiles of measured over forecast, network left out: 39 steps on one GPU, 66 mirrored. Kernels hardly
# matter in these.
SPREAD = (0.92, 1.08)
# Layers with more flops than any fitted on, P100. Below, what steps of VGG-16 and sums of six layers leave; above, what
# the few single layers with channels in multiples of 32 fall short of `predict.cost.winograd`.
KERNEL_SPREAD = (0.8, 1.22)


def keras_step(trace: Trace, placement: Placement) -> StepForecast | None:
    """The step, or None where single layers cannot tell it."""
    stack = find_stack(STACK)
    recipe = trace.recipe
    mirrored = placement.gpus > 1
    if (
        recipe.precision not in (SINGLE, SINGLE_STRICT)
        or recipe.mode != "training"
        or recipe.optimizer not in stack.variable_seconds
    ):
        return None
    strategy = placement.strategy
    if mirrored and (strategy.runner != TENSORFLOW or strategy.algorithm != "nccl" or placement.nodes > 1):
        return None
    if layers_model().setup("conv2d", placement.device, stack.layers) is None:
        return None
    try:
        step = layered_step(trace, placement.device, stack)
    except BadInput:
        return None
    costs = _shared_out(trace, placement, float(step.kernel_seconds.sum()) + step.pool_seconds)
    comm = stack.mirrored_extra_seconds(gradients(trace).total_bytes) if mirrored else 0.0
    parts = _parts(trace, costs, step.host_seconds, comm, recipe.accumulate)
    kernels = parts.forward + parts.backward + parts.update
    low, high = (
        own * kernels + others * (parts.total_seconds - kernels)
        for own, others in zip(KERNEL_SPREAD, SPREAD, strict=True)
    )
    forward = parts.forward / recipe.accumulate + stack.run_seconds + stack.op_seconds * len(trace.layers) / 3
    return StepForecast(Interval(low, parts.total_seconds, high), parts, forward, {NAME: 1.0}, costs)


def _shared_out(trace: Trace, placement: Placement, kernel_seconds: float) -> Costs:
    """The kernels' seconds over the ops, in the proportions of the formula."""
    formula = Analytic().costs(trace.columns, placement.device, TODAY)
    mid = formula.mid * (kernel_seconds / float(formula.mid.sum()))
    low, high = (mid * factor for factor in KERNEL_SPREAD)
    return Costs.by(NAME, low, mid, high)


def _parts(trace: Trace, costs: Costs, host_seconds: float, comm_seconds: float, accumulate: int) -> StepParts:
    phase = trace.columns.phase
    forward, backward, update = (float(np.sum(costs.mid[phase == p])) for p in (FORWARD, BACKWARD, UPDATE))
    return StepParts(accumulate * forward, accumulate * backward, update, comm_seconds, 0.0, accumulate * host_seconds)
