"""The fused kernels CUDA would run, on `meta`, where PyTorch would decompose an operator instead.

`meta` has no kernels, so attention becomes five small ops, dropout three, a recurrent layer a dozen per time step.
Inside `cuda_kernels` these composite operators are redirected (at the dispatcher's AutogradMeta key, so that every
caller is reached) to one operator forward and one backward:

    epochcast::attention    softmax(QKᵀ + mask)V, results laid out in memory as their operands are (Dao et al. 2022)
    epochcast::recurrent    one layer of an LSTM, GRU or RNN over the whole sequence, as cuDNN runs it
    aten::native_dropout    with a boolean mask
    epochcast::rms_norm     where this torch has a fused kernel for it (_fused_rms_norm)

The redirection is global to the process, so one capture runs at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import sqrt
from typing import Any

import torch
from torch import Tensor

from epochcast.describe.capture.torch.capture_lock import ALONE

# torch.library has no type annotations.
_library: Any = torch.library

_LIBRARY = _library.Library("epochcast", "FRAGMENT")
_LIBRARY.define("attention(Tensor q, Tensor k, Tensor v, Tensor? mask, bool causal, int window) -> Tensor")
_LIBRARY.define(
    "attention_backward(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor? mask, bool causal,"
    " int window, bool mask_grad) -> Tensor[]"
)
_LIBRARY.define(
    "recurrent(Tensor x, Tensor[] states, Tensor[] weights, str cell, int hidden, int directions, int width)"
    " -> Tensor[]"
)
_LIBRARY.define(
    "recurrent_backward(Tensor grad, Tensor x, Tensor out, Tensor[] states, Tensor[] weights, str cell, int hidden,"
    " int directions, bool[] wanted) -> Tensor[]"
)

_LIBRARY.define("rms_norm(Tensor x, Tensor? weight) -> Tensor")
_LIBRARY.define("rms_norm_backward(Tensor grad, Tensor x, Tensor? weight, bool[] wanted) -> Tensor[]")


# ---- attention ----------------------------------------------------------------------------------


def _attention_meta(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, window: int) -> Tensor:
    """The order of dimensions in memory is the query's."""
    if v.shape[-1] == q.shape[-1]:
        return torch.empty_like(q)
    *lead, heads, length, _ = q.shape
    return q.new_empty((*lead, length, heads, v.shape[-1])).transpose(-3, -2)


def _attention_backward_meta(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    mask: Tensor | None,
    causal: bool,
    window: int,
    mask_grad: bool,
) -> list[Tensor]:
    results = [torch.empty_like(t) for t in (q, k, v)]
    return [*results, torch.empty_like(mask)] if mask_grad and mask is not None else results


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, window: int) -> Tensor:
        out: Tensor = torch.ops.epochcast.attention(q, k, v, mask, causal, window)
        ctx.save_for_backward(q, k, v, out, mask)
        ctx.seen = causal, window
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, out, mask = ctx.saved_tensors
        results = torch.ops.epochcast.attention_backward(
            grads[0], q, k, v, out, mask, *ctx.seen, ctx.needs_input_grad[3]
        )
        return (*results, *([None] * (6 - len(results))))


def _flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if query.dim() < 3:
        query, key, value = (t.unsqueeze(0) for t in (query, key, value))
        return _flash(query, key, value, attn_mask, dropout_p, is_causal).squeeze(0)
    if attn_mask is not None and attn_mask.dtype is torch.bool:  # written out as a bias, which backward keeps
        shown, hidden = (
            torch.full((), value, dtype=query.dtype, device=query.device) for value in (0.0, float("-inf"))
        )
        attn_mask = torch.where(attn_mask, shown, hidden)
    window = _WINDOW.get()
    result: Tensor = _Attention.apply(query, key, value, attn_mask, is_causal, window)  # type: ignore[no-untyped-call]
    return result


_WINDOW: ContextVar[int] = ContextVar("window", default=0)
_KERNELS: ContextVar[str] = ContextVar("kernels", default="sdpa")


@contextmanager
def windowed(window: int) -> Iterator[None]:
    """Inside, fused attention looks at so many keys (0: all), by its kernel or by the mask that it is given."""
    before = _WINDOW.set(window)
    try:
        yield
    finally:
        _WINDOW.reset(before)


