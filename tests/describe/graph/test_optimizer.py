from typing import Any

import pytest
from tests.every import every

from epochcast.describe.graph.op import Op, Parameter, Phase
from epochcast.describe.graph.op_kinds import Matmul, OptimizerUpdate
from epochcast.describe.graph.optimizer import OPTIMIZERS, find_optimizer, update
from epochcast.describe.graph.tensor import Tensor
from epochcast.errors import UnknownName

PARAMETERS = tuple(Parameter(Tensor((100,), name=f"p{index}")) for index in range(3))
ELEMENTS = 300


def words_per_element(ops: tuple[Op, ...]) -> tuple[float, float]:
    """Float32 words read and written per parameter element."""
    read, written = (sum(getattr(op.work, f"{way}_bytes") for op in ops) for way in ("read", "written"))
    return read / 4 / ELEMENTS, written / 4 / ELEMENTS


# By hand, foreach: reads and writes per element, pass by pass.
#   sgd       p+=g: read p g, write p
#   momentum  b*=µ: 1, 1; b+=g: 2, 1; p+=b: 2, 1
#   nesterov  momentum's first two, g+=b: 2, 1; p+=g: 2, 1
#   adam      m lerp g: 2, 1; v*=β: 1, 1; v+=g·g: 2, 1; t=√v: 1, 1; t/=: 1, 1; t+=ε: 1, 1; p+=m/t: 3, 1
#   lamb      adam without its last; t=m/t: 2, 1; t+=p: 2, 1; two norms: 2, 0; p+=t: 2, 1
@pytest.mark.parametrize(
    ("optimizer", "state", "passes", "words"),
    [
        ("sgd", 0, 1, (2, 1)),
        ("momentum", 1, 3, (5, 3)),
        ("nesterov", 1, 4, (7, 4)),
        ("adam", 2, 7, (11, 7)),
        ("adamw", 2, 8, (12, 8)),
        ("rmsprop", 1, 5, (8, 5)),
        ("adagrad", 1, 5, (8, 5)),
        ("adadelta", 2, 11, (16, 11)),
        ("lamb", 2, 11, (16, 9)),
        ("none", 0, 0, (0, 0)),
    ],
)
def test_foreach_by_hand(optimizer: str, state: int, passes: int, words: tuple[int, int]) -> None:
    ops = update(PARAMETERS, optimizer)
    assert OPTIMIZERS[optimizer].state_tensors == state
    assert len(ops) == passes
    assert words_per_element(ops) == pytest.approx(words, abs=0.1)  # a norm writes one word per tensor


@pytest.mark.parametrize(
    ("optimizer", "words"),
    [("sgd", (2, 1)), ("momentum", (3, 2)), ("adam", (4, 3)), ("adamw", (4, 3)), ("adagrad", (3, 2))],
)
def test_fused_reads_everything_once_and_writes_parameters_and_state(optimizer: str, words: tuple[int, int]) -> None:
    (op,) = update(PARAMETERS, optimizer, "fused")
    assert words_per_element((op,)) == words


def test_a_fused_kernel_holds_36_tensors_of_four_lists() -> None:
    many = [Parameter(Tensor((8,), name=f"p{index}")) for index in range(37)]
    (op,) = update(many, "adam", "fused")
    assert op.work.launches == 2


def test_a_loop_runs_every_pass_once_per_tensor() -> None:
    assert sum(op.work.launches for op in update(PARAMETERS, "adam", "loop")) == 7 * 3
    assert sum(op.work.launches for op in update(PARAMETERS, "adam", "foreach")) == 7


@every("optimizer", [name for name in OPTIMIZERS if name != "none"])
def test_a_fused_update_moves_no_more_than_the_passes_it_replaces(optimizer: str) -> None:
    fused, foreach = (words_per_element(update(PARAMETERS, optimizer, style)) for style in ("fused", "foreach"))
    assert fused <= foreach


def test_frozen_parameters_are_not_updated() -> None:
    frozen = [Parameter(PARAMETERS[0].tensor, trainable=False), *PARAMETERS[1:]]
    names = {tensor.name for op in update(frozen, "adam") for tensor in (*op.inputs, *op.outputs)}
    assert not any(name.endswith("p0") for name in names)
    assert update([Parameter(p.tensor, trainable=False) for p in PARAMETERS], "adam") == ()


def test_lamb_takes_the_norm_of_the_parameter_and_of_its_update_before_the_last_pass() -> None:
    ops = update(PARAMETERS, "lamb")
    assert [op.name for op in ops[-3:]] == ["lamb.norm.p", "lamb.norm.t", "lamb.8.add"]
    assert [op.inputs[0].name for op in ops[-3:-1]] == ["p0", "temporary_t:p0"]
    assert ops[-2].work.flops == ELEMENTS


def test_all_ops_are_of_the_update() -> None:
    assert {op.phase for name in OPTIMIZERS for op in update(PARAMETERS, name)} == {Phase.UPDATE}


