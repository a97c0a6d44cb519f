"""What a framework makes of a step: its kernels by layout and age, and Keras' own way of running small networks."""

from dataclasses import replace

from epochcast.describe.graph.trace import Trace
from epochcast.hardware.device import Device
from epochcast.interval import Interval, sum_independent
from epochcast.predict.cost.cost_model import CostModel
from epochcast.predict.cost.hosts import HOOKS_HIGH, HOOKS_LOW
from epochcast.predict.cost.software_setting import TODAY, SoftwareSetting, turns_channels_last
from epochcast.predict.forecast.job import AUTO, Job
from epochcast.predict.forecast.keras_stack_step import keras_step
from epochcast.predict.forecast.placement import Placement
from epochcast.predict.forecast.step import HOST, StepForecast, step_forecast

# Since when TensorFlow runs a step as Keras does.
KERAS_VERSION = (2, 0)


def framework_step(
    job: Job, trace: Trace, placement: Placement, model: CostModel, *, with_layers: bool = True
) -> StepForecast:
    """The step as the job's framework runs it; `with_layers`: Keras' may be told from single layers."""
    version = job.framework_numbers
    is_keras = job.framework == "tensorflow" and (version is None or version >= KERAS_VERSION)
    as_measured = placement.host is None and not trace.recipe.is_compiled  # the layers' host is their own
    by_layers = keras_step(trace, placement) if with_layers and is_keras and as_measured else None
    step = by_layers or step_forecast(trace, placement, model, setting=setting_of(job, placement.device))
    return with_hooks(step, trace, job.hook_seconds)


def with_hooks(step: StepForecast, trace: Trace, seconds_per_parameter: float) -> StepForecast:
    """The step with what hooks add to every backward pass, for every trained tensor; the device waits for them."""
    tensors = sum(parameter.trainable for parameter in trace.parameters)
    if not seconds_per_parameter or not tensors or trace.recipe.mode == "forward":
        return step
    hooked = seconds_per_parameter * tensors * trace.recipe.accumulate
    added = Interval(HOOKS_LOW * hooked, hooked, HOOKS_HIGH * hooked)
    parts = replace(step.parts, host=step.parts.host + hooked)
    host = ((added.high - added.low) / 2 / (step.seconds.mid + hooked)) ** 2
    variances = {**step.variances, HOST: step.variances.get(HOST, 0.0) + host}
    return replace(step, seconds=sum_independent((step.seconds, added)), parts=parts, variances=variances)


def setting_of(job: Job, device: Device) -> SoftwareSetting:
    """Memory layout, framework and its age, as a cost model takes them; the latest framework unless the job says."""
    layout = job.channels_last
    if layout is None:
        layout = job.precision != AUTO and turns_channels_last(job.framework, job.precision, device)
    version = job.framework_numbers
    age = TODAY.framework_age if version is None else framework_age(version)
    return replace(TODAY, channels_last=layout, framework=job.framework, framework_age=age)


def framework_age(version: tuple[int, int]) -> float:
    """0 for PyTorch 1.0 and before … 1 for 2.9 and after."""
    major, minor = version
    if major != 1:
        return float(major > 2) if major != 2 else min(1.0, (13 + minor) / 22)
    steps = minor
    return min(1.0, max(0.0, steps / 22))