def has_window_kernel() -> bool:
    """Whether the kernels in use take a window as it is, and no mask: FlashAttention's own."""
    return _KERNELS.get() == "flash"


def _written(fuses_softmax: bool) -> Callable[..., Tensor]:
    """Scores, scale, mask, softmax, product: each written to memory, as models did before fused kernels. Megatron-LM
    fuses scale and masks into the kernel of the softmax.
    """

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        key, value = _repeated(query, key, value) if enable_gqa else (key, value)
        scores = torch.matmul(query, key.transpose(-2, -1))
        if not fuses_softmax:
            scores = _masked(scores * (scale or 1 / sqrt(query.shape[-1])), attn_mask, is_causal)
        weights = torch.dropout(torch.softmax(scores, dim=-1), dropout_p, True)
        return torch.matmul(weights, value)

    return attention


def _masked(scores: Tensor, attn_mask: Tensor | None, is_causal: bool) -> Tensor:
    if is_causal:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(visible.logical_not(), float("-inf"))
    if attn_mask is not None:
        is_bool = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(attn_mask.logical_not(), float("-inf")) if is_bool else scores + attn_mask
    return scores


def _repeated(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values, once for every head of the queries."""
    repeats = query.shape[-3] // key.shape[-3]
    if repeats == 1:
        return key, value
    return key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)


_WRITTEN_ATTENTION: Mapping[str, Callable[..., Any]] = {"eager": _written(False), "fused_softmax": _written(True)}


# ---- recurrent layers ---------------------------------------------------------------------------


def _recurrent_meta(
    x: Tensor, states: list[Tensor], weights: list[Tensor], cell: str, hidden: int, directions: int, width: int
) -> list[Tensor]:
    """x has shape (N, T, I) but is stored as (T, N, I), as cuDNN takes it."""
    batch, steps, _ = x.shape
    out = x.new_empty((steps, batch, directions * width)).transpose(0, 1)
    return [out, *(torch.empty_like(s) for s in states)]


def _recurrent_backward_meta(
    grad: Tensor,
    x: Tensor,
    out: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    cell: str,
    hidden: int,
    directions: int,
    wanted: list[bool],
) -> list[Tensor]:
    """Gradients of x, the states and the weights, where `wanted` is true."""
    return [torch.empty_like(t) for t, wants in zip((x, *states, *weights), wanted, strict=True) if wants]


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: str,
        hidden: int,
        directions: int,
        width: int,
        count: int,
        x: Tensor,
        *operands: Tensor,
    ) -> tuple[Tensor, ...]:
        states, weights = list(operands[:count]), list(operands[count:])
        results = torch.ops.epochcast.recurrent(x, states, weights, cell, hidden, directions, width)
        ctx.save_for_backward(x, results[0], *operands)
        ctx.shape = (cell, hidden, directions, count)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, out, *operands = ctx.saved_tensors
        cell, hidden, directions, count = ctx.shape
        wanted = list(ctx.needs_input_grad[5:])
        results = iter(
            torch.ops.epochcast.recurrent_backward(
                grads[0],
                x,
                out,
                operands[:count],
                operands[count:],
                cell,
                hidden,
                directions,
                wanted,
            )
        )
        return (*[None] * 5, *(next(results) if wants else None for wants in wanted))


def _layers(
    cell: str,
    x: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """A stack of recurrent layers, one op each; states are (layers·directions, N, width)."""
    directions = 2 if bidirectional else 1
    per_layer = len(params) // num_layers
    width = states[0].shape[-1]
    last_states: list[list[Tensor]] = []
    x = x if batch_first else x.transpose(0, 1)
    for layer in range(num_layers):
        weights = params[layer * per_layer : (layer + 1) * per_layer]
        at = slice(layer * directions, (layer + 1) * directions)
        hidden = weights[1].shape[0] // {"lstm": 4, "gru": 3}.get(cell, 1)
        starts = [s[at] for s in states] if num_layers > 1 else list(states)
        sizes = (cell, hidden, directions, width, len(states))
        x, *ends = _Recurrent.apply(*sizes, x, *starts, *weights)  # type: ignore[no-untyped-call]
        last_states.append(ends)
        if layer < num_layers - 1:
            x = torch.dropout(x, dropout, train)
    finals = [torch.cat(state) if num_layers > 1 else state[0] for state in zip(*last_states, strict=True)]
    return (x if batch_first else x.transpose(0, 1), *finals)


def _stack(cell: str) -> Callable[..., tuple[Tensor, ...]]:
    def run(x: Tensor, hx: Any, params: Sequence[Tensor], _has_biases: bool, *options: Any) -> tuple[Tensor, ...]:
        return _layers(cell, x, hx if cell == "lstm" else [hx], params, *options)

    return run


def _packed_stack(cell: str) -> Callable[..., tuple[Tensor, ...]]:
    """The same for packed sequences: rows of all times one after the other, as far as all samples go (`packed.py`)."""

    def run(
        data: Tensor, sizes: Tensor, hx: Any, params: Sequence[Tensor], _has_biases: bool, *options: Any
    ) -> tuple[Tensor, ...]:
        samples, steps = int(sizes[0]), int((sizes == sizes[0]).sum())
        rows = steps * samples
        states = hx if cell == "lstm" else [hx]
        layers, dropout, train, is_bidirectional = options
        x = data[:rows].reshape(steps, samples, -1)
        y, *ends = _layers(cell, x, states, params, layers, dropout, train, is_bidirectional, False)
        y = torch.nn.functional.pad(y.reshape(rows, -1), (0, 0, 0, data.shape[0] - rows))
        return (y, *ends)

    return run


# ---- dropout, normalisation ---------------------------------------------------------------------


def _dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Nothing at all where nothing is dropped (aten/src/ATen/native/Dropout.cpp)."""
    if not train or p == 0 or not x.numel():
        return x
    return torch.native_dropout(x, p, True)[0] if p < 1 else x * 0


def _rms_norm_backward_meta(grad: Tensor, x: Tensor, weight: Tensor | None, wanted: list[bool]) -> list[Tensor]:
    return [torch.empty_like(t) for t, wants in zip((x, weight), wanted, strict=True) if wants and t is not None]


class _RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None) -> Tensor:
        out: Tensor = torch.ops.epochcast.rms_norm(x, weight)
        ctx.save_for_backward(x, weight)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wanted = list(ctx.needs_input_grad)
        results = iter(torch.ops.epochcast.rms_norm_backward(grads[0], x, weight, wanted))
        return tuple(next(results) if wants else None for wants in wanted)


