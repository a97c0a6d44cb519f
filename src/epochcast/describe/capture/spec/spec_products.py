"""Layers with weights (convolution, linear, attention, recurrent, norms) and pooling, as a spec file names them."""

from epochcast.base.bounds import check_ops
from epochcast.describe.capture.spec.spec_operands import Rule, image, only, shown, tokens
from epochcast.describe.capture.spec.spec_options import Options
from epochcast.describe.graph.build import Builder
from epochcast.describe.graph.op_kinds import Norm, Pool
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import BadInput

# ---- products -----------------------------------------------------------------------------------


def _padding(o: Options, kernel: int | tuple[int, ...], dilation: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """A number, one for each dimension, or "same": (k - 1)·dilation / 2, which keeps the size at stride 1."""
    if o.any("padding", 0) != "same":
        return o.sizes("padding", 0, least=0)
    kernels = kernel if isinstance(kernel, tuple) else (kernel,)
    dilations = dilation if isinstance(dilation, tuple) else (dilation,) * len(kernels)
    halves = tuple((k - 1) * d // 2 for k, d in zip(kernels, dilations, strict=True))
    return halves if isinstance(kernel, tuple) else halves[0]


def conv(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """channels, kernel; stride, padding, dilation, groups, bias."""
    x = image(inputs)
    kernel, dilation = o.sizes("kernel"), o.sizes("dilation", 1)
    padding = _padding(o, kernel, dilation)
    stride, groups, bias = o.sizes("stride", 1), o.count("groups", 1), o.flag("bias", True)
    return b.conv(
        x, o.count("channels"), kernel, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias,
        name=name,
    )  # fmt: skip


def depthwise(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """One filter per channel (`multiplier` of them)."""
    x = image(inputs)
    kernel, dilation = o.sizes("kernel"), o.sizes("dilation", 1)
    padding = _padding(o, kernel, dilation)
    stride, bias, into = o.sizes("stride", 1), o.flag("bias", True), x.shape[1]
    return b.conv(
        x, into * o.count("multiplier", 1), kernel, stride=stride, padding=padding, dilation=dilation, groups=into,
        bias=bias, name=name,
    )  # fmt: skip


def conv_transposed(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """channels, kernel; stride, padding, output_padding, groups, bias."""
    x, channels = image(inputs), o.count("channels")
    extra = o.sizes("output_padding", 0, least=0)
    stride, padding = o.sizes("stride", 1), o.sizes("padding", 0, least=0)
    kernel, groups, bias = o.sizes("kernel"), o.count("groups", 1), o.flag("bias", True)
    if x.shape[1] % groups or channels % groups:
        raise BadInput(f"{groups} groups do not divide {x.shape[1]} → {channels} channels")
    return b.conv_transposed(
        x, channels, kernel, stride=stride, padding=padding, output_padding=extra, groups=groups, bias=bias, name=name
    )


def linear(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """features, bias; or `tie`, the layer whose table it multiplies by."""
    x = only(inputs)
    if not o.has("tie"):
        return b.linear(x, o.count("features"), bias=o.flag("bias", True), name=name)
    tied = o.text("tie")
    table = b.parameters.get(f"{tied}.weight")
    if table is None or len(table.tensor.shape) != 2 or table.tensor.shape[1] != x.shape[-1]:
        raise BadInput(f"'tie' must name a layer above with a table of width {x.shape[-1]}, got {tied!r}")
    return b.linear(x, table.tensor.shape[0], bias=o.flag("bias", False), weight=table.tensor, name=name)


def matmul(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """The product of two computed tensors."""
    if len(inputs) != 2 or min(len(t.shape) for t in inputs) < 3:
        raise BadInput("it takes two inputs of at least two dimensions each")
    first, second = inputs
    transpose_a, transpose_b = o.flag("transpose_a", False), o.flag("transpose_b", False)
    depth = first.shape[-2] if transpose_a else first.shape[-1]
    if depth != (second.shape[-1] if transpose_b else second.shape[-2]):
        raise BadInput(f"{shown(first.shape)} does not multiply {shown(second.shape)}")
    return b.matmul(first, second, transpose_a=transpose_a, transpose_b=transpose_b, name=name)


def attention(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Multi-head attention with its projections: of one input to itself, or (`from` two) of the first to the second."""
    x, memory = (inputs[0], inputs[1]) if len(inputs) == 2 else (tokens(inputs), None)
    heads, bias, causal = o.count("heads"), o.flag("bias", True), o.flag("causal", False)
    dropout = o.flag("dropout", False)
    kv_heads, width = o.count("kv_heads", heads), x.shape[-1]
    if not o.has("head_width") and width % heads:
        raise BadInput(f"{heads} heads do not divide a width of {width}; give 'head_width'")
    head_width = o.count("head_width", width // heads)
    with b.scope(name):
        if memory is None:
            parts = b.split(
                b.linear(x, (heads + 2 * kv_heads) * head_width, bias=bias, name="qkv"),
                (heads * head_width, kv_heads * head_width, kv_heads * head_width),
            )
        else:
            wide = (("q", x, heads), ("k", memory, kv_heads), ("v", memory, kv_heads))
            parts = tuple(b.linear(source, n * head_width, bias=bias, name=label) for label, source, n in wide)
        q, k, v = (
            b.view(p, (p.shape[0], p.shape[-1] // head_width, p.shape[1], head_width), "transpose") for p in parts
        )
        mixed = b.attention(q, k, v, causal=causal, dropout=dropout)
        joined = b.view(mixed, (x.shape[0], x.shape[1], heads * head_width), "transpose")
        return b.linear(joined, width, bias=bias, name="out")


def embedding(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """Rows of a learned table by index."""
    return b.embedding(only(inputs), o.count("rows"), o.count("width"), name=name)


def position(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
    """A learned table of positions added to (length, width)."""
    x = tokens(inputs)
    with b.scope(name):
        table = b.parameter("weight", x.shape[1:])
    return b.add(x, table, name=name)


def recurrent(cell: str) -> Rule:
    """Layers of one recurrent cell over (length, width); `sequence` false keeps the last state alone."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        x = tokens(inputs)
        hidden, layers = o.count("hidden"), o.count("layers", 1)
        check_ops(layers, "it")
        directions, bias = (2 if o.flag("bidirectional", False) else 1), o.flag("bias", True)
        for index in range(layers):
            label = name if layers == 1 else f"{name}.{index}"
            x = b.recurrent(x, hidden, cell=cell, directions=directions, bias=bias, name=label)
        return x if o.flag("sequence", True) else b.view(x, (x.shape[0], x.shape[2]), "slice")

    return rule


# ---- normalisation and pooling ------------------------------------------------------------------


def norm(style: str) -> Rule:
    """A scale and a shift per channel; layer and rms normalise the last dimension."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        x = only(inputs)
        affine, last = o.flag("affine", style != "local_response"), style in ("layer", "rms")
        bias = o.flag("bias", style != "rms") if last else True
        if style == "group" and x.shape[1] % o.count("groups"):
            raise BadInput(f"{o.count('groups')} groups do not divide {x.shape[1]} channels")
        if style == "local_response":
            o.count("size", 5)
            return b.op(Norm(style), [x], [x.shape], name=name)[0]
        return b.norm(x, style, x.shape[-1] if last else x.shape[1], affine=affine, bias=bias, name=name)

    return rule


def pool(style: str) -> Rule:
    """kernel; stride (as the kernel), padding, ceil_mode."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        x, window = image(inputs), o.sizes("kernel")
        stride, padding = o.sizes("stride", window), o.sizes("padding", 0, least=0)
        return b.pool(x, style, window, stride, padding, ceil_mode=o.flag("ceil_mode", False), name=name)

    return rule


def global_pool(style: str) -> Rule:
    """Everything to `size` positions; `flatten` drops them."""

    def rule(b: Builder, inputs: list[Tensor], o: Options, name: str) -> Tensor:
        x = image(inputs)
        size, dims = o.sizes("size", 1), len(x.shape) - 2
        if isinstance(size, tuple) and len(size) != dims:
            raise BadInput(f"'size' must be one number or {dims}, got {list(size)}")
        spatial = size if isinstance(size, tuple) else (size,) * dims
        zero = (0,) * dims
        y = b.op(Pool(style, zero, zero, zero), [x], [(*x.shape[:2], *spatial)], name=name)[0]
        return b.flatten(y) if o.flag("flatten", False) else y

    return rule
