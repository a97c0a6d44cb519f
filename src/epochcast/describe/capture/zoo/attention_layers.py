"""What transformers share: token inputs, heads, attention, root-mean-square norms, gated layers, stochastic depth.

Symbols: N samples, T tokens, H heads, D width of a head. Tensors are (N, T, H·D) outside attention and (N, H, T, D)
inside. Fused kernels read heads through strides and write their result token by token, so splitting and joining heads
are views.
"""

from collections.abc import Sequence

from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.half_precision import NARROW, WIDEN
from epochcast.describe.graph.op_kinds import Elementwise, Matmul, View
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput


def sequence_length(name: str, input_shape: tuple[int, ...] | None, default: int, longest: int | None = None) -> int:
    """The number of tokens of an input shape: one number, at most the table of positions."""
    shape = (default,) if input_shape is None else input_shape
    if len(shape) != 1 or shape[0] < 1:
        raise BadInput(f"{name} takes one number of tokens as its input, got {'x'.join(map(str, shape)) or 'nothing'}")
    if longest is not None and shape[0] > longest:
        raise BadInput(f"{name} has {longest} positions, got {shape[0]} tokens")
    return shape[0]


def token_ids(b: Builder, length: int, name: str = "input_ids") -> Tensor:
    """(N, T) integers."""
    return b.input(name, (length,), DType.INT64)