def _rms_norm(
    x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    result: Tensor = _RmsNorm.apply(x, weight)  # type: ignore[no-untyped-call]
    return result


_LIBRARY.impl("attention", _attention_meta, "Meta")
_LIBRARY.impl("attention_backward", _attention_backward_meta, "Meta")
_LIBRARY.impl("rms_norm", lambda x, weight: torch.empty_like(x, memory_format=torch.contiguous_format), "Meta")
_LIBRARY.impl("rms_norm_backward", _rms_norm_backward_meta, "Meta")
_LIBRARY.impl("recurrent", _recurrent_meta, "Meta")
_LIBRARY.impl("recurrent_backward", _recurrent_backward_meta, "Meta")


@contextmanager
def cuda_kernels(attention: str = "sdpa") -> Iterator[None]:
    """Inside, `meta` tensors use the kernels a CUDA device would; some kinds of `attention` keep scores in memory."""
    chosen: dict[str, Callable[..., Any]] = {
        "scaled_dot_product_attention": _WRITTEN_ATTENTION.get(attention, _flash),
        "dropout": _dropout,
        "lstm.input": _stack("lstm"),
        "gru.input": _stack("gru"),
        "rnn_tanh.input": _stack("rnn"),
        "rnn_relu.input": _stack("rnn"),
        "lstm.data": _packed_stack("lstm"),
        "gru.data": _packed_stack("gru"),
        "rnn_tanh.data": _packed_stack("rnn"),
        "rnn_relu.data": _packed_stack("rnn"),
    }
    if hasattr(torch.ops.aten, "_fused_rms_norm"):
        chosen["rms_norm"] = _rms_norm
    with ALONE:
        library = _library.Library("aten", "IMPL")
        before = _KERNELS.set(attention)
        try:
            for name, kernel in chosen.items():
                library.impl(name, kernel, "AutogradMeta")
            yield
        finally:
            _KERNELS.reset(before)
            library._destroy()
