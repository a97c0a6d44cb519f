"""The update of the parameters, pass by pass, with the state each rule keeps and the bytes each pass moves.

A rule is a list of passes over all trainable tensors, in the order PyTorch's `foreach` implementations run them
(torch/optim/*.py, `_multi_tensor_*`): p is the parameter, g its gradient; other letters are its state where the rule
lists them, else temporaries. `foreach` runs each pass as multi-tensor kernels; `loop` runs each pass once per tensor;
`fused` runs the whole rule in one kernel that reads every tensor once and writes back parameters and state.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Matmul, OptimizerUpdate, Reduce
from epochcast.describe.graph.tensor import DType, Relation, Tensor, grad
from epochcast.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Pass:
    """One sweep over all tensors: what is read and written (letters of the rule), flops per element written."""

    step: str
    reads: str
    writes: str
    flops: int = 1


@dataclass(frozen=True, slots=True)
class OptimizerRule:
    """An optimizer: its passes, its per-parameter state by letter and name, and the letters whose norms are taken
    before the last pass. `state_dtype` is the dtype of the state where it differs from the parameter's.

    Letters in `factored` have a value per row and one per column instead of one per element. `in_turn`: one tensor is
    updated after another, so that temporaries are of one tensor at a time. `is_paged`: the state lies in memory that
    moves to the host where the device has no room (CUDA's unified memory). `orthogonal` is the letter that Newton and
    Schulz's iteration makes orthogonal before the last two passes; only matrices have that rule, all else has `others`.
    """

    passes: tuple[Pass, ...]
    state: Mapping[str, str]
    norms: str = ""
    state_dtype: DType | None = None
    factored: str = ""
    in_turn: bool = False
    is_paged: bool = False
    orthogonal: str = ""
    others: str = ""

    @property
    def state_tensors(self) -> int:
        """Tensors of the parameter's size kept between steps."""
        return len(self.state)


_SGD = Pass("add", "pg", "p", 2)
_MOMENTUM = (Pass("mul", "b", "b"), Pass("add", "bg", "b", 2))
_ADAM = (
    Pass("lerp", "mg", "m", 3),
    Pass("mul", "v", "v"),
    Pass("addcmul", "vgg", "v", 3),
    Pass("sqrt", "v", "t", 2),
    Pass("div", "t", "t"),
    Pass("add", "t", "t"),
    Pass("addcdiv", "pmt", "p", 3),
)
_DECAY = Pass("decay", "p", "p")
_ADAM_STEP, _LION_STEP = Pass("step", "pgmv", "pmv", 5), Pass("step", "pgm", "pm", 4)
_MOMENTS, _MOMENT = {"m": "exp_avg", "v": "exp_avg_sq"}, {"m": "exp_avg"}
# bitsandbytes keeps the state of smaller tensors as it is (min_8bit_size).
LEAST_QUANTISED_ELEMENTS = 4096

OPTIMIZERS: Mapping[str, OptimizerRule] = {
    "sgd": OptimizerRule((_SGD,), {}),
    "momentum": OptimizerRule((*_MOMENTUM, Pass("add", "pb", "p", 2)), {"b": "momentum_buffer"}),
    "nesterov": OptimizerRule((*_MOMENTUM, Pass("add", "gb", "g", 2), _SGD), {"b": "momentum_buffer"}),
    "adam": OptimizerRule(_ADAM, {"m": "exp_avg", "v": "exp_avg_sq"}),
    "adamw": OptimizerRule((_DECAY, *_ADAM), {"m": "exp_avg", "v": "exp_avg_sq"}),
    "rmsprop": OptimizerRule(
        (
            Pass("mul", "v", "v"),
            Pass("addcmul", "vgg", "v", 3),
            Pass("sqrt", "v", "t", 2),
            Pass("add", "t", "t"),
            Pass("addcdiv", "pgt", "p", 3),
        ),
        {"v": "square_avg"},
    ),
    "adagrad": OptimizerRule(
        (
            Pass("addcmul", "vgg", "v", 3),
            Pass("sqrt", "v", "t", 2),
            Pass("add", "t", "t"),
            Pass("mul", "g", "u", 1),
            Pass("addcdiv", "put", "p", 2),
        ),
        {"v": "sum"},
    ),
    "adadelta": OptimizerRule(
        (
            Pass("mul", "v", "v"),
            Pass("addcmul", "vgg", "v", 3),
            Pass("add", "v", "s", 1),
            Pass("sqrt", "s", "s", 2),
            Pass("add", "a", "t", 1),
            Pass("sqrt", "t", "t", 2),
            Pass("div", "ts", "t", 1),
            Pass("mul", "tg", "t", 1),
            Pass("mul", "a", "a"),
            Pass("addcmul", "att", "a", 3),
            Pass("add", "pt", "p", 2),
        ),
        {"v": "square_avg", "a": "acc_delta"},
    ),
    # You et al. 2020: Adam's direction, scaled per tensor by the ratio of two norms.
    "lamb": OptimizerRule(
        (*_ADAM[:-1], Pass("div", "mt", "t"), Pass("add", "tp", "t", 2), Pass("add", "pt", "p", 2)),
        {"m": "exp_avg", "v": "exp_avg_sq"},
        norms="pt",
    ),
    # Dettmers et al. 2022 (bitsandbytes): Adam in one kernel, both moments quantised block by block.
    "adam8bit": OptimizerRule((_ADAM_STEP,), _MOMENTS, state_dtype=DType.UINT8),
    "adamw8bit": OptimizerRule((_ADAM_STEP,), _MOMENTS, state_dtype=DType.UINT8),
    "lion8bit": OptimizerRule((_LION_STEP,), _MOMENT, state_dtype=DType.UINT8),
    # Dettmers et al. 2023 (QLoRA, section 3): the same with state that is paged.
    "paged_adam": OptimizerRule((_ADAM_STEP,), _MOMENTS, is_paged=True),
    "paged_adamw": OptimizerRule((_ADAM_STEP,), _MOMENTS, is_paged=True),
    "paged_adam8bit": OptimizerRule((_ADAM_STEP,), _MOMENTS, state_dtype=DType.UINT8, is_paged=True),
    "paged_adamw8bit": OptimizerRule((_ADAM_STEP,), _MOMENTS, state_dtype=DType.UINT8, is_paged=True),
    "paged_lion8bit": OptimizerRule((_LION_STEP,), _MOMENT, state_dtype=DType.UINT8, is_paged=True),
    # Chen et al. 2023: the sign of a momentum; one moment is kept.
    "lion": OptimizerRule(
        (
            _DECAY,
            Pass("lerp", "mg", "t", 3),
            Pass("sign", "t", "t"),
            Pass("add", "pt", "p", 2),
            Pass("lerp", "mg", "m", 3),
        ),
        _MOMENT,
        in_turn=True,
    ),
    # Shazeer & Stern 2018, without momentum, as torch.optim.Adafactor: of a matrix's second moments only the means of
    # rows and columns are kept. It runs tensor by tensor unless one asks for foreach.
    "adafactor": OptimizerRule(
        (
            _DECAY,
            Pass("mul", "gg", "t", 1),
            Pass("mean", "t", "v", 1),
            Pass("outer", "v", "t", 1),
            Pass("rsqrt", "t", "t", 2),
            Pass("mul", "tg", "t", 1),
            Pass("add", "pt", "p", 2),
        ),
        {"v": "row_and_col_var"},
        norms="pt",
        factored="v",
        in_turn=True,
    ),
    # Jordan et al. 2024, as torch.optim.Muon: a momentum made orthogonal; what is no matrix has AdamW.
    "muon": OptimizerRule(
        (Pass("lerp", "mg", "m", 3), Pass("lerp", "gm", "t", 3), _DECAY, Pass("add", "pt", "p", 2)),
        {"m": "momentum_buffer"},
        in_turn=True,
        orthogonal="t",
        others="adamw",
    ),
    "none": OptimizerRule((), {}),
}
"""Every optimizer by name; "none" updates nothing."""

ALIASES = {
    "sgd_momentum": "momentum",
    "sgdm": "momentum",
    "momentum_sgd": "momentum",
    # As Hugging Face's TrainingArguments spell them.
    "adamw_torch": "adamw",
    "adamw_hf": "adamw",
    "adamw_8bit": "adamw8bit",
    "adamw_bnb_8bit": "adamw8bit",
    "adam_8bit": "adam8bit",
    "lion_32bit": "lion",
    "lion_8bit": "lion8bit",
    "paged_adamw_32bit": "paged_adamw",
    "paged_adamw_8bit": "paged_adamw8bit",
    "paged_lion_8bit": "paged_lion8bit",
}
# Newton and Schulz's iteration of torch.optim.Muon (ns_steps) and of its author.
ITERATIONS = 5
# A table of at least so many rows, and four times as many as columns, is a vocabulary, which Muon leaves to AdamW.
VOCABULARY_ROWS, VOCABULARY_RATIO = 30_000, 4


def find_optimizer(name: str) -> str:
    """The canonical name of an optimizer; of torch.optim.Adam the last part counts."""
    key = name.casefold().replace("-", "_").rpartition(".")[2]
    key = ALIASES.get(key, key)
    if key not in OPTIMIZERS:
        raise UnknownName("optimizer", name, OPTIMIZERS)
    return key


def update(
    parameters: Iterable[Parameter], optimizer: str, style: str = "foreach", *, is_apart: bool = False
) -> tuple[Op, ...]:
    """The ops that update every trainable parameter once; `is_apart`: one parameter after the other."""
    optimizer = find_optimizer(optimizer)
    trained = tuple(p for p in parameters if p.trainable)
    if is_apart:
        return tuple(
            replace(op, name=f"{op.name}:{parameter.name}")
            for parameter in trained
            for op in update([parameter], optimizer, style)
        )
    rule = OPTIMIZERS[optimizer]
    if not rule.others:
        return tuple(_updated(optimizer, rule, tuple(p.tensor for p in trained), style))
    matrices = tuple(p.tensor for p in trained if _is_matrix(p.tensor))
    rest = [p for p in trained if not _is_matrix(p.tensor)]
    return (*_updated(optimizer, rule, matrices, "loop"), *update(rest, rule.others, style))


def _updated(optimizer: str, rule: OptimizerRule, trained: tuple[Tensor, ...], style: str) -> Iterator[Op]:
    if not trained or not rule.passes:
        return
    if style == "fused" and not rule.orthogonal:
        yield _fused(optimizer, rule, trained)
        return
    if rule.in_turn:
        style = "loop"
    elif style == "loop":
        rule = replace(rule, in_turn=True)  # temporaries of one tensor at a time
    ops = []
    for index, sweep in enumerate(rule.passes):
        kind = OptimizerUpdate(optimizer, sweep.step, style, sweep.flops)
        reads = tuple(_operand(letter, t, rule) for letter in dict.fromkeys(sweep.reads) for t in trained)
        writes = tuple(_operand(letter, t, rule) for letter in sweep.writes for t in trained)
        ops.append(Op(f"{optimizer}.{index}.{sweep.step}", kind, reads, writes, (), Phase.UPDATE, "optimizer"))
    for letter in rule.norms:
        measured = tuple(_operand(letter, t, rule) for t in trained)
        norms = tuple(Tensor((1,), t.dtype, f"norm:{t.name}") for t in measured)
        ops.insert(-1, Op(f"{optimizer}.norm.{letter}", Reduce("norm"), measured, norms, (), Phase.UPDATE, "optimizer"))
    if rule.orthogonal:
        products = [op for t in trained for op in _orthogonal(optimizer, _operand(rule.orthogonal, t, rule))]
        ops[-2:-2] = products
    yield from ops


def _is_matrix(tensor: Tensor) -> bool:
    """Whether Muon updates it: matrices, windows of convolutions as matrices, and stacks of them; no vocabulary."""
    if len(tensor.shape) < 2:
        return False
    rows, columns = tensor.shape[0], tensor.elements // (tensor.shape[0] or 1)
    return rows < VOCABULARY_ROWS or rows < VOCABULARY_RATIO * columns


def _orthogonal(optimizer: str, matrix: Tensor) -> Iterator[Op]:
    """X ← aX + (bA + cA²)X with A = XXᵀ, in bfloat16, X with fewer rows than columns: 4r²c + 2r³ flops each time."""
    stack = matrix.shape[:1] if len(matrix.shape) == 3 else ()
    rows = matrix.shape[len(stack)]
    sides = sorted((rows, matrix.elements // (rows * (stack[0] if stack else 1))))
    x = Tensor((*stack, *sides), DType.BFLOAT16, f"temporary_x:{optimizer}")
    gram, square = (
        Tensor((*stack, sides[0], sides[0]), DType.BFLOAT16, f"temporary_{letter}:{optimizer}") for letter in "ab"
    )
    products = (
        (Matmul(transpose_b=True), (x, x), gram),
        (Matmul(), (gram, gram), square),
        (Matmul(), (square, x), x),
    )
    for turn in range(ITERATIONS):
        for index, (kind, inputs, output) in enumerate(products):
            name = f"{optimizer}.{turn}.{index}:{matrix.name}"
            yield Op(name, kind, inputs, (output,), (), Phase.UPDATE, "optimizer")


def _fused(optimizer: str, rule: OptimizerRule, trained: tuple[Tensor, ...]) -> Op:
    state = tuple(_operand(letter, t, rule) for letter in rule.state for t in trained)
    flops = sum(sweep.flops for sweep in rule.passes)
    # flops are counted per element written, and the fused kernel writes the parameter and each state tensor
    kind = OptimizerUpdate(optimizer, "fused", "fused", max(1, round(flops / (1 + rule.state_tensors))))
    inputs = (*trained, *(grad(t) for t in trained), *state)
    return Op(f"{optimizer}.fused", kind, inputs, (*trained, *state), (), Phase.UPDATE, "optimizer")


def _operand(letter: str, parameter: Tensor, rule: OptimizerRule) -> Tensor:
    match letter:
        case "p":
            return parameter
        case "g":
            return grad(parameter)
        case _ if letter not in rule.state:
            # one storage for all where they are updated in turn: as large as the largest
            name = f"temporary_{letter}" + ("" if rule.in_turn else f":{parameter.name}")
            return Tensor(parameter.shape, parameter.dtype, name)
        case _:
            is_quantised = parameter.elements >= LEAST_QUANTISED_ELEMENTS
            dtype = rule.state_dtype if rule.state_dtype and is_quantised else parameter.dtype
            shape = _factors(parameter.shape) if letter in rule.factored else parameter.shape
            return Tensor(shape, dtype, f"{rule.state[letter]}:{parameter.name}", Relation(state_of=parameter.name))


def _factors(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A value per row and one per column of every matrix; a vector as it is."""
    return (*shape[:-2], shape[-2] + shape[-1]) if len(shape) > 1 else shape
