"""Swin transformers (Liu et al. 2021): attention inside windows that shift by half from block to block.

Definitions are torchvision's. Attention runs unfused, with a learned bias per head and distance, and in every shifted
block a mask that is made anew each step. torchvision's published operation counts (4.49 GMAC for swin_t) include both
attention products.
"""

from collections.abc import Sequence

from epochcast.describe.capture.zoo.attention_layers import stochastic_depth, unfused_attention
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op import Graph
from epochcast.describe.graph.op_kinds import Copy, Gather
from epochcast.describe.graph.tensor import DType, Tensor


def swin(
    batch: int,
    input_shape: tuple[int, ...] = (3, 224, 224),
    *,
    name: str,
    width: int,
    depths: Sequence[int],
    heads: Sequence[int],
    window: int = 7,
    classes: int = 1000,
) -> Graph:
    """Patches of four pixels, then stages that halve the resolution and double the width."""
    b = Builder(name, batch)
    with b.scope("features"):
        x = b.conv(b.input("image", input_shape), width, 4, stride=4, name="0.0")
        x = b.view(x, (batch, *x.shape[2:], width), "permute")
        x = b.layer_norm(x, name="0.2")
        for stage, depth in enumerate(depths):
            for index in range(depth):
                with b.scope(f"{1 + 2 * stage}.{index}"):
                    is_first = stage == 0 and index == 0  # its probability of being dropped is zero
                    x = _block(b, x, heads[stage], window, window // 2 if index % 2 else 0, drops=not is_first)
            if stage + 1 < len(depths):
                with b.scope(f"{2 + 2 * stage}"):
                    x = _merged(b, x)
    x = b.layer_norm(x, name="norm")
    x = b.view(x, (batch, x.shape[-1], *x.shape[1:3]), "permute")
    x = b.flatten(b.adaptive_average_pool(x, name="avgpool"))
    return b.finish(b.linear(x, classes, name="head"))


def _block(b: Builder, x: Tensor, heads: int, window: int, shift: int, *, drops: bool) -> Tensor:
    width = x.shape[-1]
    with b.scope("attn"):
        bias = _distance_bias(b, heads, window)
    y = _windowed(b, b.layer_norm(x, name="norm1"), bias, heads, window, shift)
    x = b.add(x, stochastic_depth(b, y) if drops else y)
    y = b.linear(b.layer_norm(x, name="norm2"), 4 * width, name="mlp.0")
    y = b.linear(b.elementwise("gelu", y), width, name="mlp.3")
    return b.add(x, stochastic_depth(b, y) if drops else y)


def _windowed(b: Builder, x: Tensor, bias: Tensor, heads: int, window: int, shift: int) -> Tensor:
    """Pad to whole windows, shift, attend inside each window, shift back, cut."""
    batch, height, breadth, width = x.shape
    down, across = -(-height // window), -(-breadth // window)
    padded = (batch, down * window, across * window, width)
    shift_down, shift_across = shift * (down > 1), shift * (across > 1)  # nothing to shift inside a single window
    with b.scope("attn"):
        y = b.copy("pad", x, padded)
        if shift_down or shift_across:
            y = b.copy("roll", y, padded)
        windows, tokens = batch * down * across, window * window
        y = b.copy("contiguous", y, (windows, tokens, width), name="windows")
        # Taken out one by one, so that each writes a whole gradient of its own on the way back.
        packed = b.linear(y, 3 * width, name="qkv")
        q, k, v = (b.view(packed, (windows, heads, tokens, width // heads), "select") for _ in range(3))
        biases = [bias]
        if shift_down or shift_across:
            biases.append(_mask(b, down, across, window, shift_down, shift_across))
        y = _attended(b, b.elementwise("scale", q), k, v, biases, batch)
        y = b.copy("contiguous", b.linear(y, width, name="proj"), padded, name="windows")
        if shift_down or shift_across:
            y = b.copy("roll", y, padded)
        if padded == x.shape:
            return y
        return b.copy("contiguous", b.view(y, x.shape, "slice"), x.shape)


def _attended(b: Builder, q: Tensor, k: Tensor, v: Tensor, biases: Sequence[Tensor], batch: int) -> Tensor:
    if len(biases) == 1:
        return unfused_attention(b, q, k, v, biases[0])
    # the mask differs by window, so scores are seen as (N, windows, H, T, T) while it is added
    windows, heads, tokens, _ = q.shape
    q, k, v = (b.copy("contiguous", t, t.shape) for t in (q, k, v))
    scores = b.add(b.matmul(q, k, transpose_b=True, name="scores"), biases[0], name="bias")
    apart = b.view(scores, (batch, windows // batch, heads, tokens, tokens))
    scores = b.view(b.add(apart, biases[1], name="mask"), scores.shape)
    mixed = b.matmul(b.softmax(scores), v, name="mix")
    return b.copy("contiguous", mixed, (windows, tokens, heads * v.shape[-1]))


def _distance_bias(b: Builder, heads: int, window: int) -> Tensor:
    """(1, H, T, T) from a table of (2w−1)² distances."""
    tokens = window * window
    table = b.parameter("relative_position_bias_table", ((2 * window - 1) ** 2, heads))
    index = b.constant("relative_position_index", (tokens * tokens,), DType.INT64)
    rows = b.op(Gather(), [table, index], [(tokens * tokens, heads)], name="relative_position_bias")[0]
    return b.copy("contiguous", rows, (1, heads, tokens, tokens), name="relative_position_bias")


def _mask(b: Builder, down: int, across: int, window: int, shift_down: int, shift_across: int) -> Tensor:
    """(1, windows, 1, T, T): -100 between pixels that were no neighbours before the shift; nine regions, numbered."""
    regions = b.op(Copy("fill"), [], [(down * window, across * window)], name="mask")[0]
    for height in _bands(down, window, shift_down):
        for breadth in _bands(across, window, shift_across):
            b.op(Copy("fill"), [], [(height, breadth)], name="mask")
    tokens = window * window
    numbers = b.copy("contiguous", regions, (down * across, tokens), name="mask")
    rows = b.view(numbers, (down * across, 1, tokens), "unsqueeze")
    square = (down * across, tokens, tokens)
    mask = b.copy("sub", rows, square, name="mask")
    for function in ("ne", "masked_fill", "eq", "masked_fill"):
        mask = b.elementwise(function, mask, name="mask")
    return b.view(mask, (1, down * across, 1, tokens, tokens), "unsqueeze")


def _bands(windows: int, window: int, shift: int) -> tuple[int, ...]:
    """Heights of the regions a shift cuts: all but the last window, its kept part, its wrapped part."""
    bands = ((windows - 1) * window, window - shift, shift)
    return tuple(size for size in bands if size)


def _merged(b: Builder, x: Tensor) -> Tensor:
    """Four neighbours side by side, then half of that width by a linear layer."""
    batch, height, breadth, width = x.shape
    even = (batch, height + height % 2, breadth + breadth % 2, width)
    x = b.copy("pad", x, even)
    quarter = (batch, even[1] // 2, even[2] // 2, width)
    corners = [b.view(x, quarter, "slice") for _ in range(4)]
    x = b.layer_norm(b.concatenate(corners, -1), name="norm")
    return b.linear(x, 2 * width, bias=False, name="reduction")
