"""An operator (`Kind`), a call of it (`Op`), and a `Graph` of calls: the forward pass and the parameters it trains."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fnmatch import fnmatchcase
from typing import ClassVar

from epochcast.describe.graph.op_work import Matrix, OpClass, OpWork, WindowSizes
from epochcast.describe.graph.receptive_field import ReceptiveField
from epochcast.describe.graph.tensor import DType, Tensor, grad
from epochcast.errors import BadInput

Wanted = frozenset[str]
"""Names of the tensors whose gradient is wanted."""


class Phase(Enum):
    """The part of a training step an op belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"

    __hash__ = object.__hash__  # as of `DType`


class Gradient(Enum):
    """What a backward op computes: the gradient of its data, of its weights, both at once, or none."""

    NONE = "none"
    DATA = "data"
    WEIGHTS = "weights"
    BOTH = "both"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class Kind:
    """What an operator does, and its formulas: subclass it, override what differs, and register it with `register_op`.

    Fields are the operator's attributes; they have defaults and never depend on the batch: sizes are on the tensors of
    an `Op`. `label` is its name in tables and files, `runs_as` the class of ops that it runs like, `targets` are the
    names by which frameworks call it. Without a formula for its flops an operator is opaque: costed by its bytes and
    listed in the answer.
    Conventions: images are channels-first (N, C, …spatial) in shapes, whatever the memory layout; token tensors are
    (N, length, width).

    >>> from dataclasses import dataclass
    >>> import epochcast as ec
    >>> @dataclass(frozen=True, slots=True)
    ... class Swish(ec.Kind):
    ...     label = "docs_swish"
    ...     runs_as = ec.OpClass.ELEMENTWISE
    ...     def flops(self, op):
    ...         return 4 * op.outputs[0].elements
    >>> Swish().is_counted
    True
    """

    label: ClassVar[str] = "op"
    runs_as: ClassVar[OpClass] = OpClass.OPAQUE
    targets: ClassVar[tuple[str, ...]] = ()

    @property
    def is_counted(self) -> bool:
        """Whether there is a formula for its flops (which may be zero)."""
        return type(self).flops is not Kind.flops

    @property
    def title(self) -> str:
        """Its name in a list of operators."""
        return self.label

    @property
    def is_awaited(self) -> bool:
        """Whether the host reads its results before it starts anything else, so that it waits for the device."""
        return False

    def attributes(self) -> dict[str, object]:
        """The fields by name, for spec files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def check(self, weights: Sequence[Tensor]) -> None:
        """Raise BadInput where attributes and weights contradict each other."""

    def op_class(self, op: "Op") -> OpClass:
        """The class of ops that it runs like."""
        return self.runs_as

    def flops(self, op: "Op") -> int:
        """Additions and multiplications; unknown where a kind does not say."""
        return 0

    def run_fraction(self, op: "Op") -> float:
        """Which part of the counted flops a kernel runs."""
        return 1.0

    def read_bytes(self, op: "Op") -> int:
        """Every operand once."""
        return sum(t.bytes for t in op.inputs) + sum(t.bytes for t in op.weights)

    def written_bytes(self, op: "Op") -> int:
        """Every result once."""
        return sum(t.bytes for t in op.outputs)

    def saved_bytes(self, op: "Op") -> int:
        """What a kernel saves for its backward pass in addition to its results: statistics, log-sum-exps, gates.
        These storages have no name in a trace because no other op reads them.
        """
        return 0

    def launches(self, op: "Op") -> int:
        """Kernels started: one."""
        return 1

    def matrix(self, op: "Op") -> Matrix:
        """Its shape as a matrix product; by default m elements of one column: the size of the larger side."""
        return Matrix(max([t.elements for t in (*op.outputs, *op.inputs)], default=0), 1, 1, 1)

    def window_sizes(self, op: "Op") -> WindowSizes:
        """Its window, stride, groups and channels; by default none."""
        return WindowSizes()

    def gradients(self, op: "Op", wanted: Wanted) -> Iterator["Op"]:
        """The backward ops of a forward op, for the tensors whose gradient is wanted. By default one op of the same
        kind reads and writes what forward did, with gradients.
        """
        results = tuple(grad(t) for t in (*op.inputs, *op.weights) if t.name in wanted)
        if results:
            operands = (grad(op.output), *op.inputs)
            yield op.backward_op(self, operands, results, weights=op.weights, gradient=Gradient.BOTH)

    def receptive_field(self, op: "Op", before: ReceptiveField, spatial: tuple[int, ...]) -> ReceptiveField:
        """The field behind the op, from the field before it and the input's spatial sizes. By default positions stay
        where they are.
        """
        return before


@dataclass(frozen=True, slots=True)
class Op:
    """One operator call with every shape on it.

    A backward op keeps the kind of its forward op and says by `gradient` which product it is; its tensors are those it
    reads and writes. `tf32`: float32 operands are multiplied on tensor cores.

    >>> import epochcast as ec
    >>> trace = ec.forecast("resnet18", device="V100", batch=32).details.trace
    >>> op = trace.ops[0]
    >>> isinstance(op, ec.Op), op.phase.value
    (True, 'forward')
    """

    name: str
    kind: Kind
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    weights: tuple[Tensor, ...] = ()
    phase: Phase = Phase.FORWARD
    layer: str = ""
    gradient: Gradient = Gradient.NONE
    tf32: bool = False

    def on(
        self,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
        weights: tuple[Tensor, ...],
        kind: Kind | None = None,
    ) -> "Op":
        """The same call on other tensors."""
        kind = kind or self.kind
        return Op(self.name, kind, inputs, outputs, weights, self.phase, self.layer, self.gradient, self.tf32)

    @property
    def is_gradient(self) -> bool:
        """Whether it computes a gradient. A forward op that checkpointing runs again inside backward does not."""
        return self.gradient is not Gradient.NONE

    @property
    def is_recomputed(self) -> bool:
        """Whether it is a forward op that checkpointing runs again inside backward."""
        return any(t.relation.is_recomputed for t in self.outputs)

    @property
    def output(self) -> Tensor:
        """The first output."""
        return self.outputs[0]

    @property
    def dtype(self) -> DType:
        """The dtype the arithmetic runs in: that of the first floating-point operand."""
        for tensor in self.inputs:
            if tensor.dtype.is_float:
                return tensor.dtype
        for tensor in (*self.weights, *self.outputs):
            if tensor.dtype.is_float:
                return tensor.dtype
        return self.inputs[0].dtype if self.inputs else DType.FLOAT32

    @property
    def math(self) -> str:
        """The name of the device peak that bounds this op."""
        dtype = self.dtype
        return "tf32" if self.tf32 and dtype is DType.FLOAT32 else dtype.math

    @property
    def op_class(self) -> OpClass:
        """Its class. A kind without a formula for its flops is opaque, whatever its class would be."""
        return self.kind.op_class(self) if self.kind.is_counted else OpClass.OPAQUE

    @property
    def work(self) -> OpWork:
        """All numbers that grow with the batch."""
        kind = self.kind
        return OpWork(
            kind.flops(self), kind.read_bytes(self), kind.written_bytes(self), *kind.matrix(self), kind.launches(self)
        )

    def backward_op(
        self,
        kind: Kind,
        inputs: tuple[Tensor, ...],
        outputs: tuple[Tensor, ...],
        *,
        weights: tuple[Tensor, ...] = (),
        gradient: Gradient = Gradient.DATA,
        suffix: str = "backward",
    ) -> "Op":
        """An op of its backward pass, in its layer."""
        name = f"{self.name}.{suffix}"
        return Op(name, kind, inputs, outputs, weights, Phase.BACKWARD, self.layer, gradient, self.tf32)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A learned tensor; `trainable` is false where it is frozen."""

    tensor: Tensor
    trainable: bool = True
    layer: str = ""

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.tensor.name

    @property
    def elements(self) -> int:
        """Number of values."""
        return self.tensor.elements


