"""One operator call, and a `Graph` of them: the forward pass and the parameters it trains."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase

from epochcast.describe.graph.op_kinds import Kind
from epochcast.describe.graph.tensor import DType, Tensor
from epochcast.errors import BadInput


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
class Op:
    """One operator call with every shape on it.

    A backward op keeps the kind of its forward op and says by `gradient` which product it is; its tensors are those it
    reads and writes. `tf32`: float32 operands are multiplied on tensor cores.
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
