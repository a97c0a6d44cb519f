"""The update of the parameters, pass by pass, with the state each rule keeps and the bytes each pass moves.

A rule is a list of passes over all trainable tensors, in the order PyTorch's `foreach` implementations run them
(torch/optim/*.py, `_multi_tensor_*`): p is the parameter, g its gradient; other letters are its state where the rule
lists them, else temporaries. `foreach` runs each pass as multi-tensor kernels; `loop` runs each pass once per tensor;
`fused` runs the whole rule in one kernel that reads every tensor once and writes back parameters and state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from epochcast.errors import UnknownName
from epochcast.graph.backward import grad
from epochcast.graph.kinds import OptimizerUpdate, Reduce
from epochcast.graph.op import Op, Parameter, Phase
from epochcast.graph.tensor import UNRELATED, DType, Relation, Tensor


@dataclass(frozen=True, slots=True)
class Pass:
    """One sweep over all tensors: what is read and written (letters of the rule), flops per element written."""

    step: str
    reads: str
    writes: str
    flops: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """An optimizer: its passes, its per-parameter state by letter and name, and the letters whose norms are taken
    before the last pass. `state_dtype` is the dtype of the state where it differs from the parameter's.
    """

    passes: tuple[Pass, ...]
    state: Mapping[str, str]
    norms: str = ""
    state_dtype: DType | None = None

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
_ADAM8BIT = Pass("step", "pgmv", "pmv", 5)
# bitsandbytes keeps the state of smaller tensors as it is (min_8bit_size).
LEAST_QUANTISED_ELEMENTS = 4096

OPTIMIZERS: Mapping[str, Rule] = {
    "sgd": Rule((_SGD,), {}),
    "momentum": Rule((*_MOMENTUM, Pass("add", "pb", "p", 2)), {"b": "momentum_buffer"}),
    "nesterov": Rule((*_MOMENTUM, Pass("add", "gb", "g", 2), _SGD), {"b": "momentum_buffer"}),
    "adam": Rule(_ADAM, {"m": "exp_avg", "v": "exp_avg_sq"}),
    "adamw": Rule((_DECAY, *_ADAM), {"m": "exp_avg", "v": "exp_avg_sq"}),
    "rmsprop": Rule(
        (
            Pass("mul", "v", "v"),
            Pass("addcmul", "vgg", "v", 3),
            Pass("sqrt", "v", "t", 2),
            Pass("add", "t", "t"),
            Pass("addcdiv", "pgt", "p", 3),
        ),
        {"v": "square_avg"},
    ),
    "adagrad": Rule(
        (
            Pass("addcmul", "vgg", "v", 3),
            Pass("sqrt", "v", "t", 2),
            Pass("add", "t", "t"),
            Pass("mul", "g", "u", 1),
            Pass("addcdiv", "put", "p", 2),
        ),
        {"v": "sum"},
    ),
    "adadelta": Rule(
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
    "lamb": Rule(
        (*_ADAM[:-1], Pass("div", "mt", "t"), Pass("add", "tp", "t", 2), Pass("add", "pt", "p", 2)),
        {"m": "exp_avg", "v": "exp_avg_sq"},
        norms="pt",
    ),
    # Dettmers et al. 2022 (bitsandbytes): Adam in one kernel, both moments quantised block by block.
    "adam8bit": Rule((_ADAM8BIT,), {"m": "exp_avg", "v": "exp_avg_sq"}, state_dtype=DType.UINT8),
    "adamw8bit": Rule((_ADAM8BIT,), {"m": "exp_avg", "v": "exp_avg_sq"}, state_dtype=DType.UINT8),
    "none": Rule((), {}),
}
"""Every optimizer by name; "none" updates nothing."""

ALIASES = {"sgd_momentum": "momentum", "sgdm": "momentum", "momentum_sgd": "momentum"}


def find_optimizer(name: str) -> str:
    """The canonical name of an optimizer."""
    key = name.casefold().replace("-", "_")
    key = ALIASES.get(key, key)
    if key not in OPTIMIZERS:
        raise UnknownName("optimizer", name, OPTIMIZERS)
    return key


def update(parameters: Iterable[Parameter], optimizer: str, style: str = "foreach") -> tuple[Op, ...]:
    """The ops that update every trainable parameter once."""
    optimizer = find_optimizer(optimizer)
    rule = OPTIMIZERS[optimizer]
    trained = tuple(p.tensor for p in parameters if p.trainable)
    if not trained or not rule.passes:
        return ()
    if style == "fused":
        return (_fused(optimizer, rule, trained),)
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
    return tuple(ops)


def _fused(optimizer: str, rule: Rule, trained: tuple[Tensor, ...]) -> Op:
    state = tuple(_operand(letter, t, rule) for letter in rule.state for t in trained)
    flops = sum(sweep.flops for sweep in rule.passes)
    # flops are counted per element written, and the fused kernel writes the parameter and each state tensor
    kind = OptimizerUpdate(optimizer, "fused", "fused", max(1, round(flops / (1 + rule.state_tensors))))
    inputs = (*trained, *(grad(t) for t in trained), *state)
    return Op(f"{optimizer}.fused", kind, inputs, (*trained, *state), (), Phase.UPDATE, "optimizer")


def _operand(letter: str, parameter: Tensor, rule: Rule) -> Tensor:
    match letter:
        case "p":
            return parameter
        case "g":
            return grad(parameter)
        case _:
            is_state = letter in rule.state
            is_quantised = is_state and parameter.elements >= LEAST_QUANTISED_ELEMENTS
            dtype = rule.state_dtype if rule.state_dtype and is_quantised else parameter.dtype
            name = f"{rule.state[letter] if is_state else f'temporary_{letter}'}:{parameter.name}"
            return Tensor(parameter.shape, dtype, name, Relation(state_of=parameter.name) if is_state else UNRELATED)
