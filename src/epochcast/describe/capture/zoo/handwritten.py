"""A decoder whose every formula is written out, as in courses and first implementations (`style=handwritten`).

After the model of Stanford's CS336 (`cs336_basics/model.py`): each line of a formula is a kernel, and so is each of its
gradients. Per layer and pass, beside the products:

    root-mean-square norm   square, mean, add, reciprocal root, times x, times weight (twice a layer)
    rotation                of queries and keys: four products of halves, a difference, a sum, one copy
    attention               copies of the heads, scores, scale, mask, softmax in five, product with V, a copy
    softmax                 maximum, subtract, exponential, sum, divide
    silu                    sigmoid, times x

No scores are spared: attention is eager whatever the job says.
"""

from epochcast.describe.capture.zoo.attention_layers import join_heads, rms_norm, split_heads
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Elementwise
from epochcast.describe.graph.tensor import DType, Tensor


def handwritten_layer(b: Builder, x: Tensor, heads: int, ffn: int, cos: Tensor, sin: Tensor) -> Tensor:
    """x + attention(norm(x)), then the same with a gated feed-forward layer."""
    x = b.add(x, _attention(b, rms_norm(b, x, name="ln1"), heads, cos, sin))
    return b.add(x, _feed_forward(b, rms_norm(b, x, name="ln2"), ffn))


def handwritten_turns(b: Builder, length: int, width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position for half a head."""
    return b.constant("cos", (1, 1, length, width // 2)), b.constant("sin", (1, 1, length, width // 2))


def _attention(b: Builder, x: Tensor, heads: int, cos: Tensor, sin: Tensor) -> Tensor:
    width = x.shape[-1]
    with b.scope("attn"):
        q, k, v = (split_heads(b, b.linear(x, width, bias=False, name=f"{name}_proj"), heads) for name in "qkv")
        q, k = (_rotated(b, t, cos, sin) for t in (q, k))
        q, k, v = (b.copy("contiguous", t, t.shape) for t in (q, k, v))
        scores = b.elementwise("scale", b.matmul(q, k, transpose_b=True, name="scores"))
        length = x.shape[1]
        mask = b.op(Elementwise("ge"), [], [(1, 1, length, length)], dtypes=[DType.BOOL], name="mask")[0]
        mixed = b.matmul(_softmax(b, b.elementwise("where", scores, mask, name="masked")), v, name="mix")
        y = join_heads(b, b.copy("contiguous", mixed, mixed.shape))
        return b.linear(y, width, bias=False, name="output_proj")


def _rotated(b: Builder, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(x₁cos − x₂sin, x₁sin + x₂cos), one kernel per sign."""
    first, second = b.split(x, 2)
    turned = (
        b.elementwise("sub", b.mul(first, cos), b.mul(second, sin)),
        b.elementwise("add", b.mul(first, sin), b.mul(second, cos)),
    )
    return b.concatenate(turned, -1)


def _softmax(b: Builder, x: Tensor) -> Tensor:
    """e^(x − max) / Σ e^(x − max)"""
    exponentials = b.elementwise("exp", b.elementwise("sub", x, b.reduce("max", x, [-1], keep=True)))
    return b.elementwise("div", exponentials, b.reduce("sum", exponentials, [-1], keep=True))


def _feed_forward(b: Builder, x: Tensor, ffn: int) -> Tensor:
    with b.scope("ffn"):
        gate = b.linear(x, ffn, bias=False, name="w1")
        gate = b.mul(gate, b.elementwise("sigmoid", gate))
        y = b.mul(gate, b.linear(x, ffn, bias=False, name="w3"))
        return b.linear(y, x.shape[-1], bias=False, name="w2")
