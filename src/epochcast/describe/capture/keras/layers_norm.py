"""Normalisation layers. Moving statistics are state, not parameters."""

from math import prod

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasTensor, plain
from epochcast.describe.capture.keras.layers_core import Rule
from epochcast.describe.graph.op_kinds import Norm
from epochcast.describe.graph.tensor import Tensor


def _affine(call: KerasCall, features: int, scale: str = "gamma", shift: str = "beta") -> list[Tensor]:
    weights = [call.weight(scale, (features,))] if call.flag("scale", True) else []
    return [*weights, call.weight(shift, (features,))] if call.flag("center", True) else weights


def _axis(call: KerasCall, default: int = -1) -> int:
    option = call.option("axis", default)
    axis = option[0] if isinstance(option, list | tuple) else option
    return int(axis) % len(call.x.shape)


def by_channel(style: str) -> Rule:
    """Batch and group normalisation: a scale and a shift per channel of `axis`."""

    def rule(call: KerasCall) -> KerasTensor:
        axis = _axis(call)
        weights = _affine(call, call.x.shape[axis])
        if axis == len(call.x.shape) - 1 and len(call.x.shape) > 2:
            x = call.x.image(channels_first=False)
            y = call.op(Norm(style), [x], [x.shape], weights)[0]
            return KerasTensor(y, call.x.shape, True)
        x = call.x.plain
        return plain(call.op(Norm(style), [x], [x.shape], weights)[0])

    return rule


def layer(call: KerasCall) -> KerasTensor:
    """Over one axis or several, by default the last; `rms_scaling` has no shift."""
    x, axis = call.x.plain, call.option("axis", -1)
    axes = axis if isinstance(axis, list | tuple) else [axis]
    features = prod(x.shape[int(a)] for a in axes)
    is_rms = call.flag("rms_scaling", False)
    weights = [call.weight("gamma", (features,))] if is_rms else _affine(call, features)
    return plain(call.op(Norm("rms" if is_rms else "layer"), [x], [x.shape], weights)[0])


def rms(call: KerasCall) -> KerasTensor:
    """A scale over the last axis."""
    x = call.x.plain
    weights = [call.weight("scale", (x.shape[_axis(call)],))]
    return plain(call.op(Norm("rms"), [x], [x.shape], weights)[0])


def unit(call: KerasCall) -> KerasTensor:
    """To length one; learns nothing."""
    x = call.x.plain
    return plain(call.op(Norm("layer"), [x], [x.shape])[0])
