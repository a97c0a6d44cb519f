"""What an operator does, as small typed values. A kind never depends on the batch: sizes are on the tensors of an `Op`.

Formulas over kinds (`work`, `backward`, `receptive`) dispatch on the class, so a new kind is a class and an entry here,
and its formulas there; `tests/describe/graph/test_op_kinds.py` names the tables that lack one. A kind without a
formula for its flops is treated like `Opaque`. Conventions: images are channels-first (N, C, …spatial) in shapes,
whatever the memory layout; token tensors are (N, length, width).
"""

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Kind:
    """Base of all kinds. `label` is the word tables show."""

    label: ClassVar[str] = "op"

    def attributes(self) -> dict[str, object]:
        """The fields by name, for spec files."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Matmul(Kind):
    """(…, M, K) x (…, K, N); the second operand is a weight where the op has weights.

    A transposed operand is stored the other way round: `transpose_b` is a linear layer's (N, K) weight.
    A second weight is a bias, added in the epilogue.
    """

    label: ClassVar[str] = "matmul"
    transpose_a: bool = False
    transpose_b: bool = False


@dataclass(frozen=True, slots=True)
class Conv(Kind):
    """Convolution in one to three dimensions; weight (C_out, C_in/groups, …k), transposed (C_in, C_out/groups, …k)."""

    label: ClassVar[str] = "conv"
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1, 1)
    groups: int = 1
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class Attention(Kind):
    """softmax(QKᵀ)V fused, as a flash kernel runs it: q (N, H, L, D), k and v (N, H_kv, S, D).

    No L x S matrix is in memory. `window` is how many keys a query looks at, at most; 0: all of them. A fourth input
    is a bias or mask of the scores. `dropout` is of the probabilities, which a fused kernel draws again in backward;
    `padded`: written out, the model adds a mask of padded keys. Both cost something only in eager attention. `capped`:
    scores are bent by a tanh (Gemma 2), which FlashAttention 2 does and PyTorch's own fused kernels do not.
    """

    label: ClassVar[str] = "attention"
    causal: bool = False
    window: int = 0
    dropout: bool = False
    padded: bool = False
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Norm(Kind):
    """Normalisation over `style`: batch, layer, group, instance, rms, local_response (or any other framework name)."""

    label: ClassVar[str] = "norm"
    style: str = "batch"


@dataclass(frozen=True, slots=True)
class Pool(Kind):
    """Pooling by `style` (max, average); `window` (0,) is a global or adaptive pool over everything it can see."""

    label: ClassVar[str] = "pool"
    style: str = "max"
    window: tuple[int, ...] = (2, 2)
    stride: tuple[int, ...] = (2, 2)
    padding: tuple[int, ...] = (0, 0)


@dataclass(frozen=True, slots=True)
class Softmax(Kind):
    """Softmax over the last dimension (`log`: its logarithm)."""

    label: ClassVar[str] = "softmax"
    log: bool = False


@dataclass(frozen=True, slots=True)
class Elementwise(Kind):
    """One output element from one element of each input: relu, add, gelu, dropout, …"""

    label: ClassVar[str] = "elementwise"
    function: str = "add"


@dataclass(frozen=True, slots=True)
class Reduce(Kind):
    """Many elements to one: sum, mean, max, norm, topk, sort, cumsum …"""

    label: ClassVar[str] = "reduce"
    function: str = "sum"


@dataclass(frozen=True, slots=True)
class Embedding(Kind):
    """Rows of a table (the weight) by index. Moves the rows looked up, not the table."""

    label: ClassVar[str] = "embedding"


@dataclass(frozen=True, slots=True)
class Gather(Kind):
    """Elements or rows of an input by index, interpolation and other scattered reads."""

    label: ClassVar[str] = "gather"
    function: str = "index"


@dataclass(frozen=True, slots=True)
class Scatter(Kind):
    """Writes or adds by index: embedding gradients, max-unpooling, mixture-of-experts combine."""

    label: ClassVar[str] = "scatter"
    function: str = "add"


@dataclass(frozen=True, slots=True)
class Copy(Kind):
    """Moves bytes without arithmetic: contiguous, concatenate, pad, cast, fill, roll."""

    label: ClassVar[str] = "copy"
    function: str = "copy"


@dataclass(frozen=True, slots=True)
class View(Kind):
    """Moves nothing: reshape, transpose, slice, split. `function` names it; it costs no kernel.

    What a collective makes (gathered, scattered) has a storage of its own, though no kernel here writes it.
    """

    label: ClassVar[str] = "view"
    function: str = "reshape"

    @property
    def shares_storage(self) -> bool:
        """Whether the result lies in the storage of its source."""
        return self.function not in (GATHERED, SCATTERED)


GATHERED, SCATTERED = "gathered", "scattered"


@dataclass(frozen=True, slots=True)
class Recurrent(Kind):
    """A recurrent layer over a sequence: x (N, T, I) → (N, T, directions·H), one weight set per direction."""

    label: ClassVar[str] = "recurrent"
    cell: str = "lstm"
    hidden: int = 1
    directions: int = 1

    @property
    def gates(self) -> int:
        """Matrix products per step: lstm 4, gru 3, rnn 1."""
        return {"lstm": 4, "gru": 3}.get(self.cell, 1)


@dataclass(frozen=True, slots=True)
class Loss(Kind):
    """From outputs and targets to one number; `function` nll, mse, bce, …"""

    label: ClassVar[str] = "loss"
    function: str = "nll"


@dataclass(frozen=True, slots=True)
class OptimizerUpdate(Kind):
    """One pass of an optimizer over its tensors: everything in `inputs` is read, everything in `outputs` is written.

    `style` is how the framework runs it: foreach (one multi-tensor kernel per pass), fused (one kernel for
    the whole rule), loop (one kernel per tensor).
    """

    label: ClassVar[str] = "update"
    algorithm: str = "sgd"
    step: str = "add"
    style: str = "foreach"
    flops_per_element: int = 1


@dataclass(frozen=True, slots=True)
class Opaque(Kind):
    """An operator without a formula. Its bytes are known, its flops are not: costed by bytes, listed in the answer."""

    label: ClassVar[str] = "opaque"
    target: str = "unknown"


KIND_CLASSES: dict[str, type[Kind]] = {
    kind.label: kind
    for kind in (
        Matmul,
        Conv,
        Attention,
        Norm,
        Pool,
        Softmax,
        Elementwise,
        Reduce,
        Embedding,
        Gather,
        Scatter,
        Copy,
        View,
        Recurrent,
        Loss,
        OptimizerUpdate,
        Opaque,
    )
}
"""Every kind by its label, as spec files write it."""