@dataclass(frozen=True)
class Graph:
    """Forward ops in executable order, their inputs and parameters, at one batch size.

    `outputs` are what the loss sees (several where there are auxiliary heads); `loss` names it. `unit` is what the
    published throughput of such a model counts (samples, tokens), `units_per_sample` how many of them a sample has.
    """

    name: str
    batch: int
    inputs: tuple[Tensor, ...]
    ops: tuple[Op, ...]
    parameters: tuple[Parameter, ...]
    outputs: tuple[Tensor, ...]
    loss: str = "cross_entropy"
    unit: str = "samples"
    units_per_sample: int = 1
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        defined = {t.name for t in self.inputs} | {p.name for p in self.parameters}
        for op in self.ops:
            for tensor in (*op.inputs, *op.weights):
                if tensor.name not in defined:
                    raise ValueError(f"{self.name}: op {op.name!r} reads {tensor.name!r} before it is made")
            defined.update(t.name for t in op.outputs)
        for tensor in self.outputs:
            if tensor.name not in defined:
                raise ValueError(f"{self.name}: output {tensor.name!r} is never made")

    @property
    def parameter_count(self) -> int:
        """Values in all parameters, frozen ones included."""
        return sum(p.elements for p in self.parameters)

    @property
    def trainable_parameter_count(self) -> int:
        """Values in the parameters that are trained."""
        return sum(p.elements for p in self.parameters if p.trainable)

    def frozen(self, patterns: Iterable[str]) -> "Graph":
        """The same graph with every parameter whose name or layer matches a glob pattern frozen."""
        globs = tuple(patterns)
        matches = dict.fromkeys(globs, 0)

        def is_frozen(parameter: Parameter) -> bool:
            matched = [g for g in globs if fnmatchcase(parameter.name, g) or fnmatchcase(parameter.layer, g)]
            for glob in matched:
                matches[glob] += 1
            return bool(matched)

        parameters = tuple(replace(p, trainable=not is_frozen(p) and p.trainable) for p in self.parameters)
        for glob, count in matches.items():
            if not count:
                layers = ", ".join(sorted({p.layer.split(".")[0] for p in self.parameters})[:8])
                raise BadInput(
                    f"`freeze` pattern {glob!r} matches no parameter of {self.name}; layers begin with: {layers}"
                )
        return replace(self, parameters=parameters)
