"""Recurrent layers: LSTM, GRU, SimpleRNN, RNN around cells, Bidirectional and convolutional LSTMs.

A GRU with `reset_after` (Keras 2 and 3's default) has two biases per gate, one without has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from epochcast.describe.capture.keras.keras_call import KerasCall, KerasLayer, KerasTensor, back, plain
from epochcast.describe.capture.keras.layers_conv import _window
from epochcast.describe.graph.op_kinds import Conv, Elementwise, Recurrent
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

_CELLS = {
    "LSTM": "lstm", "LSTMCell": "lstm", "CuDNNLSTM": "lstm", "GRU": "gru", "GRUCell": "gru", "CuDNNGRU": "gru",
    "SimpleRNN": "rnn", "SimpleRNNCell": "rnn",
}  # fmt: skip


def _cell(class_name: str) -> str:
    if class_name not in _CELLS:
        raise BadInput(f"no recurrent cell called {class_name!r} has a rule; known: {', '.join(_CELLS)}")
    return _CELLS[class_name]


def _weights(call: KerasCall, cell: str, config: Mapping[str, Any], width: int, prefix: str = "") -> list[Tensor]:
    units = int(config["units"])
    gates = {"lstm": 4, "gru": 3}.get(cell, 1)
    weights = [
        call.weight(f"{prefix}kernel", (gates * units, width)),
        call.weight(f"{prefix}recurrent_kernel", (gates * units, units)),
    ]
    if config.get("use_bias", True):
        biases = 2 if cell == "gru" and config.get("reset_after", False) else 1
        weights.append(call.weight(f"{prefix}bias", (biases * gates * units,)))
    return weights


def _sequence(call: KerasCall, class_name: str, config: Mapping[str, Any], x: Tensor, prefix: str = "") -> Tensor:
    """(N, T, units) of one cell over (N, T, I)."""
    cell, units = _cell(class_name), int(config["units"])
    weights = _weights(call, cell, config, x.shape[-1], prefix)
    return call.op(Recurrent(cell, units, 1), [x], [(*x.shape[:2], units)], weights)[0]


def _tokens(call: KerasCall) -> Tensor:
    x = call.x.plain
    if len(x.shape) != 3:
        raise BadInput(f"it needs (steps, features), got {x.shape[1:]}")
    return x


def _finished(call: KerasCall, config: Mapping[str, Any], y: Tensor, states: int) -> list[KerasTensor]:
    """The sequence or its last step, and the states if the config asks for them."""
    last = (y.shape[0], y.shape[2])
    first = plain(y) if config.get("return_sequences") else call.reshaped(plain(y), last, "slice")
    if not config.get("return_state"):
        return [first]
    return [first, *(call.reshaped(plain(y), last, "slice") for _ in range(states))]


def recurrent(call: KerasCall) -> Sequence[KerasTensor]:
    """LSTM, GRU, SimpleRNN."""
    name = call.layer.class_name
    y = _sequence(call, name, call.layer.config, _tokens(call))
    return _finished(call, call.layer.config, y, 2 if _cell(name) == "lstm" else 1)


def around_cells(call: KerasCall) -> Sequence[KerasTensor]:
    """RNN(cell): one cell, or several stacked."""
    cell_option = call.option("cell")
    cells = cell_option if isinstance(cell_option, list) else [cell_option]
    if isinstance(cell_option, Mapping) and cell_option.get("class_name") == "StackedRNNCells":
        cells = cell_option["config"]["cells"]
    x = _tokens(call)
    for index, cell in enumerate(cells):
        prefix = f"cell{index}_" if len(cells) > 1 else ""
        x = _sequence(call, cell["class_name"], cell["config"], x, prefix)
    return _finished(call, call.layer.config, x, len(cells))


def bidirectional(call: KerasCall) -> Sequence[KerasTensor]:
    """Both directions at once; the results are joined, added, multiplied, averaged or returned separately."""
    row = call.option("layer")
    inner, name = row["config"], row["class_name"]
    x = _tokens(call)
    if "cell" in inner:
        name, inner = inner["cell"]["class_name"], {**inner["cell"]["config"], **_flags(inner)}
    cell, units = _cell(name), int(inner["units"])
    weights = [w for side in ("forward_", "backward_") for w in _weights(call, cell, inner, x.shape[-1], side)]
    y = call.op(Recurrent(cell, units, 2), [x], [(*x.shape[:2], 2 * units)], weights)[0]
    first = plain(y) if inner.get("return_sequences") else call.reshaped(plain(y), (y.shape[0], 2 * units), "slice")
    half = (*first.shape[:-1], units)
    match call.layer.config.get("merge_mode", "concat"):
        case "concat":
            results = [first]
        case None:
            results = [call.reshaped(first, half, "slice") for _ in range(2)]
        case mode:
            function = "mul" if mode == "mul" else "add"
            pieces = [call.reshaped(first, half, "slice").tensor for _ in range(2)]
            results = [plain(call.op(Elementwise(function), pieces, [half])[0])]
    states = 2 * (2 if cell == "lstm" else 1) if inner.get("return_state") else 0
    return [*results, *(call.reshaped(plain(y), (y.shape[0], units), "slice") for _ in range(states))]


def _flags(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: config.get(key) for key in ("return_sequences", "return_state")}


def conv_lstm(call: KerasCall) -> Sequence[KerasTensor]:
    """ConvLSTM1D to 3D: per step a convolution of the input and one of the state; steps are folded into the batch."""
    n, steps = call.x.shape[:2]
    inside = KerasCall(
        call.b, _without_activation(call.layer), [call.reshaped(call.x, (n * steps, *call.x.shape[2:]))], call.notes
    )
    x = inside.image()
    dims, filters = len(x.shape) - 2, call.count("filters")
    kernel, stride = call.sizes("kernel_size", dims), call.sizes("strides", dims)
    dilation, unit = call.sizes("dilation_rate", dims), (1,) * dims
    before, sizes = _window(inside, x.shape[2:], kernel, stride, dilation)
    weights = [call.weight("kernel", (4 * filters, x.shape[1], *kernel))]
    if call.flag("use_bias", True):
        weights.append(call.weight("bias", (4 * filters,)))
    gates, state = (n * steps, 4 * filters, *sizes), (n * steps, filters, *sizes)
    a = call.op(Conv(stride, before, dilation), [x], [gates], weights)[0]
    h = call.b.view(a, state, "slice")
    half = tuple((k - 1) // 2 for k in kernel)
    c = call.op(
        Conv(unit, half, unit), [h], [gates], [call.weight("recurrent_kernel", (4 * filters, filters, *kernel))]
    )[0]
    y = call.op(Elementwise("lstm"), [a, c], [state])[0]
    shape = state if call.channels_first else back(state)
    sequence = call.reshaped(replace(plain(y), shape=shape), (n, steps, *shape[1:]), "split_time")
    last = sequence if call.flag("return_sequences", False) else call.reshaped(sequence, (n, *shape[1:]), "slice")
    states = 2 if call.flag("return_state", False) else 0
    return [last, *(call.reshaped(sequence, (n, *shape[1:]), "slice") for _ in range(states))]


def _without_activation(layer: KerasLayer) -> KerasLayer:
    """The same layer without its activation (it belongs to the gates)."""
    return replace(layer, config={**layer.config, "activation": None})