def split_heads(b: Builder, x: Tensor, heads: int) -> Tensor:
    """(N, T, H·D) → (N, H, T, D), in place."""
    batch, length, width = x.shape
    if width % heads:
        raise BadInput(f"{b.name}: {heads} heads do not divide a width of {width}")
    return b.view(x, (batch, heads, length, width // heads), "split_heads")


def join_heads(b: Builder, x: Tensor) -> Tensor:
    """(N, H, T, D) → (N, T, H·D), in place."""
    batch, heads, length, width = x.shape
    return b.view(x, (batch, length, heads * width), "join_heads")


def unfused_attention(b: Builder, q: Tensor, k: Tensor, v: Tensor, *biases: Tensor, dropout: bool = False) -> Tensor:
    """softmax(QKᵀ + biases)V with every step in memory, and the result copied into token order.

    For attention whose learned bias needs a gradient, which fused kernels did not offer when these networks were timed.
    Batched products want each head in one piece, so each operand is copied first.
    """
    q, k, v = (b.copy("contiguous", t, t.shape) for t in (q, k, v))
    scores = b.matmul(q, k, transpose_b=True, name="scores")
    for bias in biases:
        scores = b.add(scores, bias, name="bias")
    weights = b.softmax(scores)
    if dropout:
        weights = b.dropout(weights)
    mixed = b.matmul(weights, v, name="mix")
    batch, heads, length, width = mixed.shape
    return b.copy("contiguous", mixed, (batch, length, heads * width))


def multihead_attention(
    b: Builder,
    x: Tensor,
    memory: Tensor | None,
    heads: int,
    *,
    name: str,
    causal: bool = False,
    dropout: bool = False,
    batch_first: bool = False,
) -> Tensor:
    """`torch.nn.MultiheadAttention` as it runs: one packed projection (two with a `memory`), repacked by a copy.

    It works on (T, N, …), so with `batch_first` the tokens are copied over first and the bias of the projection is a
    kernel of its own.
    """
    batch, length, width = x.shape
    with b.scope(name):
        weight = b.parameter("in_proj_weight", (3 * width, width))
        bias = b.parameter("in_proj_bias", (3 * width,))
        if memory is None:
            source = b.copy("contiguous", x, x.shape) if batch_first else x
            q, k, v = _packed(b, source, weight, bias, 3, fused_bias=not batch_first)
        else:
            w_q, w_kv = b.op(View("split"), [weight], [(width, width), (2 * width, width)], name="in_proj")
            b_q, b_kv = b.op(View("split"), [bias], [(width,), (2 * width,)], name="in_proj")
            (q,) = _packed(b, x, w_q, b_q, 1)
            k, v = _packed(b, memory, w_kv, b_kv, 2)
        y = b.attention(*(split_heads(b, t, heads) for t in (q, k, v)), causal=causal, dropout=dropout)
        y = b.copy("contiguous", y, (batch, length, width))
        return b.linear(y, width, name="out_proj")


def _packed(
    b: Builder, x: Tensor, weight: Tensor, bias: Tensor, parts: int, *, fused_bias: bool = True
) -> tuple[Tensor, ...]:
    """`parts` projections of x in one product; more than one are copied apart."""
    shape = (*x.shape[:-1], weight.shape[0])
    weights = [weight, bias] if fused_bias else [weight]
    y = b.op(Matmul(transpose_b=True), [x], [shape], weights=weights, name="in_proj")[0]
    if not fused_bias:
        y = b.op(Elementwise("add"), [y], [shape], weights=[bias], name="in_proj")[0]
    if parts == 1:
        return (y,)
    return b.split(b.copy("contiguous", y, y.shape), parts)


def rms_norm(b: Builder, x: Tensor, *, name: str, is_all_wide: bool = False, casts_once: bool = True) -> Tensor:
    """x · (mean(x²) + ε)^-½ · γ (Zhang & Sennrich 2019) as six kernels, all but the last in
    float32, as Hugging Face's models run it.

    Gemma multiplies by 1 + γ, in float32 too (`is_all_wide`). T5 takes x as it is for the product with its scale, not
    the copy in float32 that it squares (`casts_once` false).
    """
    with b.scope(name):
        weight = b.parameter("weight", (x.shape[-1],))
        wide = in_float32(b, x)
        mean = b.reduce("mean", b.elementwise("pow", wide), [-1], keep=True)
        y = b.mul(wide if casts_once else x, b.elementwise("rsqrt", b.elementwise("add", mean)))
        if is_all_wide:
            y = b.mul(y, b.elementwise("add", in_float32(b, weight)))
            return b.view(y, y.shape, NARROW)
        y = b.view(y, y.shape, NARROW)
        return b.op(Elementwise("mul"), [y], [y.shape], weights=[weight], name="weight")[0]


def in_float32(b: Builder, x: Tensor) -> Tensor:
    """`x.float()`: a copy where the step is stored in half. Hugging Face's causal language models and Megatron-LM do so
    with what they give to the loss.
    """
    return b.view(x, x.shape, WIDEN)


def gated(
    b: Builder, x: Tensor, ffn: int, *, activation: str = "silu", name: str = "mlp", packed: bool = False
) -> Tensor:
    """(silu(xW₁) · xW₂)·W₃ (Shazeer 2020), without biases; `packed`: W₁ and W₂ are one weight."""
    with b.scope(name):
        if packed:
            first, second = b.split(b.linear(x, 2 * ffn, bias=False, name="gate_up_proj"), 2)
            y = b.mul(second, b.elementwise(activation, first, name="act_fn"))
        else:
            gate = b.elementwise(activation, b.linear(x, ffn, bias=False, name="gate_proj"), name="act_fn")
            y = b.mul(gate, b.linear(x, ffn, bias=False, name="up_proj"))
        return b.linear(y, x.shape[-1], bias=False, name="down_proj")


def stochastic_depth(b: Builder, x: Tensor) -> Tensor:
    """Drops the branch of whole samples (Huang et al. 2016): a random bit per sample, scaled, times x."""
    shape = (x.shape[0], *(1,) * (len(x.shape) - 1))
    keep = b.op(Elementwise("bernoulli"), [], [shape], name="stochastic_depth")[0]
    return b.mul(x, b.elementwise("scale", keep, name="stochastic_depth"), name="stochastic_depth")


def chain(b: Builder, x: Tensor, steps: Sequence[tuple[str, DType]]) -> Tensor:
    """Elementwise functions one after another, each with the dtype it makes."""
    for function, dtype in steps:
        x = b.op(Elementwise(function), [x], [x.shape], dtypes=[dtype], name=function)[0]
    return x
