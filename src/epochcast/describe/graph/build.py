"""A builder of forward graphs: the layers people name, each as the ops a framework runs for it.

Every front end that knows layers rather than kernels (the zoo, spec files, Keras, ONNX) builds through this, so that
one layer means the same ops everywhere. Its methods take and return tensors; it collects ops and parameters.

>>> b = Builder("tiny", batch=2)
>>> x = b.input("image", (3, 32, 32))
>>> x = b.relu(b.conv(x, 8, 3, padding=1, name="conv"))
>>> graph = b.finish(b.linear(b.flatten(x), 10, name="fc"))
>>> graph.parameter_count == (3 * 3 * 3 * 8 + 8) + (8 * 32 * 32 * 10 + 10)
True
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from math import prod

from epochcast.base.bounds import check_ops
from epochcast.describe.graph.op import Graph, Op, Parameter
from epochcast.describe.graph.op_kinds import (
    Attention,
    Conv,
    Copy,
    Elementwise,
    Embedding,
    Gather,
    Kind,
    Matmul,
    Norm,
    Pool,
    Recurrent,
    Reduce,
    Softmax,
    View,
)
from epochcast.describe.graph.ops.opaque_op import kind_named
from epochcast.describe.graph.tensor import DType, Tensor, bounded, broadcast
from epochcast.errors import BadInput

Sizes = int | Sequence[int]


class Builder:
    """Collects ops and parameters of one forward pass at one batch size; `relu_function` is what `relu` computes."""

    def __init__(self, name: str, batch: int, relu_function: str = "relu") -> None:
        if batch < 1:
            raise BadInput(f"batch must be at least 1, got {batch}")
        self.name = name
        self.batch = batch
        self.relu_function = relu_function
        self.inputs: list[Tensor] = []
        self.ops: list[Op] = []
        self.parameters: dict[str, Parameter] = {}
        self._scope: list[str] = []
        self._counts: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    # ---- inputs, parameters, ops ----------------------------------------------------------------------------------

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Layers named inside are called `name.…`."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def input(self, name: str, shape: Sequence[int], dtype: DType = DType.FLOAT32) -> Tensor:
        """An input of one sample's `shape`; the batch is put in front."""
        self.inputs.append(bounded(Tensor((self.batch, *shape), dtype, name)))
        return self.inputs[-1]

    def constant(self, name: str, shape: Sequence[int], dtype: DType = DType.FLOAT32) -> Tensor:
        """A tensor that exists from the start and is not trained: a mask, a table of positions."""
        self.inputs.append(bounded(Tensor(tuple(shape), dtype, self._path(name))))
        return self.inputs[-1]

    def parameter(self, name: str, shape: Sequence[int], *, trainable: bool = True) -> Tensor:
        """A learned tensor; the same full name gives the same tensor again (shared layers, tied weights)."""
        path = self._path(name)
        shared = self.parameters.get(path)
        if shared is not None:
            if shared.tensor.shape != tuple(shape):
                raise BadInput(f"{path} is shared but has two shapes: {shared.tensor.shape} and {tuple(shape)}")
            return shared.tensor
        tensor = bounded(Tensor(tuple(shape), DType.FLOAT32, path))
        self.parameters[path] = Parameter(tensor, trainable, path.rpartition(".")[0])
        return tensor

    def op(
        self,
        kind: Kind,
        inputs: Sequence[Tensor],
        shapes: Sequence[Sequence[int]],
        *,
        weights: Sequence[Tensor] = (),
        dtypes: Sequence[DType] | None = None,
        name: str | None = None,
    ) -> tuple[Tensor, ...]:
        """Any op: its kind, its operands and the shapes of its results."""
        layer = self._path(name or kind.label)
        op_name = self._unique(layer)
        operand_dtype = next((t.dtype for t in (*inputs, *weights) if t.dtype.is_float), DType.FLOAT32)
        output_dtypes = dtypes or [operand_dtype] * len(shapes)
        kind.check(weights)
        for shape in shapes:
            if any(size < 1 for size in shape):
                input_shapes = " and ".join(_show(t.shape[1:]) for t in inputs)
                turned = f"{layer} turns {input_shapes} into {_show(shape[1:])}"
                raise BadInput(f"{self.name}: {turned}: the input is too small for this network")
        outputs = tuple(
            bounded(Tensor(tuple(shape), dtype, op_name if i == 0 else f"{op_name}:{i}"))
            for i, (shape, dtype) in enumerate(zip(shapes, output_dtypes, strict=True))
        )
        check_ops(len(self.ops) + 1, self.name)
        self.ops.append(Op(op_name, kind, tuple(inputs), outputs, tuple(weights), layer=layer))
        return outputs

    def finish(
        self,
        outputs: Tensor | Sequence[Tensor],
        *,
        loss: str = "cross_entropy",
        unit: str = "samples",
        units_per_sample: int = 1,
        notes: Sequence[str] = (),
    ) -> Graph:
        """The graph that was built; `outputs` go to the loss."""
        results = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        return Graph(
            self.name, self.batch, tuple(self.inputs), tuple(self.ops), tuple(self.parameters.values()), results,
            loss, unit, units_per_sample, tuple(notes),
        )  # fmt: skip

    # ---- products -------------------------------------------------------------------------------

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> Tensor:
        """Convolution over all dimensions behind the channels."""
        dims = len(x.shape) - 2
        k, s, p, d = (_spread(v, dims) for v in (kernel, stride, padding, dilation))
        sizes = zip(x.shape[2:], k, s, p, d, strict=True)
        spatial = tuple((n + 2 * pi - di * (ki - 1) - 1) // si + 1 for n, ki, si, pi, di in sizes)
        return self._convolved(Conv(s, p, d, groups), x, (x.shape[0], channels, *spatial), k, bias, name)

    def conv_transposed(
        self,
        x: Tensor,
        channels: int,
        kernel: Sizes,
        *,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> Tensor:
        """Transposed ("up-") convolution."""
        dims = len(x.shape) - 2
        k, s, p, o = (_spread(v, dims) for v in (kernel, stride, padding, output_padding))
        sizes = zip(x.shape[2:], k, s, p, o, strict=True)
        spatial = tuple((n - 1) * si - 2 * pi + ki + oi for n, ki, si, pi, oi in sizes)
        kind = Conv(s, p, (1,) * dims, groups, transposed=True)
        return self._convolved(kind, x, (x.shape[0], channels, *spatial), k, bias, name)

    def _convolved(
        self, kind: Conv, x: Tensor, shape: tuple[int, ...], kernel: tuple[int, ...], bias: bool, name: str | None
    ) -> Tensor:
        """The op with its weight, (out, in/groups, …) or transposed (in, out/groups, …), and its bias."""
        label = name or self._fresh("conv_transposed" if kind.transposed else "conv")
        into, channels, groups = x.shape[1], shape[1], kind.groups
        if into % groups or channels % groups:
            raise BadInput(
                f"{self.name}: {label} has {groups} groups, which do not divide {into} → {channels} channels"
            )
        first, second = (into, channels) if kind.transposed else (channels, into)
        with self.scope(label):
            weights = [self.parameter("weight", (first, second // groups, *kernel))]
            if bias:
                weights.append(self.parameter("bias", (channels,)))
        return self.op(kind, [x], [shape], weights=weights, name=label)[0]

    def linear(
        self, x: Tensor, features: int, *, bias: bool = True, weight: Tensor | None = None, name: str | None = None
    ) -> Tensor:
        """A product with a (features, width) weight over the last dimension; `weight` ties it to one that exists."""
        label = name or self._fresh("linear")
        with self.scope(label):
            table = weight if weight is not None else self.parameter("weight", (features, x.shape[-1]))
            weights = [table, self.parameter("bias", (features,))] if bias else [table]
        return self.op(Matmul(transpose_b=True), [x], [(*x.shape[:-1], features)], weights=weights, name=label)[0]

    def matmul(
        self, a: Tensor, b: Tensor, *, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None
    ) -> Tensor:
        """A product of two computed tensors."""
        rows = a.shape[-1] if transpose_a else a.shape[-2]
        columns = b.shape[-2] if transpose_b else b.shape[-1]
        lead = a.shape[:-2] if len(a.shape) >= len(b.shape) else b.shape[:-2]
        return self.op(Matmul(transpose_a, transpose_b), [a, b], [(*lead, rows, columns)], name=name or "matmul")[0]

    def attention(self, q: Tensor, k: Tensor, v: Tensor, *, name: str | None = None, **options: bool) -> Tensor:
        """Fused attention over (N, H, L, D) operands; `options` are the kind's: causal, dropout, padded."""
        shape = (*q.shape[:-1], v.shape[-1])
        return self.op(Attention(**options), [q, k, v], [shape], name=name or "attention")[0]

    def recurrent(
        self,
        x: Tensor,
        hidden: int,
        *,
        cell: str = "lstm",
        directions: int = 1,
        bias: bool = True,
        name: str | None = None,
    ) -> Tensor:
        """One recurrent layer over (N, T, I), in PyTorch's layout: two weights and two biases per direction."""
        label = name or self._fresh(cell)
        kind = Recurrent(cell, hidden, directions)
        rows = kind.gates * hidden
        weights = []
        with self.scope(label):
            for suffix in ("", "_reverse")[:directions]:
                weights.append(self.parameter(f"weight_ih{suffix}", (rows, x.shape[-1])))
                weights.append(self.parameter(f"weight_hh{suffix}", (rows, hidden)))
                if bias:
                    weights.append(self.parameter(f"bias_ih{suffix}", (rows,)))
                    weights.append(self.parameter(f"bias_hh{suffix}", (rows,)))
        return self.op(kind, [x], [(*x.shape[:2], directions * hidden)], weights=weights, name=label)[0]

    def embedding(self, ids: Tensor, rows: int, width: int, *, name: str | None = None) -> Tensor:
        """Rows of a learned table."""
        label = name or self._fresh("embedding")
        with self.scope(label):
            table = self.parameter("weight", (rows, width))
        return self.op(Embedding(), [ids], [(*ids.shape, width)], weights=[table], name=label)[0]

    # ---- normalisation and pooling --------------------------------------------------------------

    def norm(
        self, x: Tensor, style: str, features: int, *, affine: bool = True, bias: bool = True, name: str | None = None
    ) -> Tensor:
        """Any normalisation with a scale (and shift) of `features`."""
        label = name or self._fresh(f"{style}_norm")
        weights = []
        with self.scope(label):
            if affine:
                weights.append(self.parameter("weight", (features,)))
                if bias:
                    weights.append(self.parameter("bias", (features,)))
        return self.op(Norm(style), [x], [x.shape], weights=weights, name=label)[0]

    def batch_norm(self, x: Tensor, *, affine: bool = True, name: str | None = None) -> Tensor:
        """Batch normalisation over the channels."""
        return self.norm(x, "batch", x.shape[1], affine=affine, name=name)

    def layer_norm(self, x: Tensor, *, affine: bool = True, bias: bool = True, name: str | None = None) -> Tensor:
        """Layer normalisation over the last dimension."""
        return self.norm(x, "layer", x.shape[-1], affine=affine, bias=bias, name=name)

    def rms_norm(self, x: Tensor, *, name: str | None = None) -> Tensor:
        """Root-mean-square normalisation over the last dimension: a scale, no shift."""
        return self.norm(x, "rms", x.shape[-1], bias=False, name=name)

    def pool(
        self,
        x: Tensor,
        style: str,
        window: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        *,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> Tensor:
        """Max or average pooling; `ceil_mode` keeps a last partial window, as long as it starts inside the input."""
        dims = len(x.shape) - 2
        k, p = _spread(window, dims), _spread(padding, dims)
        s = k if stride is None else _spread(stride, dims)
        spatial = []
        for n, ki, si, pi in zip(x.shape[2:], k, s, p, strict=True):
            size = (n + 2 * pi - ki + (si - 1 if ceil_mode else 0)) // si + 1
            if ceil_mode and (size - 1) * si >= n + pi:
                size -= 1
            spatial.append(size)
        shape = (*x.shape[:2], *spatial)
        results: list[Sequence[int]] = [shape, shape] if style == "max" else [shape]
        dtypes = [x.dtype, DType.INT64][: len(results)]
        return self.op(Pool(style, k, s, p), [x], results, dtypes=dtypes, name=name or f"{style}_pool")[0]

    def max_pool(
        self,
        x: Tensor,
        window: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        *,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> Tensor:
        """Max pooling."""
        return self.pool(x, "max", window, stride, padding, ceil_mode=ceil_mode, name=name)

    def average_pool(
        self,
        x: Tensor,
        window: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        *,
        ceil_mode: bool = False,
        name: str | None = None,
    ) -> Tensor:
        """Average pooling."""
        return self.pool(x, "average", window, stride, padding, ceil_mode=ceil_mode, name=name)

    def adaptive_average_pool(self, x: Tensor, size: Sizes = 1, *, name: str | None = None) -> Tensor:
        """Average pooling to a given output size; size 1 is a global average."""
        dims = len(x.shape) - 2
        zero = (0,) * dims
        kind = Pool("average", zero, zero, zero)
        return self.op(kind, [x], [(*x.shape[:2], *_spread(size, dims))], name=name or "average_pool")[0]

    # ---- element by element ---------------------------------------------------------------------

    def elementwise(self, function: str, *inputs: Tensor, name: str | None = None) -> Tensor:
        """One output per element; the result has the broadcast shape of the inputs."""
        shape = broadcast([t.shape for t in inputs])
        if shape is None:
            shapes = " and ".join(_show(t.shape[1:]) for t in inputs)
            raise BadInput(f"{self.name}: {name or function} joins {shapes}, which do not fit: use another input size")
        return self.op(Elementwise(function), inputs, [shape], name=name or function)[0]

    def relu(self, x: Tensor, *, name: str | None = None) -> Tensor:
        """max(x, 0)"""
        return self.elementwise(self.relu_function, x, name=name)

    def add(self, a: Tensor, b: Tensor, *, name: str | None = None) -> Tensor:
        """a + b, broadcast."""
        return self.elementwise("add", a, b, name=name)

    def mul(self, a: Tensor, b: Tensor, *, name: str | None = None) -> Tensor:
        """a · b, broadcast."""
        return self.elementwise("mul", a, b, name=name)

    def dropout(self, x: Tensor, *, name: str | None = None) -> Tensor:
        """Writes the result and a boolean mask, which backward reads."""
        shapes = [x.shape, x.shape]
        return self.op(Elementwise("dropout"), [x], shapes, dtypes=[x.dtype, DType.BOOL], name=name or "dropout")[0]

    def softmax(self, x: Tensor, *, log: bool = False, name: str | None = None) -> Tensor:
        """Over the last dimension."""
        return self.op(Softmax(log), [x], [x.shape], name=name or "softmax")[0]

    def reduce(
        self, function: str, x: Tensor, axes: Sequence[int], *, keep: bool = False, name: str | None = None
    ) -> Tensor:
        """Sum, mean, … over some dimensions."""
        reduced_axes = {a % len(x.shape) for a in axes}
        shape = tuple(1 if i in reduced_axes else n for i, n in enumerate(x.shape) if keep or i not in reduced_axes)
        return self.op(Reduce(function), [x], [shape], name=name or function)[0]

    # ---- moving data ----------------------------------------------------------------------------

    def concatenate(self, tensors: Sequence[Tensor], axis: int = 1, *, name: str | None = None) -> Tensor:
        """Along one axis; copies everything."""
        first = tensors[0]
        axis %= len(first.shape)
        for other in tensors[1:]:
            if other.shape[:axis] != first.shape[:axis] or other.shape[axis + 1 :] != first.shape[axis + 1 :]:
                shapes = " and ".join(_show(t.shape[1:]) for t in tensors)
                label = name or "concatenate"
                raise BadInput(f"{self.name}: {label} joins {shapes}, which do not fit: use another input size")
        shape = list(first.shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        return self.op(Copy("concatenate"), tensors, [shape], name=name or "concatenate")[0]

    def copy(self, function: str, x: Tensor, shape: Sequence[int], *, name: str | None = None) -> Tensor:
        """Bytes moved into another arrangement: contiguous, pad, roll, repeat."""
        return self.op(Copy(function), [x], [shape], name=name or function)[0]

    def gather(
        self, function: str, x: Tensor, shape: Sequence[int], *indices: Tensor, name: str | None = None
    ) -> Tensor:
        """Elements by index; interpolation too."""
        return self.op(Gather(function), [x, *indices], [shape], name=name or function)[0]

    def view(self, x: Tensor, shape: Sequence[int], function: str = "reshape") -> Tensor:
        """Another shape of the same memory (or of a part of it)."""
        return self.op(View(function), [x], [shape], dtypes=[x.dtype], name=function)[0]

    def flatten(self, x: Tensor) -> Tensor:
        """(N, everything else)"""
        return self.view(x, (x.shape[0], prod(x.shape[1:])), "flatten")

    def split(self, x: Tensor, parts: int | Sequence[int], axis: int = -1) -> tuple[Tensor, ...]:
        """Slices along an axis, in place; backward writes the pieces back into one tensor."""
        axis %= len(x.shape)
        sizes = [x.shape[axis] // parts] * parts if isinstance(parts, int) else list(parts)
        shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
        return self.op(View("split"), [x], shapes, dtypes=[x.dtype] * len(shapes), name="split")

    def opaque(
        self, target: str, inputs: Sequence[Tensor], shapes: Sequence[Sequence[int]], *, name: str | None = None
    ) -> tuple[Tensor, ...]:
        """An operator of the user, else one without a rule: its bytes are known, and the answer lists it."""
        return self.op(kind_named(target), inputs, shapes, name=name or target)

    # ---- names ----------------------------------------------------------------------------------

    def _path(self, name: str) -> str:
        return ".".join([*self._scope, name])

    def _fresh(self, label: str) -> str:
        """The label, with a number if this scope already has it: unnamed layers do not share their weights."""
        path = self._path(label)
        number = next(n for n in count(self._numbers.get(path, 0)) if f"{path}{n or ''}" not in self._counts)
        self._numbers[path] = number
        return f"{label}{number or ''}"

    def _unique(self, path: str) -> str:
        self._counts[path] = 1 + (uses := self._counts.get(path, 0))
        return f"{path}/out" if uses == 0 else f"{path}/out{uses}"


def _spread(value: Sizes, dims: int) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * dims
    if len(value) != dims:
        raise BadInput(f"expected {dims} sizes, got {tuple(value)}")
    return tuple(value)


def _show(shape: Sequence[int]) -> str:
    return "×".join(str(n) for n in shape) or "a scalar"