@pytest.mark.parametrize(("name", "found"), [("SGD", "sgd"), ("sgd-momentum", "momentum"), ("AdamW", "adamw")])
def test_names_are_forgiving(name: str, found: str) -> None:
    assert find_optimizer(name) == found


def test_an_unknown_optimizer_names_near_ones() -> None:
    with pytest.raises(UnknownName, match="no optimizer called 'adamz'; near: adam"):
        find_optimizer("adamz")


MATRICES = (Parameter(Tensor((512, 2048), name="w")), Parameter(Tensor((2048,), name="b")))
COUNT = 512 * 2048 + 2048


# Bytes a float32 parameter, by the papers: Lion has one moment of Adam's two, eight bits a quarter of them, Adafactor a
# value per row and column of a matrix, Muon one moment for matrices and AdamW's two for all else.
@pytest.mark.parametrize(
    ("optimizer", "bytes_kept"),
    [
        ("adamw", 8 * COUNT),
        ("lion", 4 * COUNT),
        ("adam8bit", 2 * 512 * 2048 + 8 * 2048),
        ("paged_adamw8bit", 2 * 512 * 2048 + 8 * 2048),
        ("lion8bit", 512 * 2048 + 4 * 2048),
        ("adafactor", 4 * (512 + 2048 + 2048)),
        ("muon", 4 * 512 * 2048 + 8 * 2048),
    ],
)
def test_state_is_what_the_papers_say(optimizer: str, bytes_kept: int) -> None:
    tensors = [t for op in update(MATRICES, optimizer) for t in (*op.inputs, *op.outputs)]
    assert sum(t.bytes for t in {t.name: t for t in tensors if t.relation.state_of}.values()) == bytes_kept


def test_muon_makes_matrices_orthogonal_by_five_iterations() -> None:
    """4r²c + 2r³ flops each, of 512 rows and 2,048 columns; vectors and vocabularies are left to AdamW."""
    products = [op for op in update(MATRICES, "muon") if isinstance(op.kind, Matmul)]
    assert sum(op.work.flops for op in products) == 5 * (4 * 512**2 * 2048 + 2 * 512**3)
    table = Parameter(Tensor((50257, 768), name="table"))
    assert {op.kind.algorithm for op in update([table], "muon") if isinstance(op.kind, OptimizerUpdate)} == {"adamw"}


def test_tensors_updated_in_turn_share_their_temporaries() -> None:
    names = {t.name for op in update(MATRICES, "lion") for t in op.outputs if t.name.startswith("temporary")}
    assert names == {"temporary_t"}


@pytest.mark.parametrize("name", ["paged_adamw_8bit", "adamw_bnb_8bit", "paged_lion_8bit", "adamw_torch"])
def test_names_of_hugging_face_are_known(name: str) -> None:
    assert find_optimizer(name) in OPTIMIZERS


TORCH = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {}),
    "rmsprop": ("RMSprop", {}),
    "adagrad": ("Adagrad", {}),
    "adadelta": ("Adadelta", {}),
}


@every("optimizer", TORCH)
def test_passes_are_those_of_torch(optimizer: str) -> None:
    """Second step (the state is there) of torch.optim with foreach on meta tensors: the lists each pass reads."""
    name, options = TORCH[optimizer]
    theirs = torch_passes(name, options)
    rule = OPTIMIZERS[optimizer]
    renamed = {"decay": "mul"}
    assert [(renamed.get(p.step, p.step), len(p.reads)) for p in rule.passes] == theirs


def torch_passes(name: str, options: dict[str, Any]) -> list[tuple[str, int]]:
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[tuple[str, int]] = []

    class Watch(TorchDispatchMode):  # type: ignore[misc, no-untyped-call, unused-ignore]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            lists = [a for a in args if isinstance(a, list | tuple) and isinstance(a[0], torch.Tensor)]
            sizes = [len(tensors) for tensors in lists if tensors[0].numel() > 1]  # step counters have one element
            if func.__name__.startswith("_foreach_") and sizes:
                seen.append((func.__name__.removeprefix("_foreach_").partition(".")[0].rstrip("_"), len(sizes)))
            return func(*args, **(kwargs or {}))

    parameters = [torch.nn.Parameter(torch.empty(100, device="meta")) for _ in range(3)]
    optimizer = getattr(torch.optim, name)(parameters, lr=0.1, foreach=True, **options)
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)
    optimizer.step()
    with Watch():  # type: ignore[no-untyped-call, unused-ignore]
        optimizer.step()
    return seen


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("torch.optim.Adam", "adam"), ("torch.optim.AdamW", "adamw"), ("bitsandbytes.optim.AdamW8bit", "adamw8bit")],
)
def test_a_class_may_be_typed_with_its_package(typed: str, meant: str) -> None:
    assert find_optimizer(typed) == meant
